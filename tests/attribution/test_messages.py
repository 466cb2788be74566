"""Which message a kernel of NCCL moved, by the calls that launched it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from nsightlens.attribution.intervals import nest
from nsightlens.attribution.messages import COLUMNS, messages

Call = tuple[str, int | None, str | None, int | None]
START, END = ("ncclGroupStart", None, None, None), ("ncclGroupEnd", None, None, None)


def reduced(size: int | None = 8, communicator: str | None = "w", ranks: int | None = 2) -> Call:
    return ("ncclAllReduce", size, communicator, ranks)


def moved(calls: Sequence[Call], launched: Sequence[int], tracks: Sequence[int] | None = None) -> list[tuple[object, ...]]:
    """Return the message of each kernel. launched: the call in which it was launched, or the end of a group."""
    names, sizes, communicators, ranks = zip(*calls, strict=True)
    templates = pa.RecordBatch.from_pydict({
        "name": pa.array(names).dictionary_encode(), "message_bytes": pa.array(sizes, pa.int64()),
        "communicator": pa.array(communicators, pa.string()).dictionary_encode(), "group_size": pa.array(ranks, pa.int32())})
    start = np.arange(len(calls)) * 10
    found = nest(np.array(tracks or [0] * len(calls)), start, start + 5)
    place = np.argsort(found.rows)[list(launched)].astype(np.int32)
    given = messages(found, found.rows, [templates], place)
    columns = given.columns(given.of(place))
    return list(zip(*(columns[name].to_pylist() for name in COLUMNS), strict=True))


def test_calls_that_launch_their_own_kernels() -> None:
    calls: list[Call] = [
        reduced(), ("ncclAllGather", 3, "v", None), ("ncclReduceScatter", 8, "w", 4), ("ncclReduceScatter", 8, "w", None),
        ("ncclAlltoAll", 2, "w", 3), ("ncclBroadcast", 0, None, None)]
    assert moved(calls, range(6)) == [
        (8, "w", 2), (3, "v", None), (32, "w", 4), (None, "w", None), (6, "w", 3), (0, None, None)]


def test_two_kernels_of_one_call_share_what_it_moves() -> None:
    assert moved([reduced()], [0, 0]) == [(None, "w", 2)] * 2


@pytest.mark.parametrize(("calls", "kernels", "message"), [
    ([("ncclSend", 5, "w", 2), ("ncclRecv", 7, "w", 2), ("ncclSend", 6, "w", 2)], 1, (11, "w", 2)),
    ([("ncclRecv", 7, "w", 2), ("ncclRecv", 1, "w", 2)], 1, (8, "w", 2)),
    ([("ncclSend", 5, "w", 2), ("ncclSend", 6, "v", 2)], 2, (None, None, 2)),
    ([reduced()], 1, (8, "w", 2)),
    ([reduced(), reduced()], 1, (16, "w", 2)),
    ([reduced(), reduced()], 2, (8, "w", 2)),
    ([reduced(), reduced(9)], 1, (17, "w", 2)),
    ([reduced(), reduced(9)], 2, (None, "w", 2)),
    ([reduced(), reduced(communicator="v")], 1, (None, None, 2)),
    ([reduced(), ("ncclAllGather", 8, "w", 2)], 1, (None, "w", 2)),
    ([reduced(), ("ncclSend", 5, "w", 2)], 1, (None, "w", 2)),
    ([("ncclSend", None, "w", 2)], 1, (None, None, None)),
])
def test_groups_launch_at_their_end(calls: list[Call], kernels: int, message: tuple[object, ...]) -> None:
    """A call without a size carries nothing."""
    assert moved([START, *calls, END], [len(calls) + 1] * kernels) == [message] * kernels


def test_groups_within_groups_and_on_other_threads() -> None:
    """The inner end launches nothing; thread 1 has a call of its own, and the end of a group that began before the capture."""
    calls = [START, reduced(1), START, reduced(2), END, END, END, reduced(4), START, END]
    assert moved(calls, [4, 5, 6, 7, 9], [0, 0, 0, 0, 0, 0, 1, 1, 0, 0]) == [
        (None, None, None), (3, "w", 2), (None, None, None), (4, "w", 2), (None, None, None)]


def test_without_payloads_there_are_no_messages() -> None:
    assert moved([START, ("ncclAllReduce", None, "w", 2), END], [2, 1]) == [(None, None, None)] * 2
