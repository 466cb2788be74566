"""The chain of work that decided how long a process took: what to shorten, and what waits for something else anyway.

Walked backwards from the last end, each time to what came last: work on the GPU began when the work before it in its stream
had ended (queue), when its call had launched it (launch), or when work in another stream had ended that its launching thread
had made it wait for (synchronisation); a call that waits for the GPU returned when the last work that it awaits had ended; a
thread went on with what it did before, or began when another thread's operator had ended. The segments follow each other without
gap or overlap, so that they sum to the path. HTA's critical path, but in elapsed time: HTA gives time between operators the
weight 0. ncu has no timeline and no row. Within a step or range, the path goes from its start to the later of its end and the
last end of the work launched in it.
@scope rows
@requires _stream_work, api_calls, processes, ranges
@assumes A call that synchronises awaits the work that ended last within it, of what was launched before it.
@assumes cudaStreamWaitEvent orders the next launch of its thread behind all that ended before (no cuda_sync is stored).
@assumes Work whose call was not recorded can only follow its stream; where nothing came before, the path begins.
@assumes Other processes are not seen: waiting for a late rank inside a collective is this process's own communication.
@param  which_step  Only this training step; NULL: the whole window.
@param  range_text  Only the first range whose name contains this text, such as an annotation; NULL: the whole window.
@column run            Run (one workload in one configuration).
@column tool           nsys or kineto. Never add them up: they saw the same work.
@column rank           Rank of the process; NULL where unknown.
@column profile_id     Profile; times are comparable only within one.
@column window_index   Capture window of the process, from 0.
@column process_id     OS process.
@column position       Place in the path, from 1 for its beginning.
@column bound_by       compute, communication, memory, unknown (graphs of unknown kernels), cpu, launch, queue or synchronisation.
@column start_ns       Start of the segment, relative to the profile's origin.
@column duration_ns    Length of the segment.
@column path_ns        Length of the whole path.
@column device_id      The physical GPU; NULL on the CPU.
@column stream         Stream id; NULL on the CPU.
@column thread         OS thread id; NULL on the GPU.
@column name           Kernel, memory operation, or outermost operator; NULL for CPU time outside operators and for delays.
@balance path_ns = duration_ns per run, tool, profile_id, window_index, process_id
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from nsightlens.analyses._walk import Activity, Path, walk
from nsightlens.errors import UsageError

_WHO = ("run", "tool", "profile_id", "window_index", "process_id")
_SCHEMA = pa.schema([
    *((name, pa.string()) for name in ("run", "tool")), ("rank", pa.int32()), ("profile_id", pa.string()),
    ("window_index", pa.int32()), ("process_id", pa.string()), ("position", pa.int64()), ("bound_by", pa.string()),
    *((name, pa.int64()) for name in ("start_ns", "duration_ns", "path_ns")), ("device_id", pa.string()), ("stream", pa.int64()),
    ("thread", pa.int64()), ("name", pa.string()),
])
# Everything of one process and window: `IS NOT DISTINCT FROM`, as a window may be unknown.
_HERE = "profile_id = ? AND process_id = ? AND window_index IS NOT DISTINCT FROM ?"
_PROCESSES = """
SELECT DISTINCT w.run, w.tool, p.rank, w.profile_id, w.window_index, w.process_id
FROM _stream_work AS w LEFT JOIN processes AS p ON w.profile_id = p.profile_id AND w.process_id = p.process_id
ORDER BY w.run, w.tool, p.rank, w.profile_id, w.window_index, w.process_id"""
_WORK = f"""
SELECT kind, family, name, device_id, context, stream, start_ns, end_ns, launch_id, work_id
FROM _stream_work WHERE {_HERE} ORDER BY end_ns, start_ns, kind, work_id"""
_CALLS = f"""
SELECT launch_id, coalesce(thread, 0) AS thread, name, start_ns, start_ns + duration_ns AS end_ns
FROM api_calls WHERE {_HERE} AND start_ns IS NOT NULL AND duration_ns >= 0 ORDER BY start_ns, launch_id"""
_OPERATORS = f"""
SELECT coalesce(thread, 0) AS thread, name, start_ns, start_ns + duration_ns AS end_ns
FROM ranges WHERE {_HERE} AND kind = 'operator' AND start_ns IS NOT NULL AND duration_ns >= 0 ORDER BY start_ns, range_id"""
_RANGE = f"""
SELECT start_ns, start_ns + duration_ns AS end_ns, coalesce(thread, 0) AS thread
FROM ranges WHERE {_HERE} AND duration_ns >= 0 AND kind <> 'gpu_annotation'
    AND (?::BIGINT IS NULL OR kind = 'step' AND step = ?) AND (?::VARCHAR IS NULL OR contains(name, ?))
ORDER BY start_ns, range_id LIMIT 1"""


def analyse(
    ask: Callable[[str, Sequence[object]], pa.Table], *, which_step: int | None = None, range_text: str | None = None,
) -> pa.Table:
    """Return the critical path of each process and window, a row per segment. Raises UsageError where none has the range."""
    number = None if which_step is None else int(which_step)
    parts: list[pa.Table] = []
    for who in ask(_PROCESSES, []).to_pylist():
        here = [who["profile_id"], who["process_id"], who["window_index"]]
        within = None
        if number is not None or range_text is not None:
            ranges = ask(_RANGE, [*here, number, number, range_text, range_text]).to_pylist()
            if not ranges:
                continue
            within = ranges[0]["start_ns"], ranges[0]["end_ns"], ranges[0]["thread"]
        activity = Activity(ask(_WORK, here), ask(_CALLS, here), ask(_OPERATORS, here))
        parts.append(_table(who, walk(activity, within), activity))
    if not parts and (number is not None or range_text is not None):
        asked = " and ".join([*([f"step {number}"] if number is not None else []), *([repr(range_text)] if range_text else [])])
        raise UsageError(f"no process has {asked}: SELECT DISTINCT kind, step, name FROM ranges")
    return pa.concat_tables(parts) if parts else _SCHEMA.empty_table()


def _table(who: dict[str, Any], path: Path, activity: Activity) -> pa.Table:
    """Return the rows of one path, in order of time."""
    path = path[::-1]
    lengths = [segment.end - segment.start for segment in path]
    columns: dict[str, Any] = {name: [who[name]] * len(path) for name in (*_WHO, "rank")} | {
        "position": range(1, len(path) + 1), "bound_by": [segment.bound_by for segment in path],
        "start_ns": [segment.start for segment in path], "duration_ns": lengths, "path_ns": [sum(lengths)] * len(path),
        **activity.described(path)}
    return pa.table({field.name: columns[field.name] for field in _SCHEMA}, schema=_SCHEMA)
