"""Kernels by the NVTX ranges that they were launched in: the numbers of `nsys stats nvtx_kern_sum`, plus run and rank. A kernel
counts for every range of the launching thread around its call, push/pop and start/end alike, so totals of nested ranges count
a kernel several times. Names of ranges are without the numbers (op_id, seq, sizes) that PyTorch writes into NVTX texts.
Kernels in no range form a row without a name, as in nsys.
@scope run
@topic nvtx
@needs ranges
@alias nvtx_kern_sum
@requires api_calls, kernels, processes, ranges
@assumes The launching call is the one with the same correlation id in the process; a kernel without one is in no range.
@assumes A range causes what its own thread launches in it: the backward thread of autograd is in no range of the main thread.
@first name, kernel, total_ns, instances
@column run          Run (one workload in one configuration).
@column tool         nsys or kineto. Never add them up: they saw the same work.
@column rank         Rank of the process; NULL where unknown.
@column process_id   OS process.
@column pid          OS process id.
@column thread       OS thread id of the range and of the calls; NULL where the call was not recorded.
@column total_ns     Sum of the durations of the kernels.
@column instances    Kernels.
@column ranges       Ranges that hold at least one of them.
@column avg_ns       Mean duration, to one decimal.
@column median_ns    Median duration: the mean of the middle two for an even number.
@column min_ns       Shortest duration.
@column max_ns       Longest duration.
@column stddev_ns    Sample standard deviation (n - 1), to one decimal; 0 for a single kernel.
@column kind         nvtx_push_pop, nvtx_start_end, annotation, operator, module or step; NULL for kernels in no range.
@column domain       NVTX domain; NULL for the default domain and on Kineto data.
@column name         Name of the range; NULL for kernels in no range.
@column kernel       Kernel name as the tool prints it.
@names kernel kernel
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.columns.arrays import Int, integers, nullable
from nsightlens.intervals.disjoint import non_overlapping_layers
from nsightlens.statistics.groups import counts, deviations, quantile, to_one_decimal, together

_PROCESSES = """
SELECT DISTINCT r.run, r.tool, p.rank, r.process_id, p.pid
FROM kernels AS r
LEFT JOIN processes AS p ON r.process_id = p.process_id AND r.profile_id = p.profile_id
WHERE r.tool <> 'ncu' AND r.process_id IN (SELECT process_id FROM ranges)
ORDER BY r.run, r.tool, p.rank, r.process_id
"""
_NAMED = """
SELECT name, row_number() OVER (ORDER BY coalesce(name, ''), name) - 1 AS code
FROM (SELECT DISTINCT name FROM kernels WHERE process_id = $1 AND duration_ns IS NOT NULL)
"""
_KERNELS = f"""
WITH named AS ({_NAMED})
SELECT n.code, a.thread, a.start_ns, a.start_ns + a.duration_ns AS end_ns, k.duration_ns
FROM kernels AS k
JOIN named AS n ON n.name IS NOT DISTINCT FROM k.name
LEFT JOIN api_calls AS a ON k.launch_id = a.launch_id AND a.start_ns IS NOT NULL AND a.duration_ns IS NOT NULL
WHERE k.process_id = $1 AND k.duration_ns IS NOT NULL
"""
_WITHIN = """
process_id = $1 AND thread IS NOT NULL AND start_ns IS NOT NULL AND duration_ns IS NOT NULL
    AND kind NOT IN ('nvtx_mark', 'gpu_annotation')
"""
_KEYS = f"""
SELECT kind, domain, name,
    row_number() OVER (ORDER BY coalesce(kind, ''), coalesce(domain, ''), coalesce(name, ''), domain, name) - 1 AS code
FROM (SELECT DISTINCT kind, domain, name FROM ranges WHERE {_WITHIN})
"""
_RANGES = f"""
WITH keys AS ({_KEYS})
SELECT thread, start_ns, start_ns + duration_ns AS end_ns, coalesce(depth, 0) AS depth, k.code
FROM (FROM ranges WHERE {_WITHIN}) AS r
JOIN keys AS k ON k.kind = r.kind AND k.domain IS NOT DISTINCT FROM r.domain AND k.name IS NOT DISTINCT FROM r.name
ORDER BY thread, depth, start_ns, range_id
"""
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("rank", pa.int32()), ("process_id", pa.string()), ("pid", pa.int64()),
    ("thread", pa.int64()), ("total_ns", pa.int64()), ("instances", pa.int64()), ("ranges", pa.int64()), ("avg_ns", pa.float64()),
    ("median_ns", pa.float64()), ("min_ns", pa.int64()), ("max_ns", pa.int64()), ("stddev_ns", pa.float64()),
    ("kind", pa.string()), ("domain", pa.string()), ("name", pa.string()), ("kernel", pa.string()),
])
_KEY = ("kind", "domain", "name")
_TOGETHER = 1 << 19
"""Kernels whose pairs with ranges are held at once; those of one name always are."""


def analyse(ask: Ask) -> pa.Table:
    """Return a row per process, thread, range name and kernel name, by process, those with the largest total first."""
    return pa.concat_tables([_SCHEMA.empty_table(), *(_process_rows(ask, row) for row in ask(_PROCESSES, []).to_pylist())])


def _process_rows(ask: Ask, process: dict[str, Any]) -> pa.Table:
    own = [process["process_id"]]
    names, keys = (ask(f"{query} ORDER BY code", own) for query in (_NAMED, _KEYS))
    kernels, ranges = (_columns(ask(query, own)) for query in (_KERNELS, _RANGES))
    some = list(_thread_rows(kernels, ranges))
    if not some:
        return _SCHEMA.empty_table()
    rows = {name: np.concatenate([found[name] for found in some]) for name in some[0]}
    # where totals are equal, what is unknown comes first: numbers are in the order of texts, MISSING and -1 before them
    thread = np.unique(rows["thread"], return_inverse=True)[1]
    by_text = np.argsort((thread * (keys.num_rows + 1) + rows["key"] + 1) * names.num_rows + rows["code"])
    order = by_text[np.argsort(-rows["total_ns"][by_text], kind="stable")]
    columns: dict[str, Any] = {name: nullable(values[order]) for name, values in rows.items()}
    key = pa.array(rows["key"][order], mask=rows["key"][order] < 0)
    columns |= {name: keys[name].combine_chunks().take(key) for name in _KEY}
    columns["kernel"] = names["name"].combine_chunks().take(columns["code"])
    for name, value in process.items():
        columns[name] = pa.repeat(pa.scalar(value, _SCHEMA.field(name).type), len(order))
    return pa.table({name: columns[name] for name in _SCHEMA.names}).cast(_SCHEMA)


def _columns(table: pa.Table) -> dict[str, Int]:
    """Return the columns of a table as integers, MISSING for NULL."""
    return {name: integers(table[name].combine_chunks()) for name in table.column_names}


def _thread_rows(kernels: dict[str, Int], ranges: dict[str, Int]) -> Iterator[dict[str, Any]]:
    """Yield rows of one process, by thread, number of the range's key (-1: in no range) and of the kernel's name."""
    for thread in np.unique(kernels["thread"]).tolist():
        mine = {name: values[ranges["thread"] == thread] for name, values in ranges.items()}
        around = _layers(mine)
        rows = np.flatnonzero(kernels["thread"] == thread)
        for some in _by_name(kernels["code"], rows):
            found = _summed({name: values[some] for name, values in kernels.items()}, mine["code"], around)
            yield {"thread": np.full(len(found["code"]), thread), **found}


def _by_name(code: Int, rows: Int) -> Iterator[Int]:
    """Yield some of the rows after others, all of one name together."""
    rows = rows[np.argsort(code[rows], kind="stable")]
    firsts = np.flatnonzero(np.diff(code[rows], prepend=-1))
    begin = 0
    for end in [*firsts[1:].tolist(), len(rows)]:
        if end - begin >= _TOGETHER or end == len(rows):
            yield rows[begin:end]
            begin = end


def _layers(ranges: dict[str, Int]) -> list[tuple[Int, Int, Int]]:
    """Return the ranges of one thread in layers, in each of which one at most holds a call: their places, starts and ends.

    Ranges of one depth seldom overlap: where they do, they are several layers.
    """
    found = []
    for level in np.unique(ranges["depth"]).tolist():
        here = np.flatnonzero(ranges["depth"] == level)
        for layer in non_overlapping_layers(ranges["start_ns"][here], ranges["end_ns"][here]):
            rows = here[layer]
            found.append((rows, ranges["start_ns"][rows], ranges["end_ns"][rows]))
    return found


def _summed(kernels: dict[str, Int], key_of_range: Int, around: Sequence[tuple[Int, Int, Int]]) -> dict[str, Any]:
    """Return the rows of some kernels of one thread: key and code, and the statistics of what has both."""
    kernel, within = _pairs(kernels["start_ns"], kernels["end_ns"], around)
    names = int(kernels["code"].max(initial=0)) + 1
    group = (np.append(key_of_range, -1)[within] + 1) * names + kernels["code"][kernel]
    _, firsts, held_by = together(group, within + 1)  # 0: in no range
    changed = np.diff(held_by, prepend=-1) != 0
    changed[firsts] = held_by[firsts] > 0
    ranges = np.add.reduceat(changed.astype(np.int64), firsts)
    group, firsts, duration = together(group, kernels["duration_ns"][kernel])
    return {"key": group // names - 1, "code": group % names, **_statistics(duration, firsts), "ranges": ranges}


def _pairs(start: Int, end: Int, around: Sequence[tuple[Int, Int, Int]]) -> tuple[Int, Int]:
    """Return (kernel, range) for each range around the call of each kernel; range -1 for a kernel in none."""
    alone = np.ones(len(start), dtype=np.bool_)
    found, ranges = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for rows, begin, stop in around:
        at = np.searchsorted(begin, start, side="right") - 1
        held = np.flatnonzero((at >= 0) & (stop[at] >= end))
        alone[held] = False
        found.append(held)
        ranges.append(rows[at[held]])
    none = np.flatnonzero(alone)
    return np.concatenate([*found, none]), np.concatenate([*ranges, np.full(len(none), -1)])


def _statistics(duration: Int, firsts: Int) -> dict[str, Any]:
    """Return the statistics of groups of durations, each sorted. firsts: where each begins."""
    count, total = counts(duration, firsts), np.add.reduceat(duration, firsts)
    return {"total_ns": total, "instances": count, "avg_ns": to_one_decimal(total / count),
            "median_ns": quantile(duration, firsts, 0.5), "min_ns": duration[firsts], "max_ns": duration[firsts + count - 1],
            "stddev_ns": to_one_decimal(deviations(duration, firsts))}
