"""Kernels by the NVTX ranges that they were launched in: the numbers of `nsys stats nvtx_kern_sum`, plus run and rank.
A kernel is in every range of the launching thread that its call lies within, the whole stack and start/end ranges alike: the
totals of ranges that contain each other count a kernel several times. Names of ranges are without the numbers (op_id, seq, sizes)
that PyTorch writes into NVTX texts. Kernels in no range are a row without name, as nsys prints them.
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
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses._layers import layers
from nsightlens.columns.arrays import Int

_PROCESSES = """
SELECT DISTINCT r.run, r.tool, p.rank, r.process_id, p.pid
FROM kernels AS r
LEFT JOIN processes AS p ON r.process_id = p.process_id AND r.profile_id = p.profile_id
WHERE r.tool <> 'ncu' AND r.process_id IN (SELECT process_id FROM ranges)
ORDER BY r.run, r.tool, p.rank, r.process_id
"""
_KERNELS = """
SELECT a.thread, a.start_ns, a.start_ns + a.duration_ns AS end_ns, k.duration_ns, k.name AS kernel
FROM kernels AS k
LEFT JOIN api_calls AS a ON k.launch_id = a.launch_id AND a.start_ns IS NOT NULL AND a.duration_ns IS NOT NULL
WHERE k.process_id = ? AND k.duration_ns IS NOT NULL
ORDER BY a.thread NULLS FIRST, a.start_ns, end_ns, k.kernel_id
"""
_RANGES = """
SELECT thread, start_ns, start_ns + duration_ns AS end_ns, coalesce(depth, 0) AS depth, kind, domain, name
FROM ranges
WHERE process_id = ? AND thread IS NOT NULL AND end_thread IS NULL AND start_ns IS NOT NULL AND duration_ns IS NOT NULL
    AND kind NOT IN ('nvtx_mark', 'gpu_annotation')
ORDER BY thread, depth, start_ns, range_id
"""
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("rank", pa.int32()), ("process_id", pa.string()), ("pid", pa.int64()),
    ("thread", pa.int64()), ("total_ns", pa.int64()), ("instances", pa.int64()), ("ranges", pa.int64()), ("avg_ns", pa.float64()),
    ("median_ns", pa.float64()), ("min_ns", pa.int64()), ("max_ns", pa.int64()), ("stddev_ns", pa.float64()),
    ("kind", pa.string()), ("domain", pa.string()), ("name", pa.string()), ("kernel", pa.string()),
])
_KEY = ("kind", "domain", "name")


def analyse(ask: Ask) -> pa.Table:
    """Return a row per process, thread, range name and kernel name, by process, those with the largest total first."""
    rows = []
    for process in ask(_PROCESSES, []).to_pylist():
        own = process["process_id"]
        rows += [process | row for row in _of_threads(ask(_KERNELS, [own]), ask(_RANGES, [own]))]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _of_threads(kernels: pa.Table, ranges: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of one process. Both tables are in the order of threads."""
    found = []
    callers, owners = kernels["thread"], ranges["thread"].to_numpy()
    unknown = callers.null_count
    if unknown:
        found += _summed(None, kernels.slice(0, unknown), ranges.slice(0, 0))
    threads = callers.slice(unknown).to_numpy()
    for thread in np.unique(threads).tolist():
        some, mine = ((int(low), int(high - low)) for low, high in (
            np.searchsorted(values, [thread, thread + 1]) for values in (threads, owners)))
        found += _summed(thread, kernels.slice(unknown + some[0], some[1]), ranges.slice(*mine))
    found.sort(key=lambda row: (-row["total_ns"], *(str(row[key] or "") for key in ("thread", *_KEY, "kernel"))))
    yield from found


def _summed(thread: int | None, kernels: pa.Table, ranges: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of one thread."""
    keys, range_key = _keys(ranges)
    names = kernels["kernel"].combine_chunks().dictionary_encode("encode")
    kernel, within = _pairs(kernels, ranges)
    duration = kernels["duration_ns"].to_numpy()[kernel]
    key = np.where(within < 0, len(keys), range_key[within] if len(range_key) else 0)
    code = key * len(names.dictionary) + names.indices.to_numpy()[kernel]
    order = np.lexsort((within, code))
    code, within, duration = code[order], within[order], duration[order]
    firsts = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]])) if len(code) else code
    rows = []
    for begin, end in pairwise([*firsts.tolist(), len(code)]):
        number, name = divmod(int(code[begin]), len(names.dictionary))
        known = keys[number] if number < len(keys) else dict.fromkeys(_KEY)
        rows.append({"thread": thread, **known, "kernel": names.dictionary[name].as_py(),
                     **_statistics(duration[begin:end]), "ranges": len(np.unique(within[begin:end][within[begin:end] >= 0]))})
    return rows


def _pairs(kernels: pa.Table, ranges: pa.Table) -> tuple[Int, Int]:
    """Return (kernel, range) for each range around the call of each kernel; range -1 for a kernel in none.

    Ranges of one depth seldom overlap: where they do, they are taken in layers that do not. In each one range at most holds a
    call.
    """
    start, end = kernels["start_ns"].fill_null(0).to_numpy(), kernels["end_ns"].fill_null(0).to_numpy()
    begin, stop, depth = (ranges[name].to_numpy() for name in ("start_ns", "end_ns", "depth"))
    alone = np.ones(len(start), dtype=np.bool_)
    found, around = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for level in np.unique(depth).tolist():
        here = np.flatnonzero(depth == level)
        for layer in layers(begin[here], stop[here]):
            rows = here[layer]
            at = np.searchsorted(begin[rows], start, side="right") - 1
            held = np.flatnonzero((at >= 0) & (stop[rows[at]] >= end))
            alone[held] = False
            found.append(held)
            around.append(rows[at[held]])
    none = np.flatnonzero(alone)
    return np.concatenate([*found, none]), np.concatenate([*around, np.full(len(none), -1)])


def _keys(ranges: pa.Table) -> tuple[list[dict[str, Any]], Int]:
    """Return the different keys of the ranges, and for each range which of them it has."""
    number: dict[tuple[object, ...], int] = {}
    columns = [ranges[name].to_pylist() for name in _KEY]
    codes = np.array([number.setdefault(key, len(number)) for key in zip(*columns, strict=True)], dtype=np.int64)
    return [dict(zip(_KEY, key, strict=True)) for key in number], codes


def _statistics(duration: Int) -> dict[str, Any]:
    return {
        "total_ns": int(duration.sum()), "instances": len(duration), "avg_ns": round(float(duration.mean()), 1),
        "median_ns": float(np.median(duration)), "min_ns": int(duration.min()), "max_ns": int(duration.max()),
        "stddev_ns": round(float(duration.std(ddof=1)), 1) if len(duration) > 1 else 0.0,
    }
