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

from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses.nvtx_gpu_projection_trace import tables
from nsightlens.columns.arrays import MISSING, Float, Int, Mask, integers, nullable, sums
from nsightlens.intervals.order import reached
from nsightlens.statistics.groups import counts, deviations, quantile, to_one_decimal, together

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
    for number, table in enumerate(tables(ask)):
        keys, local = _keys(table)
        codes.append(np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)[local])
        values.append([*(integers(table[column].combine_chunks()) for column in _VALUES), np.full(table.num_rows, number)])
    if not numbers:
        return _SCHEMA.empty_table()
    code = np.concatenate(codes)
    order = np.argsort(code, kind="stable")
    columns = _summed(code[order], [np.concatenate(column)[order] for column in zip(*values, strict=True)])
    for name, texts in zip(_KEY, zip(*numbers, strict=True), strict=True):
        columns[name] = pa.array(texts, pa.string())
    total = columns["total_ns"].tolist()
    by_total = sorted((*key[:2], -ns, *(text or "" for text in key), place) for place, (key, ns) in
                      enumerate(zip(numbers, total, strict=True)))
    return pa.table({name: columns[name] for name in _SCHEMA.names}, schema=_SCHEMA).take([row[-1] for row in by_total])


def _keys(table: pa.Table) -> tuple[list[tuple[str | None, ...]], Int]:
    """Return the different keys of the rows, and for each row which of them it has."""
    codes = np.zeros(table.num_rows, np.int64)
    first = codes[:0]
    for key in _KEY:
        encoded = table[key].combine_chunks().dictionary_encode("encode")
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
        _, first, codes = np.unique(codes, return_index=True, return_inverse=True)  # small again: products must not overflow
    return [tuple(row.values()) for row in table.select(_KEY).take(pa.array(first)).to_pylist()], codes.astype(np.int64)


def _summed(code: Int, columns: list[Int]) -> dict[str, Any]:
    """Return the statistics of the ranges of each code, from their _VALUES and the number of the table that they are of.

    All rows are sorted by code, table, thread and start.
    """
    projected, gpu, on_cpu, launches, operations, depth, *place = columns
    first = np.flatnonzero(np.diff(code, prepend=-1))
    inside = _inside_alike(code, on_cpu, *place)
    gpu, operations = (np.where(inside, 0, values) for values in (gpu, operations))
    (_, _, ordered), count = together(code, projected), counts(code, first)
    low, middle, high = (quantile(ordered, first, share) for share in (0.05, 0.5, 0.95))
    total = np.add.reduceat(projected, first)
    return {
        "total_ns": total, "gpu_ns": nullable(sums(gpu, first)), "range_ns": np.add.reduceat(on_cpu, first), "instances": count,
        "avg_ns": to_one_decimal(total / count), "median_ns": middle, "min_ns": ordered[first],
        "max_ns": ordered[first + count - 1], "stddev_ns": to_one_decimal(deviations(ordered, first)),
        "p5_ns": to_one_decimal(low), "p95_ns": to_one_decimal(high), "launches": nullable(sums(launches, first)),
        "operations": nullable(sums(operations, first)), "avg_depth": _mean(sums(depth, first), count),
    }


def _inside_alike(code: Int, length: Int, thread: Int, start: Int, table: Int) -> Mask:
    """Return which ranges lie within another one of their code: what they launched, that one did."""
    changes = (np.diff(code, prepend=-1) != 0) | (np.diff(table, prepend=-1) != 0) | (np.diff(thread, prepend=thread[:1]) != 0)
    before = reached(start, start + length, np.cumsum(changes))
    inside: Mask = (thread != MISSING) & (start < before)
    return inside


def _mean(total: Int, count: Int) -> pa.Array:
    """Return means to one decimal; NULL where a value is unknown."""
    means: Float = to_one_decimal(total / count)
    return pa.array(means, mask=total == MISSING)
