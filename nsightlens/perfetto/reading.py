"""The rows of one process in the order of their starts, a bounded number at a time, with names and arguments as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.store.store import Store

FOREVER = (-(2**62), 2**62)
_SLICE = 200_000
"""Rows read at a time."""

HOST, GPU = "host", "gpu"

# Ids are text: JavaScript has no 64-bit integers. json_merge_patch leaves out what is NULL.
_HOST = """
SELECT
    start_ns, duration_ns, thread,
    CASE WHEN duration_ns IS NULL THEN 'i' WHEN kind = 'nvtx_start_end' OR end_thread IS NOT NULL THEN 'b' ELSE 'X' END AS sort,
    coalesce(depth, 0) AS level, range_id AS id, false AS is_call,
    coalesce(kind, 'range') AS category, to_json(coalesce(name, kind, 'range')) AS title,
    json_merge_patch('{}', to_json({
        range_id: range_id::VARCHAR, duration_ns: duration_ns, domain: domain, step: step, shapes: shapes, types: types,
        concrete_inputs: concrete_inputs, sequence: sequence, end_thread: end_thread, parent_id: parent_id::VARCHAR,
        unclosed: CASE WHEN duration_ns IS NULL AND kind <> 'nvtx_mark' THEN true END})) AS arguments
FROM ranges
WHERE process_id = $process AND kind <> 'gpu_annotation' AND start_ns BETWEEN $first AND $last
UNION ALL
SELECT
    start_ns, duration_ns, thread, CASE WHEN duration_ns IS NULL THEN 'i' ELSE 'X' END, 2147483647, launch_id, true,
    coalesce('cuda_' || api, 'api'), to_json(coalesce(name, 'API call')),
    json_merge_patch('{}', to_json({
        launch_id: launch_id::VARCHAR, duration_ns: duration_ns, correlation_id: correlation_id, return_value: return_value}))
FROM api_calls
WHERE process_id = $process AND start_ns BETWEEN $first AND $last
"""
_GPU = """
SELECT
    k.start_ns, k.duration_ns, k.device, k.context, k.stream, k.kernel_id AS id, 1 AS level,
    k.launch_id, a.start_ns AS launched_ns, a.duration_ns AS call_ns, a.thread AS launch_thread,
    CASE k.family WHEN 'collective' THEN 'kernel,collective' ELSE 'kernel' END AS category,
    to_json(coalesce(k.short_name, k.name, 'kernel')) AS title,
    json_merge_patch('{}', to_json({
        name: k.name, kernel_key: k.kernel_key, family: k.family, kernel_id: k.kernel_id::VARCHAR, duration_ns: k.duration_ns,
        queue_delay_ns: k.queue_delay_ns,
        grid: CASE WHEN k.grid_x IS NOT NULL THEN [k.grid_x, k.grid_y, k.grid_z] END,
        block: CASE WHEN k.block_x IS NOT NULL THEN [k.block_x, k.block_y, k.block_z] END,
        cluster: CASE WHEN k.cluster_x IS NOT NULL THEN [k.cluster_x, k.cluster_y, k.cluster_z] END,
        registers_per_thread: k.registers_per_thread, static_shared_bytes: k.static_shared_bytes,
        dynamic_shared_bytes: k.dynamic_shared_bytes, shared_bytes: k.shared_bytes,
        estimated_occupancy_pct: CASE WHEN isfinite(k.estimated_occupancy_pct) THEN k.estimated_occupancy_pct END,
        correlation_id: k.correlation_id, graph_id: k.graph_id, graph_node_id: k.graph_node_id::VARCHAR,
        step: k.step, phase: k.phase, op: k.op, op_shapes: k.op_shapes, module: k.module, range_path: k.range_path,
        collective: k.collective, message_bytes: k.message_bytes, group_size: k.group_size, group_name: k.group_name,
        group_seq: k.group_seq})) AS arguments
FROM kernels AS k
LEFT JOIN api_calls AS a ON k.launch_id = a.launch_id AND a.process_id = $process
WHERE k.process_id = $process AND k.start_ns IS NOT NULL AND coalesce(a.start_ns, k.start_ns) BETWEEN $first AND $last
UNION ALL
SELECT
    m.start_ns, m.duration_ns, m.device, m.context, m.stream, m.memory_op_id, 1, m.launch_id, a.start_ns, a.duration_ns, a.thread,
    coalesce(m.kind, 'memory'), to_json(concat_ws(' ', coalesce(m.kind, 'memory operation'), m.direction)),
    json_merge_patch('{}', to_json({
        name: m.name, memory_op_id: m.memory_op_id::VARCHAR, duration_ns: m.duration_ns, queue_delay_ns: m.queue_delay_ns,
        bytes: m.bytes, source_memory: m.source_memory, destination_memory: m.destination_memory,
        correlation_id: m.correlation_id, step: m.step, phase: m.phase, op: m.op, module: m.module, range_path: m.range_path}))
FROM memory_ops AS m
LEFT JOIN api_calls AS a ON m.launch_id = a.launch_id AND a.process_id = $process
WHERE m.process_id = $process AND m.start_ns IS NOT NULL AND coalesce(a.start_ns, m.start_ns) BETWEEN $first AND $last
UNION ALL
SELECT
    start_ns, duration_ns, device, context, stream, graph_execution_id, 1, NULL, NULL, NULL, NULL,
    'graph', to_json('CUDA graph (kernels not recorded)'),
    json_merge_patch('{}', to_json({
        graph_execution_id: graph_execution_id::VARCHAR, duration_ns: duration_ns, graph_id: graph_id,
        graph_exec_id: graph_exec_id, correlation_id: correlation_id}))
FROM graph_executions
WHERE process_id = $process AND start_ns BETWEEN $first AND $last
UNION ALL
SELECT
    f.start_ns, f.duration_ns, f.device, f.context, f.stream, f.host_function_id, 1, f.launch_id, a.start_ns, a.duration_ns,
    a.thread, 'host_function', to_json('host function'),
    json_merge_patch('{}', to_json({
        host_function_id: f.host_function_id::VARCHAR, duration_ns: f.duration_ns, kind: f.kind, correlation_id: f.correlation_id,
        graph_id: f.graph_id, graph_node_id: f.graph_node_id::VARCHAR}))
FROM host_functions AS f
LEFT JOIN api_calls AS a ON f.launch_id = a.launch_id AND a.process_id = $process
WHERE f.process_id = $process AND f.start_ns IS NOT NULL AND coalesce(a.start_ns, f.start_ns) BETWEEN $first AND $last
UNION ALL
SELECT
    start_ns, duration_ns, device, NULL, stream, range_id, 0, NULL, NULL, NULL, NULL,
    kind, to_json(coalesce(name, kind)),
    json_merge_patch('{}', to_json({range_id: range_id::VARCHAR, duration_ns: duration_ns}))
FROM ranges
WHERE process_id = $process AND kind = 'gpu_annotation' AND start_ns BETWEEN $first AND $last
"""
_UNPLACED = """
SELECT (SELECT count(*) FROM kernels WHERE process_id = $process AND start_ns IS NULL)
    + (SELECT count(*) FROM memory_ops WHERE process_id = $process AND start_ns IS NULL) AS rows
"""
_CONTEXTS = """
SELECT device, stream, list(DISTINCT context ORDER BY context) AS contexts
FROM (
    SELECT device, stream, context FROM kernels WHERE process_id = $process
    UNION ALL SELECT device, stream, context FROM memory_ops WHERE process_id = $process
    UNION ALL SELECT device, stream, context FROM graph_executions WHERE process_id = $process
    UNION ALL SELECT device, stream, context FROM host_functions WHERE process_id = $process
)
WHERE context IS NOT NULL
GROUP BY device, stream
"""
_SOURCES = {HOST: _HOST, GPU: _GPU}


@dataclass(frozen=True, slots=True)
class Slices:
    """Where the rows of a process lie: their number, first start, last end, and the starts at which each sort is cut.

    unplaced: kernels and memory operations whose start no clock shows: no timeline can hold them.
    """

    rows: int
    first_ns: int
    last_ns: int
    cuts: dict[str, list[int]]
    unplaced: int


class Drawn(Protocol):
    """What `rows` has to know of a process."""

    @property
    def process_id(self) -> str:
        """Return the key of the process."""

    @property
    def window(self) -> tuple[int, int]:
        """Return the first and the last start to draw."""

    @property
    def slices(self) -> Slices | None:
        """Return where its rows lie."""


def slices(store: Store, process_id: str, window: tuple[int, int]) -> Slices | None:
    """Return where the rows of a process lie; None where it has none."""
    cuts: dict[str, list[int]] = {}
    count, firsts, lasts = 0, [], []
    for sort, source in _SOURCES.items():
        query = f"""
            SELECT number // $size AS slice, count(*) AS rows, min(start_ns) AS first_ns,
                max(start_ns + coalesce(duration_ns, 0)) AS last_ns
            FROM (SELECT start_ns, duration_ns, row_number() OVER (ORDER BY start_ns) - 1 AS number FROM ({source}))
            GROUP BY slice ORDER BY slice
        """
        found = store.sql(query, _parameters(process_id, window) | {"size": _SLICE}).to_pylist()
        cuts[sort] = [row["first_ns"] for row in found]
        count += sum(row["rows"] for row in found)
        firsts += [row["first_ns"] for row in found]
        lasts += [row["last_ns"] for row in found]
    unplaced = store.sql(_UNPLACED, {"process": process_id}).to_pylist()[0]["rows"]
    return Slices(count, min(firsts), max(lasts), cuts, unplaced) if count else None


def contexts(store: Store, process_id: str) -> dict[tuple[int | None, int | None], list[int]]:
    """Return the contexts in which each (device, stream) of a process occurs, ascending."""
    found = store.sql(_CONTEXTS, {"process": process_id}).to_pylist()
    return {(row["device"], row["stream"]): row["contexts"] for row in found}


def rows(store: Store, sort: str, process: Drawn) -> Iterator[pa.Table]:
    """Yield the rows of one sort (HOST or GPU) in the order of their starts, the longest first, some at a time."""
    assert process.slices
    query = f"""
        FROM ({_SOURCES[sort]}) WHERE start_ns >= $from_ns AND start_ns < $to_ns
        ORDER BY start_ns, duration_ns DESC NULLS LAST, level, id
    """
    cuts = [*process.slices.cuts[sort], FOREVER[1]]
    for from_ns, to_ns in pairwise(cuts):
        if from_ns < to_ns:
            yield store.sql(query, _parameters(process.process_id, process.window) | {"from_ns": from_ns, "to_ns": to_ns})


def _parameters(process_id: str, window: tuple[int, int]) -> dict[str, object]:
    return {"process": process_id, "first": window[0], "last": window[1]}
