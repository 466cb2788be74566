"""Kernels, memory operations, graph executions and API calls: a batch of nsys's table -> a batch of ours."""

from __future__ import annotations

import re
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from nsightlens import schema
from nsightlens.readers.nsys.columns import Names, batch_of, coded, constant, integers, labelled, narrow, raw, threads, times
from nsightlens.readers.nsys.processes import Processes
from nsightlens.readers.nsys.source import Kind

_WHERE = {"device": "deviceId", "context": "contextId", "stream": "streamId", "correlation_id": "correlationId"}
_KERNEL_INTEGERS = _WHERE | {
    "grid_x": "gridX", "grid_y": "gridY", "grid_z": "gridZ",
    "block_x": "blockX", "block_y": "blockY", "block_z": "blockZ",
    "cluster_x": "clusterX", "cluster_y": "clusterY", "cluster_z": "clusterZ",
    "registers_per_thread": "registersPerThread",
    "static_shared_bytes": "staticSharedMemory", "dynamic_shared_bytes": "dynamicSharedMemory",
    "graph_id": "graphId", "graph_node_id": "graphNodeId",
}
_MEMORY_INTEGERS = _WHERE | {"bytes": "bytes", "graph_node_id": "graphNodeId"}
_DECOMPRESSION_INTEGERS = _WHERE | {"bytes": "sourceBytes"}
_GRAPH_INTEGERS = _WHERE | {"graph_id": "graphId", "graph_exec_id": "graphExecId"}


def _columns(integer_columns: dict[str, str], **others: Kind) -> dict[str, Kind]:
    kinds: dict[str, Kind] = dict.fromkeys(("start", "end", "globalPid", *integer_columns.values()), "integer")
    return kinds | others


KERNEL_COLUMNS = _columns(_KERNEL_INTEGERS, demangledName="name", shortName="name", mangledName="name")
MEMCPY_COLUMNS = _columns(_MEMORY_INTEGERS, copyKind="integer", srcKind="integer", dstKind="integer", migrationCause="integer",
                          virtualAddress="integer")
MEMSET_COLUMNS = _columns(_MEMORY_INTEGERS, memKind="integer")
DECOMPRESSION_COLUMNS = _columns(_DECOMPRESSION_INTEGERS)
GRAPH_COLUMNS = _columns(_GRAPH_INTEGERS)
API_COLUMNS: dict[str, Kind] = {
    **dict.fromkeys(("start", "end", "eventClass", "globalTid", "correlationId", "returnValue"), "integer"), "nameId": "name",
}

_DIRECTION = {1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP",
              11: "HtoD", 12: "DtoH", 13: "DtoD"}
_MIGRATIONS = pa.array([11, 12, 13], pa.int64())
_SIDE = {"H": "Host", "D": "Device", "A": "Array", "P": "Peer"}
_COPY_LABEL = {0: "[CUDA memcpy Unknown]"} | {
    code: f"[CUDA memcpy {'Unified ' if code > 10 else ''}{_SIDE[way[0]]}-to-{_SIDE[way[3]]}]"
    for code, way in _DIRECTION.items()
}
_MEMORY = {0: "pageable", 1: "pinned", 2: "device", 3: "array", 4: "managed", 5: "device_static", 6: "managed_static"}
_CAUSE = {0: "unknown", 1: "prefetch", 2: "page_fault", 3: "speculative_prefetch", 4: "eviction", 5: "access_counters"}
_API = {0: "runtime", 1: "driver"}
_API_VERSION = re.compile(r"_v\d+$")
_LAUNCH = re.compile(r"cu(da)?(Launch(?!HostFunc)|GraphLaunch)")
Launches = Counter[tuple[str, int | None]]
"""Calls that launch kernels or graphs, by name and return code (None: not recorded)."""


def kernels(
    batch: pa.RecordBatch, processes: Processes, base_ns: int, names: dict[str, Names], tally: Counter[str],
) -> pa.RecordBatch:
    """Return rows of `kernels` from CUPTI_ACTIVITY_KIND_KERNEL."""
    columns = {"process_index": processes.index(raw(batch, "globalPid")), **times(batch, base_ns, tally)}
    columns |= integers(batch, schema.KERNELS, _KERNEL_INTEGERS, tally)
    for axis in ("cluster_x", "cluster_y", "cluster_z"):  # 0 stands for a launch without clusters
        columns[axis] = pc.if_else(pc.greater(columns[axis], 0), columns[axis], None)
    columns["shared_bytes"] = pc.add(columns["static_shared_bytes"], columns["dynamic_shared_bytes"])
    tally["graph_nodes"] += batch.num_rows - columns["graph_node_id"].null_count
    columns["name"] = names["name"].encode(_first_of(batch, "demangledName", "shortName"))
    columns["mangled_name"] = names["mangled_name"].encode(raw(batch, "mangledName"))
    tally["missing_name"] += columns["name"].null_count
    return batch_of(columns)


def copies(batch: pa.RecordBatch, processes: Processes, base_ns: int, tally: Counter[str]) -> pa.RecordBatch:
    """Return rows of `memory_ops` from CUPTI_ACTIVITY_KIND_MEMCPY.

    Unified-memory migrations happen outside streams, without a launching call: the zeros that the tool writes there are NULL.
    """
    columns = {"process_index": processes.index(raw(batch, "globalPid")), **times(batch, base_ns, tally)}
    columns |= integers(batch, schema.MEMORY_OPS, _MEMORY_INTEGERS, tally)
    copy_kind = raw(batch, "copyKind")
    migrated = pc.is_in(copy_kind, value_set=_MIGRATIONS)
    if pc.any(migrated).as_py():
        for name in ("context", "stream", "correlation_id"):
            columns[name] = pc.if_else(migrated, None, columns[name])
        columns["migration_cause"] = labelled(pc.if_else(migrated, raw(batch, "migrationCause"), None), _CAUSE, "cause")
        columns["address"] = pc.if_else(migrated, raw(batch, "virtualAddress"), None)
    columns["kind"] = coded(migrated.cast(pa.int64()), {0: "memcpy", 1: "migration"})
    columns["direction"] = coded(copy_kind, _DIRECTION)
    columns["name"] = coded(copy_kind, _COPY_LABEL)
    columns["source_memory"] = coded(raw(batch, "srcKind"), _MEMORY)
    columns["destination_memory"] = coded(raw(batch, "dstKind"), _MEMORY)
    return batch_of(columns)


def sets(batch: pa.RecordBatch, processes: Processes, base_ns: int, tally: Counter[str]) -> pa.RecordBatch:
    """Return rows of `memory_ops` from CUPTI_ACTIVITY_KIND_MEMSET."""
    columns = {"process_index": processes.index(raw(batch, "globalPid")), **times(batch, base_ns, tally)}
    columns |= integers(batch, schema.MEMORY_OPS, _MEMORY_INTEGERS, tally)
    columns["kind"] = constant("memset", batch.num_rows)
    columns["name"] = constant("[CUDA memset]", batch.num_rows)
    columns["destination_memory"] = coded(raw(batch, "memKind"), _MEMORY)
    return batch_of(columns)


def decompressions(batch: pa.RecordBatch, processes: Processes, base_ns: int, tally: Counter[str]) -> pa.RecordBatch:
    """Return rows of `memory_ops` from CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS (cuMemBatchDecompressAsync): a batch of decompressions
    each."""
    columns = {"process_index": processes.index(raw(batch, "globalPid")), **times(batch, base_ns, tally)}
    columns |= integers(batch, schema.MEMORY_OPS, _DECOMPRESSION_INTEGERS, tally)
    columns["kind"] = constant("decompression", batch.num_rows)
    columns["name"] = constant("[CUDA memory decompression]", batch.num_rows)
    return batch_of(columns)


def graph_executions(batch: pa.RecordBatch, processes: Processes, base_ns: int, tally: Counter[str]) -> pa.RecordBatch:
    """Return rows of `graph_executions` from CUPTI_ACTIVITY_KIND_GRAPH_TRACE."""
    columns = {"process_index": processes.index(raw(batch, "globalPid")), **times(batch, base_ns, tally)}
    return batch_of(columns | integers(batch, schema.GRAPH_EXECUTIONS, _GRAPH_INTEGERS, tally))


def api_calls(
    batch: pa.RecordBatch, processes: Processes, base_ns: int, names: Names, tally: Counter[str], launches: Launches,
) -> pa.RecordBatch:
    """Return rows of `api_calls` from CUPTI_ACTIVITY_KIND_RUNTIME; count those that launch.

    With --cudabacktrace each call stands there a second time, under another event class: only the two classes of calls count.
    """
    event_class = raw(batch, "eventClass")
    is_call = pc.or_(pc.is_null(event_class), pc.is_in(event_class, value_set=pa.array(list(_API), pa.int64())))
    if not pc.all(is_call).as_py():
        kept = batch.filter(is_call)
        tally["duplicate_calls"] += batch.num_rows - kept.num_rows
        batch = kept
    global_tid = raw(batch, "globalTid")
    name = names.encode(raw(batch, "nameId"))
    tally["missing_name"] += name.null_count
    returned = narrow(raw(batch, "returnValue"), pa.int32(), tally)
    _count_launches(name, returned, launches)
    return batch_of({
        "process_index": processes.index(global_tid),
        "thread": threads(global_tid),
        **times(batch, base_ns, tally),
        "name": name,
        "api": coded(raw(batch, "eventClass"), _API),
        "correlation_id": raw(batch, "correlationId"),
        "return_value": returned,
    })


def _count_launches(name: pa.DictionaryArray, returned: pa.Array, launches: Launches) -> None:
    named = name.dictionary.to_pylist()
    codes = [code for code, text in enumerate(named) if text and _LAUNCH.match(text)]
    launching = pc.is_in(name.indices, value_set=pa.array(codes, name.indices.type))
    calls = pa.table({"code": name.indices, "returned": returned}).filter(launching)
    for each in calls.group_by(["code", "returned"]).aggregate([([], "count_all")]).to_pylist():
        launches[named[each["code"]], each["returned"]] += each["count_all"]


def without_version(name: str) -> str:
    """Return the name of an API function without the suffix of its API version."""
    return _API_VERSION.sub("", name)


def _first_of(batch: pa.RecordBatch, preferred: str, other: str) -> pa.Array:
    """Return the ids (or texts) of the preferred column, of the other one where it has none."""
    first, second = (batch.column(name) if name in batch.schema.names else None for name in (preferred, other))
    if first is None:
        return raw(batch, other)
    if second is None or not first.null_count or first.type != second.type:
        return first
    return pc.coalesce(first, second)
