"""The pace of repeating ranges: each range, its number among those of its name in the process, and the time since the last one
began.

projected=true uses their projections on the GPU instead, as in nvtx_gpu_projection_trace, without ranges that have no GPU
work. `only_name=step` shows one name. Each process counts for itself: the same number is the same iteration on every rank if
all ranks run the same code.
@scope rows
@topic nvtx
@needs ranges
@alias nvtx_pace
@alias nvtx_gpu_proj_pace projected=true
@requires api_calls, kernels, memory_ops, processes, range_projections, ranges
@param  projected    Whether starts and durations are those of the projections on the GPU.
@assumes Ranges of equal name, kind and domain in a process are iterations of the same code, whatever the thread.
@first name, nth, duration_ns, period_ns, start_ns
@column run          Run (one workload in one configuration).
@column tool         nsys or kineto. Never add them up: they saw the same work.
@column rank         Rank of the process; NULL where unknown.
@column profile_id   Profile; starts are comparable only within one.
@column process_id   OS process.
@column kind         nvtx_push_pop, nvtx_start_end, annotation, operator, module or step.
@column domain       NVTX domain; NULL for the default domain and on Kineto data.
@column name         Name of the range.
@column nth          Which range of this name in the process it is, from 0, by start.
@column start_ns     Start, relative to the profile's origin.
@column duration_ns  Duration; NULL where it was never closed.
@column period_ns    From the start of the one before to its start; NULL for the first.
@column thread       OS thread id of the range.
@column range_id     The range; key of `ranges`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask, nvtx_gpu_projection_trace

_SAME = ("run", "tool", "profile_id", "process_id", "kind", "domain", "name")
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("rank", pa.int32()), ("profile_id", pa.string()), ("process_id", pa.string()),
    ("kind", pa.string()), ("domain", pa.string()), ("name", pa.string()), ("nth", pa.int64()), ("start_ns", pa.int64()),
    ("duration_ns", pa.int64()), ("period_ns", pa.int64()), ("thread", pa.int64()), ("range_id", pa.int64()),
])
_RANGES = """
SELECT r.run, r.tool, p.rank, r.profile_id, r.process_id, r.kind, r.domain, r.name, r.start_ns, r.duration_ns, r.thread,
    r.range_id
FROM ranges AS r
LEFT JOIN processes AS p ON r.process_id = p.process_id AND r.profile_id = p.profile_id
WHERE r.start_ns IS NOT NULL AND r.kind NOT IN ('nvtx_mark', 'gpu_annotation')
"""


def analyse(ask: Ask, *, projected: bool = False) -> pa.Table:
    """Return a row per range, by process and name, in the order of their starts."""
    table = _projections(ask) if projected else ask(_RANGES, [])
    given = [name for name in _SCHEMA.names if name in table.column_names]
    table = table.select(given).cast(pa.schema([_SCHEMA.field(name) for name in given]))
    table = table.sort_by([(name, "ascending") for name in (*_SAME, "start_ns", "range_id")]).combine_chunks()
    begins = _begins(table)
    place = np.arange(table.num_rows)
    first = np.maximum.accumulate(np.where(begins, place, 0))
    periods = np.diff(table["start_ns"].to_numpy(), prepend=0)
    found = {"nth": pa.array(place - first), "period_ns": pa.array(periods, mask=begins)}
    return pa.table([found.get(name, table[name] if name in given else None) for name in _SCHEMA.names], schema=_SCHEMA)


def _projections(ask: Ask) -> pa.Table:
    return nvtx_gpu_projection_trace.analyse(ask).rename_columns({"projected_ns": "duration_ns"})


def _begins(table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return for each row whether it is the first of its process and name; the rows are sorted."""
    begins = np.zeros(table.num_rows, np.bool_)
    begins[:1] = True
    for name in _SAME:
        codes = table[name].combine_chunks().dictionary_encode("encode").indices.to_numpy()
        begins[1:] |= codes[1:] != codes[:-1]
    return begins
