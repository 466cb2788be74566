"""What bound the time of each process: the critical path (see critical_path) by kind of bound. The parts sum to the path.
@scope profile
@requires _stream_work, api_calls, processes, ranges
@assumes The path is what critical_path assumes it to be: which work a call awaits is inferred, not recorded.
@assumes A kind's time is an upper bound of what shortening it can give: another chain becomes critical before it is gone.
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

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.analyses import critical_path

_KEYS = ["run", "tool", "rank", "profile_id", "window_index", "process_id", "bound_by", "path_ns"]
_ORDER = [(key, "ascending") for key in _KEYS[:6]] + [("total_ns", "descending"), ("bound_by", "ascending")]


def analyse(
    ask: Callable[[str, Sequence[object]], pa.Table], *, which_step: int | None = None, range_text: str | None = None,
) -> pa.Table:
    """Return the time per kind of bound of each process and window, the largest first."""
    path = critical_path.analyse(ask, which_step=which_step, range_text=range_text)
    grouped = path.group_by(_KEYS, use_threads=False).aggregate([("duration_ns", "sum"), ("position", "count")])
    grouped = grouped.rename_columns([*_KEYS, "total_ns", "segments"])
    share = pc.divide(pc.multiply(grouped["total_ns"].cast(pa.float64()), 100.0), grouped["path_ns"].cast(pa.float64()))
    grouped = grouped.append_column("path_pct", pc.round(share, 2)).sort_by(_ORDER)
    return grouped.select([*_KEYS[:7], "path_pct", "total_ns", "segments", "path_ns"])
