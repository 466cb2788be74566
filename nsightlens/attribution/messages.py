"""What the kernels of NCCL move: the payloads of the calls that launched them, where the ranges of these carry any.

A call launches its kernel itself or, between ncclGroupStart and ncclGroupEnd, the end of the outermost group does. What several
kernels of one launch share is not known: it is theirs only where there is one of them, or as many as equal calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.attribution.intervals import Nest, at
from nsightlens.columns.arrays import Int, Places
from nsightlens.names import collectives

COLUMNS = ("message_bytes", "group_name", "group_size")
_GROUP = {"ncclGroupStart": 1, "ncclGroupEnd": -1}
_PER_RANK = frozenset(("reducescatter", "alltoall"))
"""Operations whose input is as many messages as there are ranks."""


class _NcclCall(NamedTuple):
    """A call of NCCL: the operation, the bytes that it reads on this rank, its communicator and the ranks of that."""

    operation: str | None
    bytes: int | None
    communicator: str | None
    ranks: int | None


class _Message(NamedTuple):
    """Values of COLUMNS."""

    bytes: int | None
    communicator: str | None
    ranks: int | None


class Messages:
    """The distinct messages of a profile's kernels, numbered from 0.

    number: that of the kernels launched from each place (-1: none); empty where no range carries any.
    """

    def __init__(self, number: Places, messages: Sequence[_Message]) -> None:
        self._number = number
        self._table = pa.RecordBatch.from_arrays(
            [pa.array([message[column] for message in messages], type_)
             for column, type_ in enumerate((pa.int64(), pa.string(), pa.int32()))], names=list(COLUMNS))

    def of(self, places: Places) -> Int:
        """Return the number of the message of the kernels launched from each place, -1 for none."""
        return at(self._number, places).astype(np.int64)

    def columns(self, numbers: Int) -> dict[str, pa.Array]:
        """Return COLUMNS of messages with these numbers, NULL for -1."""
        few = self._table.take(pa.array(numbers, mask=numbers < 0))
        return dict(zip(COLUMNS, few.columns, strict=True))


def messages(nest: Nest, template: Places, templates: Iterable[pa.RecordBatch], launched: Places) -> Messages:
    """Return the messages of kernels. template: that of the range at each place. templates: those of ranges, with the columns
    name, communicator, message_bytes, group_size. launched: the place that each kernel was launched from."""
    calls, marks = _template_calls(templates)
    if not calls:
        return Messages(template[:0], [])
    number = np.full(len(template), -1, np.int32)
    found: dict[_Message, int] = {}
    places, kernels = np.unique(launched[launched >= 0], return_counts=True)
    count = dict(zip(places.tolist(), kernels.tolist(), strict=True))
    mark = marks[template]
    for place, members in _launchers(nest, np.flatnonzero(np.isin(template, list(calls)) | (mark != 0)), mark):
        if place in count and members:
            message = _message([calls[int(template[member])] for member in members], count[place])
            number[place] = found.setdefault(message, len(found))
    return Messages(number, list(found))


def _template_calls(templates: Iterable[pa.RecordBatch]) -> tuple[dict[int, _NcclCall], Int]:
    """Return the calls by the number of their template, and what each template does to the level of groups."""
    calls: dict[int, _NcclCall] = {}
    marks, first = [np.zeros(0, np.int64)], 0
    for batch in templates:
        names = batch.column("name")
        known = np.array([*(_GROUP.get(name, 0) for name in names.dictionary.to_pylist()), 0], np.int64)
        marks.append(known[pc.fill_null(names.indices, len(known) - 1).to_numpy()])
        size = batch.column("message_bytes")
        for row in np.flatnonzero(size.is_valid().to_numpy(zero_copy_only=False)).tolist():
            operation = collectives.operation(names[row].as_py() or "")
            ranks, read = batch.column("group_size")[row].as_py(), size[row].as_py()
            if operation in _PER_RANK:
                read = read * ranks if ranks else None
            calls[first + row] = _NcclCall(operation, read, batch.column("communicator")[row].as_py(), ranks)
        first += batch.num_rows
    return calls, np.concatenate(marks)


def _launchers(nest: Nest, places: Int, mark: Int) -> Iterable[tuple[int, list[int]]]:
    """Yield the places from which kernels are launched, each with those of the calls that it launches. places: of calls, and of
    the starts and ends of groups."""
    track = np.searchsorted(nest.first, places, "right")
    for begin, end in pairwise([0, *(np.flatnonzero(np.diff(track)) + 1).tolist(), len(places)]):
        level, members = 0, []
        for place, step in zip(places[begin:end].tolist(), mark[places[begin:end]].tolist(), strict=True):
            if step == 0 and level == 0:
                yield place, [place]
            elif step == 0:
                members.append(place)
            elif step > 0:
                level += 1
            elif level == 1:
                yield place, members
                level, members = 0, []
            else:  # of a group that began before the capture nothing is known
                level = max(level - 1, 0)


def _message(calls: Sequence[_NcclCall], kernels: int) -> _Message:
    """Return the message of each of so many kernels that these calls launched."""
    communicators, ranks = ({getattr(call, name) for call in calls} for name in ("communicator", "ranks"))
    return _Message(_bytes(calls, kernels), communicators.pop() if len(communicators) == 1 else None,
                    ranks.pop() if len(ranks) == 1 else None)


def _bytes(calls: Sequence[_NcclCall], kernels: int) -> int | None:
    """Return the bytes of each kernel: of sends and receives those that are sent, if any are."""
    operations = {call.operation for call in calls}
    if operations <= collectives.POINT_TO_POINT and kernels == 1:
        return _sum([call for call in calls if call.operation == "send"] or calls)
    if len(set(calls)) == 1 and kernels == len(calls):
        return calls[0].bytes
    return _sum(calls) if kernels == 1 and len({call[::2] for call in calls}) == 1 else None


def _sum(calls: Sequence[_NcclCall]) -> int | None:
    sizes = [call.bytes for call in calls if call.bytes is not None]
    return sum(sizes) if len(sizes) == len(calls) else None
