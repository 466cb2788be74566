"""GPU time of CPU ranges by name, per run and tool: the numbers of `nsys stats nvtx_gpu_proj_sum`, plus percentiles.
A range is projected on the GPU from the first start to the last end of the work launched within it, nested ranges included;
nvtx_gpu_projection_trace says what counts and what is left out. All ranks, processes and threads of a run are pooled.
Ranges nest and threads run side by side: the totals are not wall time. nsys prints the range as domain:name. Names are without
the numbers (op_id, seq, sizes) that PyTorch writes into NVTX texts: nsys has a row for each of those texts.
@scope run
@topic nvtx
@needs ranges
@alias nvtx_gpu_proj_sum
@alias nccl_gpu_proj_sum only_domain=NCCL
@requires api_calls, kernels, memory_ops, processes, range_projections, ranges
@assumes The launching call is the one with the same correlation id in the process, and the tool put host and GPU on one clock.
@assumes Ranges of equal name are one, whatever the thread or rank. Work that another thread launches is in none of them.
@column run         Run (one workload in one configuration).
@column tool        nsys or kineto. Never add them up: they saw the same work.
@column total_ns    Sum of the projected durations.
@column gpu_ns      Sum of the durations of the work itself, once also where a range lies within one of its name; NULL where only
    nsys's table of projections is there.
@column range_ns    Sum of the durations of the ranges on the CPU.
@column instances   Ranges that launched work.
@column avg_ns      Mean projected duration, to one decimal.
@column median_ns   Median: the mean of the middle two for an even number of ranges.
@column min_ns      Shortest projected duration.
@column max_ns      Longest projected duration.
@column stddev_ns   Sample standard deviation (n - 1), to one decimal; 0 for a single range.
@column p5_ns       5th percentile, interpolated linearly between the two nearest ranges.
@column p95_ns      95th percentile, interpolated the same way.
@column launches    Launching calls: what nsys counts as GPU operations.
@column operations  Kernels, copies and sets: a graph launch has one launch and many of them. NULL as gpu_ns is.
@column avg_depth   Mean number of ranges around it, to one decimal.
@column kind        nvtx_push_pop, nvtx_start_end, annotation, operator, module or step.
@column domain      NVTX domain; NULL for the default domain and on Kineto data.
@column name        Name of the range.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses.nvtx_gpu_projection_trace import projections
from nsightlens.columns.arrays import Int, Mask

_KEY = ("run", "tool", "kind", "domain", "name")
_VALUES = ("projected_ns", "gpu_ns", "range_ns", "launches", "operations", "depth", "thread", "range_start_ns")
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("total_ns", pa.int64()), ("gpu_ns", pa.int64()), ("range_ns", pa.int64()),
    ("instances", pa.int64()), ("avg_ns", pa.float64()), ("median_ns", pa.float64()), ("min_ns", pa.int64()),
    ("max_ns", pa.int64()), ("stddev_ns", pa.float64()), ("p5_ns", pa.float64()), ("p95_ns", pa.float64()),
    ("launches", pa.int64()), ("operations", pa.int64()), ("avg_depth", pa.float64()), ("kind", pa.string()),
    ("domain", pa.string()), ("name", pa.string()),
])


def analyse(ask: Ask) -> pa.Table:
    """Return a row per run, tool, kind, domain and name, those with the largest total first."""
    numbers: dict[tuple[str | None, ...], int] = {}
    codes: list[Int] = []
    values: list[list[Int]] = []
    for number, table in enumerate(projections(ask)):
        keys, local = _keys(table)
        codes.append(np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)[local])
        values.append([*(table[column].to_numpy() for column in _VALUES), np.full(table.num_rows, number)])
    found = []
    if numbers:
        code = np.concatenate(codes)
        order = np.argsort(code, kind="stable")
        columns = [np.concatenate(column)[order] for column in zip(*values, strict=True)]
        bounds = np.searchsorted(code[order], np.arange(len(numbers) + 1)).tolist()
        found = [dict(zip(_KEY, key, strict=True)) | _summed([column[begin:end] for column in columns])
                 for key, (begin, end) in zip(numbers, pairwise(bounds), strict=True)]
    found.sort(key=lambda row: (row["run"], row["tool"], -row["total_ns"], *(row[key] or "" for key in _KEY)))
    return pa.Table.from_pylist(found, schema=_SCHEMA)


def _keys(table: pa.Table) -> tuple[list[tuple[str | None, ...]], Int]:
    """Return the different keys of the rows, and for each row which of them it has."""
    codes = np.zeros(table.num_rows, np.int64)
    first = codes[:0]
    for key in _KEY:
        encoded = table[key].combine_chunks().dictionary_encode("encode")
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
        _, first, codes = np.unique(codes, return_index=True, return_inverse=True)  # small again: products must not overflow
    return [tuple(row.values()) for row in table.select(_KEY).take(pa.array(first)).to_pylist()], codes.astype(np.int64)


def _summed(columns: list[Int]) -> dict[str, Any]:
    """Return the statistics of ranges of one name, from their _VALUES and the number of the table that they are of."""
    projected, gpu, on_cpu, launches, operations, depth, *place = columns
    inside = _inside_alike(on_cpu, *place)
    gpu, operations = (np.where(inside, 0, values) for values in (gpu, operations))
    low, middle, high = np.quantile(projected, [0.05, 0.5, 0.95]).tolist()
    return {
        "total_ns": int(projected.sum()), "gpu_ns": _total(gpu), "range_ns": int(on_cpu.sum()), "instances": len(projected),
        "avg_ns": round(float(projected.mean()), 1), "median_ns": middle, "min_ns": int(projected.min()),
        "max_ns": int(projected.max()), "stddev_ns": round(float(projected.std(ddof=1)), 1) if len(projected) > 1 else 0.0,
        "p5_ns": round(low, 1), "p95_ns": round(high, 1), "launches": _total(launches), "operations": _total(operations),
        "avg_depth": None if np.isnan(depth.astype(float)).any() else round(float(depth.mean()), 1),
    }


def _inside_alike(length: Int, thread: Int, start: Int, table: Int) -> Mask:
    """Return which ranges of one name lie within another of them: what they launched, that one did. Sorted by table, thread and
    start."""
    inside = np.zeros(len(start), dtype=np.bool_)
    known: Mask = ~np.isnan(thread.astype(float))
    owner = np.flatnonzero((np.diff(table) != 0) | (np.diff(thread) != 0)) + 1
    for first, end in pairwise([0, *owner.tolist(), len(start)]):
        reached = np.maximum.accumulate(start[first:end] + length[first:end])
        inside[first + 1 : end] = start[first + 1 : end] < reached[:-1]
    known &= inside
    return known


def _total(values: Int) -> int | None:
    """Return the sum; None where a value is unknown (NaN)."""
    return None if np.isnan(values.astype(float)).any() else int(values.sum())
