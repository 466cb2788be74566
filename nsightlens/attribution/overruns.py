"""Kernels that last longer than their stream allows: how far each outlasts the start of the next one.

A stream runs one kernel after the other. One may begin while the one before it ends (programmatic dependent launch), so that
only a kernel that still runs when the second one after it begins is proof of an end that cannot be true. Kernels of one launch
(CUDA and HIP graphs) may run side by side: of theirs nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.columns.arrays import MISSING, Hash, Int, Mask, Places, hash_rows, nullable, row_chunks
from nsightlens.columns.spilled import LongColumn, values_at, whole

MARGIN_NS = 1000
"""By how much clocks may err; Kineto wrote whole microseconds until 2024."""


@dataclass(frozen=True, slots=True)
class KernelLaunches:
    """The kernels of a profile, per row: template, start, duration, correlation id and graph node.

    stream, owner: per template, a number of its stream (-1: none), and of its window and process.
    """

    stream: Places
    owner: Places
    template: LongColumn
    start: LongColumn
    duration: LongColumn
    correlation: LongColumn
    graph_node: LongColumn


@dataclass(frozen=True, slots=True)
class Overruns:
    """The kernels that do not simply end in time, by ascending row: how far they outlast the next start, MISSING: unknown."""

    rows: Int
    overrun: Int

    def columns(self, rows: slice, known: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Return overrun_ns of some rows."""
        timed = pc.and_(pc.is_valid(known["start_ns"]), pc.is_valid(known["duration_ns"]))
        judged = pc.and_(timed, pc.is_valid(known["stream"])).to_numpy(zero_copy_only=False)
        values = np.where(judged, 0, MISSING)
        first, stop = np.searchsorted(self.rows, [rows.start, rows.stop])
        values[self.rows[first:stop] - rows.start] = self.overrun[first:stop]
        return {"overrun_ns": nullable(values)}


def overruns(launches: KernelLaunches) -> Overruns:
    """Return the kernels that outlast the second one after them in their stream, and those of which it is not known."""
    found = _candidates(launches, None)
    if found is None:
        order = np.argsort(whole(launches.start), kind="stable").astype(np.int32)
        found = _candidates(launches, order) or (np.empty(0, np.int64), np.empty(0, np.int64))
    rows, overrun = found
    overrun[(overrun != MISSING) & _side_by_side(launches, rows)] = MISSING
    order_of_rows = np.argsort(rows)
    return Overruns(rows[order_of_rows], overrun[order_of_rows])


def _candidates(launches: KernelLaunches, order: Places | None) -> tuple[Int, Int] | None:
    """Return rows and how far they outlast the next start (MISSING: nothing bounds them), as if there were no graphs.

    order: the rows by start; None: as they stand, which is given up (None is returned) where a stream is not in order.
    """
    rows, overrun = [], []
    open_ = np.empty((4, 0), dtype=np.int64)  # of each stream the last two kernels: stream, start, duration, row
    for some in _placed(launches, order):
        if order is None and _goes_back(open_, some):
            return None
        sorted_ = _by_stream(np.concatenate([open_, some], axis=1))
        stream, start, duration, row = sorted_
        is_last = np.append(stream[1:] != stream[:-1], True)[: len(stream)]
        is_open = is_last | np.append(is_last[1:], True)[: len(stream)]
        open_ = sorted_[:, is_open]
        at = np.flatnonzero(~is_open)
        end = np.where(duration[at] == MISSING, MISSING, start[at] + duration[at])
        over = end > start[at + 2] + MARGIN_NS
        rows.append(row[at[over]])
        overrun.append(end[over] - start[at[over] + 1])
    stream, start, duration, row = open_
    in_time = np.zeros(len(row), dtype=np.bool_)
    in_time[:-1] = (stream[1:] == stream[:-1]) & (duration[:-1] != MISSING) & (start[:-1] + duration[:-1] <= start[1:])
    rows.append(row[~in_time])
    overrun.append(np.full(len(rows[-1]), MISSING))
    return np.concatenate(rows), np.concatenate(overrun)


def _placed(launches: KernelLaunches, order: Places | None) -> Iterator[Int]:
    """Yield stream, start, duration and row of the kernels that have a place in a stream, a stretch at a time."""
    for some in row_chunks(len(launches.template)):
        rows = np.arange(some.start, some.stop) if order is None else order[some].astype(np.int64)
        template, start, duration = ((column[some] if order is None else values_at(column, rows))
                                     for column in (launches.template, launches.start, launches.duration))
        stream = launches.stream[template]
        placed = (stream >= 0) & (start != MISSING)
        yield np.stack([stream[placed].astype(np.int64), start[placed], duration[placed], rows[placed]])


def _goes_back(open_: Int, some: Int) -> bool:
    """Return whether one of these kernels began before one of its stream in an earlier stretch."""
    if not open_.shape[1] or not some.shape[1]:
        return False
    latest = np.full(int(max(open_[0].max(), some[0].max())) + 1, MISSING)
    np.maximum.at(latest, open_[0], open_[1])
    return bool((some[1] < latest[some[0]]).any())


def _by_stream(some: Int) -> Int:
    """Return the kernels by stream, start and duration."""
    stream = some[0]
    few = not len(stream) or stream.max() < 1 << 16
    some = some[:, np.argsort(stream.astype(np.uint16) if few else stream, kind="stable")]  # 16 bits: in linear time
    stream, start, duration, _ = some
    same = stream[1:] == stream[:-1]
    later = (start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (duration[1:] >= duration[:-1]))
    if (same & ~later).any():
        some = some[:, np.lexsort((duration, start, stream))]
    return some


def _side_by_side(launches: KernelLaunches, rows: Int) -> Mask:
    """Return which rows may run beside others of their stream: nodes of a graph, and several kernels of one launch."""
    nodes = values_at(launches.graph_node, rows) != MISSING
    ids, launched = _launch(launches, rows)
    wanted, place = np.unique(ids, return_inverse=True)
    count = np.zeros(len(wanted) + 1, dtype=np.int64)
    if launched.any():
        for some in row_chunks(len(launches.template)):
            other, known = _launch(launches, some)
            at = np.searchsorted(wanted, other)
            found = known & (at < len(wanted))
            found[found] = wanted[at[found]] == other[found]
            count += np.bincount(at[found], minlength=len(count))
    shared: Mask = nodes | (launched & (count[place.reshape(-1)] > 1))
    return shared


def _launch(launches: KernelLaunches, rows: Int | slice) -> tuple[Hash, Mask]:
    """Return a hash of window, process and correlation id of these rows, and whether they have such an id."""
    template, ids = ((column[rows] if isinstance(rows, slice) else values_at(column, rows))
                     for column in (launches.template, launches.correlation))
    owner = launches.owner[template].astype(np.int64)
    ids = ids.astype(np.int64)
    return hash_rows([owner, ids], len(ids)), (ids != MISSING) & (ids != 0)
