"""What the host did beside CUDA's API: waits, event records, host functions, OS calls, overhead.
A batch of nsys's table -> a batch of ours."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from nsightlens import schema
from nsightlens.readers.nsys.columns import Names, batch_of, coded, constant, integers, labelled, moments, raw, threads, times
from nsightlens.readers.nsys.processes import Processes
from nsightlens.readers.nsys.source import Kind

_WHERE = {"device": "deviceId", "context": "contextId", "stream": "streamId", "correlation_id": "correlationId"}
_EVENT = {"event_id": "eventId", "event_record_id": "eventSyncId"}
_NODE = {"graph_id": "graphId", "graph_node_id": "graphNodeId"}
_NOT_APPLICABLE = (1 << 32) - 1
"""What CUPTI writes for a stream or event where there is none."""


def _integers(*columns: str) -> dict[str, Kind]:
    return dict.fromkeys(columns, "integer")


SYNCHRONIZATION_COLUMNS = _integers("start", "end", "globalPid", "syncType", *_WHERE.values(), *_EVENT.values())
CUDA_EVENT_COLUMNS = _integers("timestamp", "globalPid", *_WHERE.values(), *_EVENT.values())
HOST_FUNCTION_COLUMNS = _integers("start", "end", "globalPid", *_WHERE.values(), *_NODE.values())
OS_COLUMNS: dict[str, Kind] = {
    **_integers("start", "end", "eventClass", "globalTid", "returnValue", "nestingLevel"), "nameId": "name",
}
OVERHEAD_COLUMNS: dict[str, Kind] = {
    **_integers("start", "end", "globalTid", "correlationId", "overheadType"), "nameId": "name",
}

_WAITED_FOR = {0: "unknown", 1: "event", 2: "stream_wait_event", 3: "stream", 4: "context"}
_WAITS = ("context", "event", "stream", "stream_wait_event")
"""What a wait is for, by which of the two it names: neither, an event, a stream, a stream that waits for an event. The number of
the type does not say it: up to 2025 exporters wrote 1 for a context, 2 for an event or a stream, 3 for the other two."""
_OS_KIND = {27: "call", 31: "started", 32: "finished"}
_OVERHEAD = {
    0: "unknown", 1: "unknown", 2: "driver_compiler", 3: "buffer_flush", 4: "instrumentation", 5: "resource", 6: "module_loading",
    7: "function_loading", 8: "command_buffer_full",
}
_OVERHEAD_SOURCE = {2: "cuda", 3: "profiler", 4: "profiler", 5: "profiler", 6: "cuda", 7: "cuda", 8: "cuda"}
_OWN = {0: "own"} | {code: kind for code, kind in _OVERHEAD.items() if code}
"""PROFILER_OVERHEAD has no type (0) for what is not CUPTI's."""
_OVERHEAD_TYPE = {"unknown": 1, "cupti buffer flush": 3, "cupti instrumentation": 4, "cupti resource management": 5}
"""The types by their names, for reports of before 2025 that have names only."""


def synchronizations(batch: pa.RecordBatch, processes: Processes, base_ns: int, tally: Counter[str]) -> pa.RecordBatch:
    """Return rows of `synchronizations` from CUPTI_ACTIVITY_KIND_SYNCHRONIZATION."""
    columns = _where(batch, schema.SYNCHRONIZATIONS, tally)
    return batch_of({
        "process_index": processes.index(raw(batch, "globalPid")),
        **times(batch, base_ns, tally),
        **columns,
        "kind": _waited_for(batch, columns),
    })


def _waited_for(batch: pa.RecordBatch, columns: dict[str, pa.Array]) -> pa.Array:
    """Return what each wait is for. A type that is unknown stays so; so does one of a table that lacks streams and events."""
    type_ = raw(batch, "syncType")
    by_type = labelled(type_, _WAITED_FOR, "type").cast(pa.string())
    if not {"streamId", "eventId"} <= set(batch.schema.names):
        return by_type.dictionary_encode()
    stream, event = (columns[name].is_valid().cast(pa.int8()) for name in ("stream", "event_id"))
    known = pc.and_(pc.greater(type_, 0), pc.less_equal(type_, max(_WAITED_FOR)))
    return pc.if_else(known, pa.array(_WAITS).take(pc.add(pc.multiply(stream, 2), event)), by_type).dictionary_encode()


def cuda_events(batch: pa.RecordBatch, processes: Processes, base_ns: int, tally: Counter[str]) -> pa.RecordBatch:
    """Return rows of `cuda_events` from CUPTI_ACTIVITY_KIND_CUDA_EVENT; a timestamp of 0 stands for none."""
    at = raw(batch, "timestamp")
    return batch_of({
        "process_index": processes.index(raw(batch, "globalPid")),
        **_where(batch, schema.CUDA_EVENTS, tally),
        "at_ns": moments(pc.if_else(pc.not_equal(at, 0), at, None), base_ns, tally),
    })


def host_functions(batch: pa.RecordBatch, processes: Processes, base_ns: int, tally: Counter[str]) -> pa.RecordBatch:
    """Return rows of `host_functions` from CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH: a node names its graph, a launch
    none."""
    columns = integers(batch, schema.HOST_FUNCTIONS, _WHERE | _NODE, tally)
    is_node = pc.or_(columns["graph_id"].is_valid(), columns["graph_node_id"].is_valid())
    return batch_of({
        "process_index": processes.index(raw(batch, "globalPid")),
        **times(batch, base_ns, tally),
        **columns,
        "kind": coded(is_node.cast(pa.int64()), {0: "launch", 1: "graph_node"}),
    })


def os_calls(batch: pa.RecordBatch, processes: Processes, base_ns: int, names: Names, tally: Counter[str]) -> pa.RecordBatch:
    """Return rows of `os_calls` from OSRT_API."""
    global_tid = raw(batch, "globalTid")
    columns = integers(batch, schema.OS_CALLS, {"nesting_level": "nestingLevel", "return_value": "returnValue"}, tally)
    return batch_of({
        "process_index": processes.index(global_tid),
        "thread": threads(global_tid),
        **times(batch, base_ns, tally),
        **columns,
        "name": names.encode(raw(batch, "nameId")),
        "kind": labelled(raw(batch, "eventClass"), _OS_KIND, "class"),
    })


def cuda_overheads(
    batch: pa.RecordBatch, processes: Processes, base_ns: int, names: Names, tally: Counter[str],
) -> pa.RecordBatch:
    """Return rows of `overheads` from CUPTI_ACTIVITY_KIND_OVERHEAD: what CUPTI says of CUDA and of itself."""
    columns = _overheads(batch, processes, base_ns, names, tally)
    type_ = raw(batch, "overheadType")
    source = pa.array([_OVERHEAD_SOURCE.get(code) for code in type_.to_pylist()], pa.string())
    return batch_of(columns | {"source": source.dictionary_encode(), "kind": labelled(type_, _OVERHEAD, "type")})


def profiler_overheads(
    batch: pa.RecordBatch, processes: Processes, base_ns: int, names: Names, tally: Counter[str],
) -> pa.RecordBatch:
    """Return rows of `overheads` from PROFILER_OVERHEAD: what nsys says of itself, of CUPTI within it too."""
    columns = _overheads(batch, processes, base_ns, names, tally)
    type_ = raw(batch, "overheadType")
    if "overheadType" not in batch.schema.names:
        named = [(name or "").lower().replace(":", "") for name in columns["name"].to_pylist()]
        type_ = pa.array([_OVERHEAD_TYPE.get(name, 0) for name in named], pa.int64())
    return batch_of(columns | {"source": constant("profiler", batch.num_rows), "kind": labelled(type_, _OWN, "type")})


def _overheads(
    batch: pa.RecordBatch, processes: Processes, base_ns: int, names: Names, tally: Counter[str],
) -> dict[str, pa.Array]:
    global_tid = raw(batch, "globalTid")
    return {
        "process_index": processes.index(global_tid),
        "thread": threads(global_tid),
        **times(batch, base_ns, tally),
        "name": names.encode(raw(batch, "nameId")),
        "correlation_id": raw(batch, "correlationId"),
    }


def _where(batch: pa.RecordBatch, table: schema.Table, tally: Counter[str]) -> dict[str, pa.Array]:
    """Return device, context, stream, event and correlation id; what CUPTI says does not apply is NULL."""
    columns = integers(batch, table, _WHERE | _EVENT, tally)
    for name in ("stream", *_EVENT):
        columns[name] = pc.if_else(pc.not_equal(columns[name], _NOT_APPLICABLE), columns[name], None)
    record = columns["event_record_id"]  # 0, too, for waits without an event
    columns["event_record_id"] = pc.if_else(pc.not_equal(record, 0), record, None)
    return columns
