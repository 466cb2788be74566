"""What bound the time of each process: the critical path (see critical_path) by kind of bound. The parts sum to the path.
@scope profile
@alias critical_path_analysis
@topic gpu
@needs gpu_work
@requires _gpu_work, _waits, api_calls, processes, ranges
@assumes The path is what critical_path assumes it to be: which work a call awaits is inferred, unless nsys recorded it.
@assumes A kind's time is an upper bound of what shortening it can give: another chain becomes critical first.
@param  which_step  Only this training step; NULL: the whole window.
@param  range_text  Only the first range whose name contains this text, such as an annotation; NULL: the whole window.
@column run            Run (one workload in one configuration).
@column tool           nsys or kineto. Never add them up: they saw the same work.
@column rank           Rank of the process; NULL where unknown.
@column profile_id     Profile; key of `profiles`.
@column window_index   Capture window of the process, from 0.
@column process_id     OS process.
@column bound_by       compute, communication, memory, unknown (graphs of unknown kernels), cpu, launch, queue or synchronisation.
@column path_pct       total_ns as a share of path_ns, to two decimals.
@column total_ns       Time that the path spent there.
@column segments       Segments of the path.
@column path_ns        Length of the path.
@balance path_ns = total_ns per run, tool, profile_id, window_index, process_id
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses._activity import BOUNDS
from nsightlens.analyses.critical_path import ProcessPath, paths

_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("rank", pa.int32()), ("profile_id", pa.string()), ("window_index", pa.int32()),
    ("process_id", pa.string()), ("bound_by", pa.string()), ("path_pct", pa.float64()), ("total_ns", pa.int64()),
    ("segments", pa.int64()), ("path_ns", pa.int64()),
])


def analyse(ask: Ask, *, which_step: int | None = None, range_text: str | None = None) -> pa.Table:
    """Return the time per kind of bound of each process and window, the largest first."""
    by_process = map(_rows, paths(ask, which_step, range_text))  # holds one process at a time
    return pa.Table.from_pylist([row for rows in by_process for row in rows], schema=_SCHEMA)


def _rows(process: ProcessPath) -> list[dict[str, Any]]:
    """Return a row for each kind of bound that the path of a process has."""
    total, number = np.zeros(len(BOUNDS), np.int64), np.zeros(len(BOUNDS), np.int64)
    for part in process.path.segments():
        np.add.at(total, part.bound, part.end - part.start)
        number += np.bincount(part.bound, minlength=len(BOUNDS))
    path_ns = int(total.sum())
    found = sorted((-ns, bound, segments) for bound, ns, segments in zip(BOUNDS, total.tolist(), number.tolist(), strict=True)
                   if segments)
    return [process.who | {"bound_by": bound, "path_pct": round(100.0 * -ns / path_ns, 2), "total_ns": -ns, "segments": segments,
                           "path_ns": path_ns} for ns, bound, segments in found]
