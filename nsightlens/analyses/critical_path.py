"""The chain of work that determined how long a process took: what to shorten, and what would wait anyway.

The path is walked backwards from the last end, each time to the latest predecessor. GPU work starts after the previous work in
its stream (queue), after its launch (launch), or after work in another stream that the launching thread made it wait for
(synchronisation). A call that waits for the GPU returns after the last work that it awaits. A thread continues what it did
before, or starts after another thread's operator. The segments follow each other without gap or overlap, so they sum to the
path. HTA's critical path, but in elapsed time: HTA gives time between operators the weight 0. ncu has no timeline, so no rows.
Within a step or range, the path goes from its start to the later of its end and the last end of the work launched in it.
@scope rows
@topic gpu
@needs gpu_work
@requires _gpu_work, _waits, api_calls, processes, ranges
@assumes A synchronising call awaits the work that ended last within it, among what the process launched before it.
@assumes cudaStreamWaitEvent orders the next launch into its stream (where not known: of its thread) behind all that ended.
@assumes Where the wait and the record of its event were recorded, only the stream that they name is awaited, up to that record.
@assumes Work whose call was not recorded can only follow its stream; if nothing precedes it, the path begins there.
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

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.analyses import Ask
from nsightlens.analyses._activity import AWAITS_COPY, AWAITS_WORK, BOUNDS, WAITS_FOR_EVENT, Activity
from nsightlens.analyses._walk import Path, Segments, walk
from nsightlens.columns.arrays import MISSING, nullable
from nsightlens.errors import UsageError

_SCHEMA = pa.schema([
    *((name, pa.string()) for name in ("run", "tool")), ("rank", pa.int32()), ("profile_id", pa.string()),
    ("window_index", pa.int32()), ("process_id", pa.string()), ("position", pa.int64()), ("bound_by", pa.string()),
    *((name, pa.int64()) for name in ("start_ns", "duration_ns", "path_ns")), ("device_id", pa.string()), ("stream", pa.int64()),
    ("thread", pa.int64()), ("name", pa.string()),
])
# Everything of one process and window: `IS NOT DISTINCT FROM`, as a window may be unknown.
_HERE = "profile_id = $1 AND process_id = $2 AND window_index IS NOT DISTINCT FROM $3"
_PROCESSES = """
SELECT w.run, w.tool, p.rank, w.profile_id, w.window_index, w.process_id
FROM (SELECT DISTINCT run, tool, profile_id, window_index, process_id FROM _gpu_work) AS w
LEFT JOIN processes AS p ON w.profile_id = p.profile_id AND w.process_id = p.process_id
ORDER BY w.run, w.tool, p.rank, w.profile_id, w.window_index, w.process_id"""
# Numbers only: texts of as many rows as there is work would be most of the memory.
_QUEUES = f"""
WITH queues AS (
    SELECT device_id, context, stream, (row_number() OVER (ORDER BY device_id, context, stream) - 1)::INTEGER AS queue
    FROM (SELECT DISTINCT device_id, context, stream FROM _gpu_work WHERE {_HERE})
)"""
_WORK = f"""{_QUEUES}
SELECT (list_position({list(BOUNDS)}, CASE WHEN family = 'collective' THEN 'communication' WHEN kind = 'memory' THEN 'memory'
        WHEN kind = 'graph' THEN 'unknown' ELSE 'compute' END) - 1)::TINYINT AS bound,
    queue, start_ns, end_ns, launch_id, work_id
FROM _gpu_work AS w JOIN queues AS q ON q.device_id IS NOT DISTINCT FROM w.device_id
    AND q.context IS NOT DISTINCT FROM w.context AND q.stream IS NOT DISTINCT FROM w.stream
WHERE {_HERE} ORDER BY end_ns, start_ns, kind, work_id"""
# Texts are read once for each hash of them.
_TEXT_OF_WORK = f"""
SELECT hash(name, device_id, stream) AS text FROM _gpu_work WHERE {_HERE} ORDER BY end_ns, start_ns, kind, work_id"""
_TEXTS = f"""
SELECT hash(name, device_id, stream) AS text, first(name) AS name, first(device_id) AS device_id, first(stream) AS stream
FROM _gpu_work WHERE {_HERE} GROUP BY text ORDER BY text"""
# Calls that return when work on the GPU has ended: a copy awaits itself, the others what was launched before.
_CALLS = f"""
SELECT launch_id, coalesce(thread, 0) AS thread, start_ns, start_ns + duration_ns AS end_ns, CASE
    WHEN name IN ('cudaMemcpy', 'cudaMemcpyAsync', 'cudaMemcpy2D', 'cudaMemcpyToSymbol', 'cudaMemcpyFromSymbol', 'cuMemcpyDtoH',
        'cuMemcpyHtoD', 'cuMemcpyDtoHAsync', 'cuMemcpyHtoDAsync', 'hipMemcpy', 'hipMemcpyAsync', 'hipMemcpyWithStream')
        THEN {AWAITS_COPY}
    WHEN name IN ('cudaDeviceSynchronize', 'cudaStreamSynchronize', 'cudaEventSynchronize', 'cuCtxSynchronize',
        'cuStreamSynchronize', 'cuEventSynchronize', 'hipDeviceSynchronize', 'hipStreamSynchronize', 'hipEventSynchronize')
        THEN {AWAITS_WORK}
    WHEN name IN ('cudaStreamWaitEvent', 'cuStreamWaitEvent', 'hipStreamWaitEvent') THEN {WAITS_FOR_EVENT}
    ELSE 0 END::TINYINT AS waits
FROM api_calls WHERE {_HERE} AND start_ns IS NOT NULL AND duration_ns >= 0 ORDER BY start_ns, launch_id"""
# Of waits whose call is known: when the wait ended, the queue that is awaited, and since when what is launched there is not.
_WAITS = f"""{_QUEUES}, waits AS (
    SELECT launch_id, call_start_ns, kind, context, stream, recorded_start_ns,
        CASE WHEN kind = 'stream_wait_event' THEN 9223372036854775807 ELSE start_ns + duration_ns END AS end_ns,
        CASE WHEN kind = 'stream' THEN context ELSE recorded_context END AS awaited_context,
        CASE WHEN kind = 'stream' THEN stream ELSE recorded_stream END AS awaited_stream
    FROM _waits
    WHERE {_HERE} AND call_start_ns IS NOT NULL AND kind IN ('event', 'stream', 'stream_wait_event')
)
SELECT launch_id, call_start_ns, coalesce(end_ns, call_start_ns) AS end_ns, kind = 'stream_wait_event' AS by_stream,
    coalesce(min(q.queue), -1) AS queue, coalesce(min(a.queue), -1) AS awaited,
    CASE WHEN kind = 'stream' THEN call_start_ns ELSE coalesce(recorded_start_ns, 0) END AS until_ns,
    awaited_stream IS NOT NULL AND (kind = 'stream' OR recorded_start_ns IS NOT NULL) AS is_known
FROM waits AS w
LEFT JOIN queues AS q ON kind = 'stream_wait_event' AND q.context IS NOT DISTINCT FROM w.context AND q.stream = w.stream
LEFT JOIN queues AS a ON a.context IS NOT DISTINCT FROM w.awaited_context AND a.stream = w.awaited_stream
GROUP BY ALL ORDER BY call_start_ns, launch_id"""
_OPERATORS = f"""
SELECT {{columns}}
FROM ranges WHERE {_HERE} AND kind = 'operator' AND start_ns IS NOT NULL AND duration_ns >= 0 ORDER BY start_ns, range_id"""
_OPERATOR_TIMES = _OPERATORS.format(columns="coalesce(thread, 0) AS thread, start_ns, start_ns + duration_ns AS end_ns")
_RANGE = f"""
SELECT start_ns, start_ns + duration_ns AS end_ns, coalesce(thread, 0) AS thread
FROM ranges WHERE {_HERE} AND duration_ns >= 0 AND kind <> 'gpu_annotation'
    AND ($4::BIGINT IS NULL OR kind = 'step' AND step = $4) AND ($5::VARCHAR IS NULL OR contains(name, $5))
ORDER BY start_ns, range_id LIMIT 1"""


class ProcessPath(NamedTuple):
    """The path of one process in one window. who: its run, tool, rank, ...; work_ids: the rows behind the work of the path."""

    who: dict[str, Any]
    path: Path
    work_ids: pa.ChunkedArray

    @property
    def here(self) -> list[object]:
        """Return the values that a query takes for the process and window."""
        return [self.who[name] for name in ("profile_id", "process_id", "window_index")]


def paths(ask: Ask, which_step: int | None = None, range_text: str | None = None) -> Iterator[ProcessPath]:
    """Yield the critical path of each process and window. Raises UsageError where none has the range."""
    number, found = None if which_step is None else int(which_step), False
    whole = number is None and range_text is None
    for who in ask(_PROCESSES, []).to_pylist():
        here = [who["profile_id"], who["process_id"], who["window_index"]]
        within = None
        if not whole:
            ranges = ask(_RANGE, [*here, number, range_text]).to_pylist()
            if not ranges:
                continue
            within = ranges[0]["start_ns"], ranges[0]["end_ns"], ranges[0]["thread"]
        found = True
        yield _path(ask, who, here, within)
    if not whole and not found:
        asked = " and ".join([*([f"step {number}"] if number is not None else []), *([repr(range_text)] if range_text else [])])
        raise UsageError(f"no process has {asked}: SELECT DISTINCT kind, step, name FROM ranges")


def _path(ask: Ask, who: dict[str, Any], here: list[object], within: tuple[int, int, int] | None) -> ProcessPath:
    work = ask(_WORK, here)
    activity = Activity(work, ask(_CALLS, here), ask(_OPERATOR_TIMES, here), ask(_WAITS, here))
    return ProcessPath(who, walk(activity, within), work["work_id"])


def analyse(ask: Ask, *, which_step: int | None = None, range_text: str | None = None) -> pa.Table:
    """Return the critical path of each process and window, a row per segment. Raises UsageError where none has the range."""
    return pa.concat_tables([_SCHEMA.empty_table(), *tables(ask, which_step=which_step, range_text=range_text)])


def tables(ask: Ask, *, which_step: int | None = None, range_text: str | None = None) -> Iterator[pa.Table]:
    """Yield these rows, some 100,000 at a time."""
    for process in paths(ask, which_step, range_text):
        yield from _path_rows(ask, process)


def _path_rows(ask: Ask, process: ProcessPath) -> Iterator[pa.Table]:
    """Yield the rows of one path, in order of time."""
    backwards = list(process.path.segments())
    path_ns, position = sum(int((part.end - part.start).sum()) for part in backwards), 1
    describe = _Described(ask, process) if backwards else None
    while backwards and describe:
        path = Segments(*(column[::-1] for column in backwards.pop()))
        columns: dict[str, Any] = {name: pa.repeat(pa.scalar(value, _SCHEMA.field(name).type), len(path.start))
                                   for name, value in process.who.items()} | {
            "position": np.arange(position, position + len(path.start)),
            "bound_by": pa.array(BOUNDS).take(pa.array(path.bound)), "start_ns": path.start, "duration_ns": path.end - path.start,
            "path_ns": np.full(len(path.start), path_ns), "thread": nullable(path.thread), **describe.columns(path)}
        yield pa.table({field.name: columns[field.name] for field in _SCHEMA}, schema=_SCHEMA)
        position += len(path.start)


class _Described:
    """The device, the stream and the name of what each segment lies on; delays of work have no name."""

    def __init__(self, ask: Ask, process: ProcessPath) -> None:
        self._texts = ask(_TEXTS, process.here)
        self._text_of = np.searchsorted(self._texts["text"].to_numpy(), ask(_TEXT_OF_WORK, process.here)["text"].to_numpy())
        self._operators = ask(_OPERATORS.format(columns="name"), process.here)["name"].combine_chunks()

    def columns(self, path: Segments) -> dict[str, pa.Array]:
        """Return these columns of some segments."""
        known = path.work != MISSING
        on = pa.array(np.append(self._text_of, 0)[np.where(known, path.work, -1)], mask=~known)
        busy = pc.if_else(pa.array(path.bound < BOUNDS.index("cpu")), on, pa.scalar(None, pa.int64()))
        work = {name: self._texts[name].combine_chunks() for name in ("name", "device_id", "stream")}
        names = (work["name"].take(busy), self._operators.take(nullable(path.operator)))
        return {"device_id": work["device_id"].take(on).cast(pa.string()), "stream": work["stream"].take(on),
                "name": pc.coalesce(*(name.cast(pa.string()) for name in names))}
