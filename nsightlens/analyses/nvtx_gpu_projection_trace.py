"""CPU ranges projected on the GPU, one row per range that launched work: the rows of `nsys stats nvtx_gpu_proj_trace`.
The projection reaches from the first start to the last end of the kernels, copies and sets whose launching call lies within
the range, on the thread of the range (of one that ends on another, which nsys leaves out: where it began). Work counts for every
range around its launch, so projections do not sum to wall time.
On nsys data the ranges are those of NVTX, on Kineto data annotations, operators, modules and steps. As in nsys, it leaves
out ranges without GPU work, or never closed, and work whose launching call was not recorded.
For a profile read from the table of nsys stats (`range_projections`), the rows are those that nsys printed.
@scope rows
@topic nvtx
@needs ranges
@alias nvtx_gpu_proj_trace
@requires api_calls, kernels, memory_ops, processes, range_projections, ranges
@assumes The launching call is the one with the same correlation id in the process, and the tool put host and GPU on one clock.
@assumes A range causes what its own thread launches in it: the backward thread of autograd is in no range of the main thread.
@first name, start_ns, projected_ns, gpu_ns
@column run              Run (one workload in one configuration).
@column tool             nsys or kineto. Never add them up: they saw the same work.
@column rank             Rank of the process; NULL where unknown.
@column profile_id       Profile; starts are comparable only within one.
@column process_id       OS process.
@column thread           OS thread id of the range and of the calls.
@column start_ns         First start of the work, relative to the profile's origin.
@column projected_ns     First start to last end of the work.
@column gpu_ns           Sum of the durations of the work: beyond projected_ns where streams overlap. NULL for printed rows.
@column range_start_ns   Start of the range itself.
@column range_ns         Duration of the range itself.
@column launches         Launching calls: what nsys counts as GPU operations.
@column operations       Kernels, copies and sets: a graph launch has one launch and many of them. NULL for printed rows.
@column depth            Ranges around it on its thread.
@column parent_id        Innermost range around it.
@column range_id         The range; key of `ranges`.
@column kind             nvtx_push_pop, nvtx_start_end, annotation, operator, module or step.
@column domain           NVTX domain; NULL for the default domain and on Kineto data.
@column name             Name of the range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.analyses import Ask
from nsightlens.columns.arrays import Int, Mask, sorted_places
from nsightlens.intervals.disjoint import non_overlapping_layers
from nsightlens.statistics.groups import counts

_PROCESSES = """
SELECT DISTINCT r.run, r.tool, p.rank, r.profile_id, r.process_id
FROM ranges AS r
LEFT JOIN processes AS p ON r.process_id = p.process_id AND r.profile_id = p.profile_id
ORDER BY r.run, r.tool, p.rank, r.profile_id, r.process_id
"""
_WORK = """
SELECT launch_id, start_ns, duration_ns FROM kernels
WHERE process_id = ? AND launch_id IS NOT NULL AND start_ns IS NOT NULL AND duration_ns IS NOT NULL
UNION ALL
SELECT launch_id, start_ns, duration_ns FROM memory_ops
WHERE process_id = ? AND launch_id IS NOT NULL AND start_ns IS NOT NULL AND duration_ns IS NOT NULL
"""
_CALLS = """
SELECT launch_id, thread, start_ns, start_ns + duration_ns AS end_ns FROM api_calls
WHERE process_id = ? AND launch_id IS NOT NULL AND thread IS NOT NULL AND start_ns IS NOT NULL AND duration_ns IS NOT NULL
"""
_RANGES = """
SELECT thread, start_ns, start_ns + duration_ns AS end_ns, depth, parent_id, range_id, kind, domain, name
FROM ranges
WHERE process_id = ? AND thread IS NOT NULL AND start_ns IS NOT NULL AND duration_ns IS NOT NULL
    AND kind NOT IN ('nvtx_mark', 'gpu_annotation')
ORDER BY thread, start_ns, range_id
"""
_PRINTED = """
SELECT r.thread, w.start_ns, w.duration_ns AS projected_ns, r.start_ns AS range_start_ns, r.duration_ns AS range_ns, w.launches,
    r.depth, r.parent_id, r.range_id, r.kind, r.domain, r.name
FROM range_projections AS w
JOIN ranges AS r ON w.range_id = r.range_id AND w.process_id = r.process_id
WHERE r.process_id = ? AND w.start_ns IS NOT NULL AND w.duration_ns IS NOT NULL AND r.duration_ns IS NOT NULL
ORDER BY r.thread, r.start_ns, r.range_id
"""
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("rank", pa.int32()), ("profile_id", pa.string()), ("process_id", pa.string()),
    ("thread", pa.int64()), ("start_ns", pa.int64()), ("projected_ns", pa.int64()), ("gpu_ns", pa.int64()),
    ("range_start_ns", pa.int64()), ("range_ns", pa.int64()), ("launches", pa.int64()), ("operations", pa.int64()),
    ("depth", pa.int32()), ("parent_id", pa.int64()), ("range_id", pa.int64()), ("kind", pa.string()), ("domain", pa.string()),
    ("name", pa.string()),
])


def analyse(ask: Ask) -> pa.Table:
    """Return a row per range that launched work."""
    return pa.concat_tables([_SCHEMA.empty_table(), *tables(ask)])


def tables(ask: Ask) -> Iterator[pa.Table]:
    """Yield the rows of each process, by thread and start of the range."""
    printed = set(ask("SELECT DISTINCT process_id FROM range_projections", [])["process_id"].to_pylist())
    for process in ask(_PROCESSES, []).to_pylist():
        own = process["process_id"]
        if own in printed:
            rows = ask(_PRINTED, [own])
            yield _filled(process, {name: rows[name] for name in rows.column_names})
            continue
        calls = _with_work(ask(_CALLS, [own]), ask(_WORK, [own] * 2))
        if calls.num_rows:
            yield from _thread_rows(process, calls, ask(_RANGES, [own]))


def _with_work(calls: pa.Table, work: pa.Table) -> pa.Table:
    """Return the calls that launched work, by thread and start, each with what `project` asks for."""
    launch, start, duration = (_int(work, name) for name in work.column_names)
    order = np.argsort(launch, kind="stable")
    launch, start, duration = launch[order], start[order], duration[order]
    first = np.flatnonzero(np.diff(launch, prepend=-1))
    place = np.searchsorted(launch[first], _int(calls, "launch_id"))
    own = np.flatnonzero(np.append(launch[first], -1)[place] == _int(calls, "launch_id"))
    own = own[sorted_places(*(_int(calls, name)[own] for name in ("start_ns", "end_ns", "launch_id")))]
    own = own[np.argsort(_int(calls, "thread")[own], kind="stable")]
    launched = {"first_ns": np.minimum.reduceat(start, first), "last_ns": np.maximum.reduceat(start + duration, first),
                "gpu_ns": np.add.reduceat(duration, first), "operations": counts(launch, first)} if len(first) else {}
    return pa.table({name: _int(calls, name)[own] for name in ("thread", "start_ns", "end_ns")}
                    | {name: values[place[own]] for name, values in launched.items()})


def _thread_rows(process: dict[str, Any], calls: pa.Table, ranges: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of each thread. Both tables are in the order of threads."""
    threads = _int(ranges, "thread")
    callers = _int(calls, "thread")
    for thread in np.unique(callers).tolist():
        first, last = np.searchsorted(callers, [thread, thread + 1]).tolist()
        here = calls.slice(first, last - first)
        first, last = np.searchsorted(threads, [thread, thread + 1]).tolist()
        mine = ranges.slice(first, last - first)
        if not mine.num_rows:
            continue
        work = project(here, _int(mine, "start_ns"), _int(mine, "end_ns"))
        some = work.launches > 0
        yield _rows(process, mine.filter(pa.array(some)), work.only(some))


def _rows(process: dict[str, Any], ranges: pa.Table, work: LaunchedWork) -> pa.Table:
    return _filled(process, {name: ranges[name] for name in ranges.column_names} | {
        "start_ns": work.first, "projected_ns": work.last - work.first, "gpu_ns": work.total, "launches": work.launches,
        "operations": work.operations, "range_start_ns": ranges["start_ns"],
        "range_ns": pc.subtract(ranges["end_ns"], ranges["start_ns"]),
    })


def _filled(process: dict[str, Any], columns: dict[str, Any]) -> pa.Table:
    """Return the rows of a process with all columns; what they lack is NULL."""
    rows = len(columns["start_ns"])
    missing = {name: pa.nulls(rows, type_) for name, type_ in zip(_SCHEMA.names, _SCHEMA.types, strict=True)}
    same = {key: pa.repeat(pa.scalar(value, _SCHEMA.field(key).type), rows) for key, value in process.items()}
    known = missing | columns | same
    return pa.table([known[name] for name in _SCHEMA.names], schema=_SCHEMA)


@dataclass(frozen=True, slots=True)
class LaunchedWork:
    """What ranges launched: calls, pieces of work, first start, last end and sum of durations; int64, one value per range.

    Where launches is 0, first and last mean nothing.
    """

    launches: Int
    operations: Int
    first: Int
    last: Int
    total: Int

    def only(self, wanted: Mask) -> LaunchedWork:
        """Return the values of the wanted ranges."""
        return LaunchedWork(*(values[wanted] for values in (self.launches, self.operations, self.first, self.last, self.total)))


def project(calls: pa.Table, start: Int, end: Int) -> LaunchedWork:
    """Return what the calls that lie within each [start, end] launched, for ranges of one thread, nested or not.

    calls: those of the thread by start_ns, with end_ns, first_ns, last_ns, gpu_ns and operations. Calls that follow each other
    within a range are neighbours, so that sums are differences of running sums and extremes those of two overlapping runs of a
    power of two; calls that overlap are taken in layers that do not. n log n.
    """
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    zero = np.zeros(len(start), np.int64)
    work = LaunchedWork(zero, zero.copy(), np.full(len(start), high), np.full(len(start), low), zero.copy())
    for layer in non_overlapping_layers(_int(calls, "start_ns"), _int(calls, "end_ns")):
        part = calls.take(pa.array(layer))
        at = np.searchsorted(_int(part, "start_ns"), start, "left")
        number = np.maximum(np.searchsorted(_int(part, "end_ns"), end, "right") - at, 0)
        np.add(work.launches, number, out=work.launches)
        for values, column in ((work.operations, "operations"), (work.total, "gpu_ns")):
            running = np.concatenate([[0], np.cumsum(_int(part, column))])
            values += running[at + number] - running[at]
        some = number > 0
        first = _extremes(np.minimum, _int(part, "first_ns"), at[some], number[some])
        last = _extremes(np.maximum, _int(part, "last_ns"), at[some], number[some])
        work.first[some] = np.minimum(work.first[some], first)
        work.last[some] = np.maximum(work.last[some], last)
    return work


def _extremes(of: np.ufunc, values: Int, at: Int, number: Int) -> Int:
    """Return the minimum or maximum of `number` (> 0) values from each place `at` on."""
    found = np.empty(len(at), np.int64)
    levels = np.frexp(number)[1] - 1  # number is far below 2^53
    for level in range(int(levels.max(initial=-1)) + 1):
        here = levels == level
        found[here] = of(values[at[here]], values[at[here] + number[here] - (1 << level)])
        values = of(values[:-(1 << level)], values[1 << level:])
    return found


def _int(table: pa.Table, column: str) -> Int:
    values: Int = table[column].to_numpy().astype(np.int64, copy=False)
    return values
