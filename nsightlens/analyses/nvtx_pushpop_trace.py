"""Each push/pop range with its place on the stack of its thread: the rows of `nsys stats nvtx_pushpop_trace`.
Its stack is that of push/pop ranges alone: start/end ranges around it do not count.
@scope rows
@topic nvtx
@needs nvtx
@requires processes, ranges
@assumes Ranges that stand for an operator, module or step are push/pop, as PyTorch's are.
@assumes A range that was never closed is in no stack and not here; nsys lets it last to the end of the capture.
@first name, level, start_ns, duration_ns
@column run          Run (one workload in one configuration).
@column tool         nsys: the PyTorch profiler has no NVTX ranges.
@column rank         Rank of the process; NULL where unknown.
@column profile_id   Profile; starts are comparable only within one.
@column process_id   OS process.
@column pid          OS process id.
@column thread       OS thread id.
@column start_ns     Start, relative to the profile's origin.
@column duration_ns  Duration.
@column children_ns  Sum of the durations of the ranges directly within it.
@column own_ns       Duration without these.
@column level        Ranges around it.
@column children     Ranges directly within it.
@column parent_id    Innermost range around it; NULL where there is none.
@column range_id     The range; key of `ranges`.
@column domain       NVTX domain; NULL for the default domain.
@column name         Name of the range.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.attribution.intervals import at, nest

_PROCESSES = """
SELECT DISTINCT r.run, r.tool, p.rank, r.profile_id, r.process_id, p.pid
FROM ranges AS r
LEFT JOIN processes AS p ON r.process_id = p.process_id AND r.profile_id = p.profile_id
WHERE r.tool = 'nsys'
ORDER BY r.run, r.tool, r.profile_id, r.process_id
"""
_RANGES = """
SELECT thread, start_ns, duration_ns, range_id, domain, name
FROM ranges
WHERE process_id = ? AND thread IS NOT NULL AND start_ns IS NOT NULL AND duration_ns IS NOT NULL
    AND kind NOT IN ('nvtx_mark', 'nvtx_start_end', 'gpu_annotation')
ORDER BY start_ns, duration_ns DESC, range_id
"""
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("rank", pa.int32()), ("profile_id", pa.string()), ("process_id", pa.string()),
    ("pid", pa.int64()), ("thread", pa.int64()), ("start_ns", pa.int64()), ("duration_ns", pa.int64()),
    ("children_ns", pa.int64()), ("own_ns", pa.int64()), ("level", pa.int32()), ("children", pa.int64()),
    ("parent_id", pa.int64()), ("range_id", pa.int64()), ("domain", pa.string()), ("name", pa.string()),
])


def analyse(ask: Ask) -> pa.Table:
    """Return a row per push/pop range, by process and start."""
    processes = ask(_PROCESSES, []).to_pylist()
    return pa.concat_tables([_SCHEMA.empty_table(), *(_rows(one, ask(_RANGES, [one["process_id"]])) for one in processes)])


def _rows(process: dict[str, Any], ranges: pa.Table) -> pa.Table:
    same = {key: pa.repeat(pa.scalar(value, _SCHEMA.field(key).type), ranges.num_rows) for key, value in process.items()}
    known = {name: ranges[name] for name in ranges.column_names} | same | _stacked(ranges)
    return pa.table([known[name] for name in _SCHEMA.names], schema=_SCHEMA)


def _stacked(ranges: pa.Table) -> dict[str, pa.Array]:
    """Return the columns that follow from what lies around what, per range."""
    thread, start, duration, ids = (ranges[name].to_numpy() for name in ("thread", "start_ns", "duration_ns", "range_id"))
    stack = nest(np.unique(thread, return_inverse=True)[1].astype(np.int32), start, start + duration)
    inside = stack.above >= 0
    parents, lasting = stack.above[inside], duration[stack.rows]
    within = np.zeros(len(stack.rows), dtype=np.int64)
    np.add.at(within, parents, lasting[inside])
    parent = at(ids[stack.rows], stack.above)
    place = np.empty(len(stack.rows), dtype=np.int64)
    place[stack.rows] = np.arange(len(stack.rows))

    def per_range(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values[place]

    return {
        "children_ns": pa.array(per_range(within)),
        "own_ns": pa.array(duration - per_range(within)),
        "level": pa.array(per_range(stack.depth())),
        "children": pa.array(per_range(np.bincount(parents, minlength=len(stack.rows)).astype(np.int64))),
        "parent_id": pa.array(per_range(parent), mask=~per_range(inside)),
    }
