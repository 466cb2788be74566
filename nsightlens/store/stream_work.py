"""The rows of idle_breakdown and _queue_lengths for one large profile: the work of each stream in its order, beside the calls
that launched it.

Work is sorted by stream and start; what begins at once by its end, then by kind and id, as idle_breakdown sorts it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nsightlens.columns.arrays import MISSING, Int, Places, numbered
from nsightlens.columns.arrays import row_chunks as stretches_of
from nsightlens.intervals import coverage
from nsightlens.statistics.sweeps import Packing, Running, packing, steps, stretches
from nsightlens.store.profile_parts import CallTimes, Line, Stream, UnfitError, Work

KERNEL_WAIT_BELOW_NS = 30_000
"""The default of the view's parameter."""
_LATEST = np.iinfo(np.int64).max
_HOST_WAIT, _KERNEL_WAIT, _OTHER, _UNLINKED = range(4)
_REASONS = ("host_wait_ns", "kernel_wait_ns", "other_ns", "unlinked_ns")
_ROWS = """
SELECT p.rank, i.* FROM stream_idle AS i LEFT JOIN processes AS p ON p.profile_id = i.profile_id AND p.process_id = i.process_id
ORDER BY p.rank, i.window_index, i.process_id, i.device_id, i.context, i.stream
"""
_NAMES = {"process_id": pa.string(), "window_index": pa.int64(), "device_id": pa.string(), "context": pa.int64(),
          "stream": pa.int64()}


@dataclass(frozen=True, slots=True)
class _Named:
    """What numbers of streams stand for."""

    key: Mapping[str, str]
    lines: Sequence[Line]
    streams: Sequence[Stream]

    def table(self, stream: Int, columns: Mapping[str, Int]) -> pa.Table:
        """Return a table of columns with the names of each row's stream before them."""
        found = {name: pa.array([text] * len(stream), pa.string()) for name, text in self.key.items()}
        rows = [(*self.lines[line], *rest) for line, *rest in self.streams]
        for at, (name, kind) in enumerate(_NAMES.items()):
            found[name] = pa.array([row[at] for row in rows], kind).take(pa.array(stream))
        return pa.table({**found, **columns})


@dataclass(frozen=True, slots=True)
class _InOrder:
    """All work, sorted. begin: its start, as Packing.place has it; call: the place of its call, -1 where none is known."""

    begin: Int
    length: npt.NDArray[Any]
    call: Places


def stream_work(
    connection: duckdb.DuckDBPyConnection, key: Mapping[str, str], lines: Sequence[Line], streams: Sequence[Stream],
    work: Sequence[Work], times: CallTimes, bounds: Packing,
) -> dict[str, pa.Table]:
    """Return the rows of idle_breakdown at its defaults, in its order, and those of _queue_lengths.

    key: run, tool and profile_id. connection: one whose `processes` are the profile's. bounds: says which times there are. Raises
    UnfitError where ids are far apart, or 63 bits are too few.
    """
    packed = packing(bounds.first, bounds.first + (1 << bounds.time_bits) - 1, 1, len(streams))
    if packed is None:
        raise UnfitError("63 bits are too few")
    named, rows = _Named(key, lines, streams), _in_order(work, times, packed)
    idle = _idle(connection, named, rows, times, packed)
    begin, call = rows.begin, rows.call
    del rows
    edges = _edges(begin, call, times, packed)
    del begin, call
    edges.sort(kind="stable")
    return {"idle_breakdown": idle, "_queue_lengths": _lengths(named, edges, packed)}


def _in_order(work: Sequence[Work], times: CallTimes, packed: Packing) -> _InOrder:
    ids = [some.ids() for some in work]
    size, before = sum(map(len, ids)), 0
    begin, length, call = np.full(size, MISSING), np.empty(size, np.int32), np.empty(size, np.int32)
    for some, own in zip(work, ids, strict=True):
        for template, start, end, launch, id_ in some.rows(some.row_id):
            place = id_ - own.start + before
            lasts = end - start
            if lasts.max(initial=0) > np.iinfo(length.dtype).max:
                length = length.astype(np.int64)
            begin[place], length[place] = packed.moments(some.stream[template], start), lasts
            call[place] = times.places(launch)
        before += len(own)
    order = np.argsort(begin, kind="stable")  # by merging, and so by id where equal
    order = order[np.count_nonzero(begin == MISSING) :]
    begin = begin[order]  # one after another: with all of them twice, they would be too much
    length = length[order]
    call = call[order]
    del order
    same = np.flatnonzero(begin[1:] == begin[:-1])
    if len(same):
        rows = np.union1d(same, same + 1)
        by_end = rows[np.lexsort((length[rows], begin[rows]))]
        length[rows], call[rows] = length[by_end], call[by_end]
    return _InOrder(begin, length, call)


def _idle(connection: duckdb.DuckDBPyConnection, named: _Named, rows: _InOrder, times: CallTimes, packed: Packing) -> pa.Table:
    count = len(named.streams)
    first, last, gaps = np.full(count, _LATEST), np.full(count, MISSING), np.zeros(count, np.int64)
    idle = np.zeros(count * len(_REASONS), np.int64)
    held = np.full((2, 1), -1)  # until when the work before a stretch lasts, as an interval in front of it
    for some in stretches_of(len(rows.begin)):
        begin, call = rows.begin[some], rows.call[some]
        stream, end = begin >> packed.time_bits, begin + rows.length[some]
        np.minimum.at(first, stream, begin)
        np.maximum.at(last, stream, end)
        begin, end = np.concatenate([held, [begin, end]], axis=1)
        before, until, place = coverage.gaps(begin, end, begin >> packed.time_bits)
        held = np.array([[begin[-1]], [last[stream[-1]]]])
        stream, call, gap = stream[place - 1], call[place - 1], until - before
        reason = np.where(gap < KERNEL_WAIT_BELOW_NS, _KERNEL_WAIT, _OTHER)
        known = np.flatnonzero(call >= 0)
        late = known[packed.moments(stream[known], times.start[call[known]]) > before[known]]
        reason[late], reason[call < 0] = _HOST_WAIT, _UNLINKED
        np.add.at(idle, stream * len(_REASONS) + reason, gap)
        gaps += np.bincount(stream, minlength=count)
    there = np.flatnonzero(first != _LATEST)
    by_reason, span = idle.reshape(-1, len(_REASONS))[there], (last - first)[there]
    total = by_reason.sum(axis=1)
    found = named.table(there, {"span_ns": span, "busy_ns": span - total, "idle_ns": total,
                                **dict(zip(_REASONS, by_reason.T, strict=True)), "gaps": gaps[there]})
    connection.register("stream_idle", found)
    try:
        return connection.sql(_ROWS).to_arrow_table()
    finally:
        connection.unregister("stream_idle")


def _edges(begin: Int, call: Places, times: CallTimes, packed: Packing) -> Int:
    """Return when each launch began (a change of 0), and when its first work in a stream did (1), unsorted."""
    works, edges, size = np.zeros(len(times.start), np.int32), np.empty(2 * len(begin), np.int64), 0
    for some in stretches_of(len(call)):
        np.add.at(works, call[some][call[some] >= 0], works.dtype.type(1))  # of its type: else it takes thirty times as long
    several = [np.empty(0, np.int64)]
    for some in stretches_of(len(call)):
        place = np.flatnonzero(call[some] >= 0) + some.start
        alone = works[call[place]] == 1
        several.append(place[~alone])
        size = _add(edges, size, begin[place[alone]], times.start[call[place[alone]]], packed)
    place = np.concatenate(several)
    place = place[np.argsort(call[place], kind="stable")]
    pairs = np.stack([call[place], begin[place] >> packed.time_bits])
    place = place[np.any(np.diff(pairs, prepend=-1) != 0, axis=0)]
    return edges[: _add(edges, size, begin[place], times.start[call[place]], packed)]


def _add(edges: Int, size: int, begin: Int, launched: Int, packed: Packing) -> int:
    """Write the edges of some launches from `size` on; return where they end."""
    until = size + len(begin)
    edges[size:until] = packed.moments(begin >> packed.time_bits, launched) << packed.change_bits
    edges[until : until + len(begin)] = begin << packed.change_bits | 1
    return until + len(begin)


def _lengths(named: _Named, edges: Int, packed: Packing) -> pa.Table:
    running = Running(steps(np.ones(1, np.int64)))
    found: list[tuple[Int, ...]] = [(np.empty(0, np.int64),) * 4]
    for some in stretches(edges, packed):
        found.append(_summed(some.track, running.cumulative(some.change), np.ones(len(some.track), np.int64), some.length))
    stream, length, points, lasts = _summed(*(np.concatenate(column) for column in zip(*found, strict=True)))
    return named.table(stream, {"length": length, "points": points, "lasts_ns": lasts})


def _summed(stream: Int, length: Int, *values: Int) -> tuple[Int, ...]:
    """Return the distinct pairs of stream and length, and the sums of the values of each."""
    group = numbered(stream, length)
    keys, sums = np.zeros((2, int(group.max(initial=-1)) + 1), np.int64), []
    keys[:, group] = stream, length
    for value in values:
        total = np.zeros(keys.shape[1], np.int64)
        np.add.at(total, group, value)
        sums.append(total)
    return *keys, *sums
