"""What torch_tb_profiler 0.4.3 makes of the rows of one profile, as named changes to our rows.

Each function changes the rows of a catalog in one way in which the plugin reads a trace differently; our views over the
changed rows then give the plugin's figures. `as_the_plugin_reads` applies them all, in order.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

COLLECTIVES = tuple(f"{library}:{name}" for library in ("nccl", "gloo")
                    for name in ("broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter"))
"""The only operations that the plugin takes for communication."""

TENSOR_CORE_NAMES = ("h884", "s884", "h1688", "s1688", "hmma", "i8816", "16816", "dgrad_1x1_stride_2x2",
                     "first_layer_wgrad_kernel", "conv1x1", "conv2d_c1_k1", "direct_group", "xmma_implicit_gemm",
                     "xmma_sparse_conv", "xmma_warp_specialized_implicit_gemm", "xmma_gemm", "xmma_sparse_gemm", "c1688")
"""What the plugin looks for in the name of a kernel on tensor cores."""

ELIGIBLE = (
    "_convolution", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "convolution", "cudnn_convolution", "cudnn_convolution_transpose", "prelu", "addmm", "addmv",
    "addr", "matmul", "mm", "mv", "linear", "addbmm", "baddbmm", "bmm", "chain_matmul", "linalg_multi_dot",
    "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
    "addmm_", "cudnn_convolution_transpose_backward", "cudnn_convolution_backward_weight",
    "cudnn_convolution_transpose_backward_weight", "cudnn_convolution_transpose_backward_input",
    "cudnn_convolution_backward_input", "cudnn_convolution_backward",
)
ELIGIBLE_BACKWARD = frozenset(("CudnnConvolutionBackward", "BmmBackward0", "CudnnConvolutionTransposeBackward", "MmBackward",
                               "AddmvBackward", "MvBackward", "AddmmBackward", "AddbmmBackward"))
"""The operators that the plugin lists as eligible for tensor cores."""

UNLISTED = "not listed by the plugin: "
BYTES = {"long int": 8, "float": 4, "int": 4, "c10::Half": 2, "c10::BFloat16": 2, "unsigned char": 1}

Connection = duckdb.DuckDBPyConnection


def as_the_plugin_reads(con: Connection, mode: str) -> float:
    """Change the rows of a catalog with one profile. mode: asis or gitmap (cuda_runtime mapped). Returns units per us."""
    generation = _one(con, "SELECT regexp_extract(format, 'G[0-9]') FROM profiles")
    units = double_us(con, generation)
    steps_of_both_tracks(con)
    runtime_by_category(con, mode, generation)
    steps_in_turn(con)
    communication_by_external_id(con, generation)
    tree_of_nodes(con)
    operators_by_external_id(con, generation)
    merged_calls(con)
    tensor_cores_by_old_names(con)
    operators_by_old_names(con)
    step_of_the_operators(con)
    return units


def double_us(con: Connection, generation: str) -> float:
    """Put all edges where the plugin's doubles of microseconds put them; a ns then is a unit of the finest double there is.

    G5 counts from a base that is a multiple of 7,889,238 s, other generations from the epoch. An end is start + duration,
    rounded. Generations with whole microseconds are exact.
    """
    origin = _one(con, "SELECT origin_epoch_ns FROM profiles")
    offset = origin % (7_889_238 * 10**9) if generation in ("G5", "G6") else origin
    earliest = _one(con, "SELECT min(start_ns) FROM (SELECT start_ns FROM kernels UNION ALL SELECT start_ns FROM ranges "
                         "UNION ALL SELECT start_ns FROM api_calls UNION ALL SELECT start_ns FROM memory_ops)")
    units = 1 / math.ulp((offset + earliest) / 1000) if generation in ("G4", "G5", "G6") else 1.0
    zero = int((offset + earliest) / 1000)
    for table in ("kernels", "memory_ops", "api_calls", "ranges"):
        rows = con.execute(f"SELECT rowid, start_ns, duration_ns FROM {table} WHERE duration_ns >= 0").fetchall()
        moved = []
        for row, start, duration in rows:
            first = (offset + start) / 1000  # a quotient of integers is rounded once, as the decimal text is
            last = first + duration / 1000
            edges = [(edge - zero) * units for edge in (first, last)]
            assert all(edge.is_integer() for edge in edges)
            moved.append((int(edges[0]), int(edges[1]) - int(edges[0]), row))
        _update(con, table, ("start_ns", "duration_ns"), moved)
    return units


def steps_of_both_tracks(con: Connection) -> None:
    """A ProfilerStep on the GPU track is a step as well, beside that of the host."""
    con.execute("UPDATE ranges SET kind = 'step', step = regexp_extract(name, '[0-9]+$')::BIGINT "
                "WHERE kind = 'gpu_annotation' AND starts_with(name, 'ProfilerStep#')")


def step_of_the_operators(con: Connection) -> None:
    """A trace without steps has one: the span of its operators, called 0."""
    con.execute("""
        INSERT INTO ranges BY NAME
        SELECT any_value(run) AS run, any_value(tool) AS tool, profile_id, process_id, window_index, -1 AS range_id,
            'step' AS kind, 0 AS step, min(start_ns) AS start_ns, max(start_ns + duration_ns) - min(start_ns) AS duration_ns
        FROM ranges WHERE kind = 'operator' AND duration_ns >= 0 AND NOT EXISTS (FROM ranges WHERE kind = 'step')
        GROUP BY profile_id, process_id, window_index""")


def runtime_by_category(con: Connection, mode: str, generation: str) -> None:
    """0.4.3 knows the category Runtime, not cuda_runtime (gitmap adds it), and never cuda_driver."""
    con.execute("DELETE FROM api_calls WHERE api = 'driver'")
    if mode == "asis" and generation != "G1":
        con.execute("DELETE FROM api_calls")
    for table in ("kernels", "memory_ops"):
        con.execute(f"UPDATE {table} SET launch_id = NULL WHERE launch_id NOT IN (SELECT launch_id FROM api_calls)")


def steps_in_turn(con: Connection) -> None:
    """A launch belongs to the first step that has not ended: where launches are known, a step begins after the one before."""
    if not _one(con, "SELECT count(launch_id) FROM kernels"):
        return
    rows = con.execute("SELECT range_id, start_ns, start_ns + duration_ns FROM ranges WHERE kind = 'step' "
                       "ORDER BY start_ns, range_id").fetchall()
    moved = []
    for (_, _, before), (step, start, end) in itertools.pairwise(rows):
        moved.append((max(start, before), max(end - max(start, before), 0), step))
    _update(con, "ranges", ("start_ns", "duration_ns"), moved, key="range_id")


def per_step(con: Connection, query: str) -> list[dict[str, Any]]:
    """Return the rows of a view of steps; steps without launches are each asked for alone: the plugin lets them overlap."""
    query_of_steps = "SELECT range_id FROM ranges WHERE kind = 'step' ORDER BY start_ns, range_id"
    steps = [step for step, in con.execute(query_of_steps).fetchall()]
    if _one(con, "SELECT count(launch_id) FROM kernels") or not steps:
        return rows_of(con, query)
    found = []
    for step in steps:
        con.execute("UPDATE ranges SET kind = 'other step' WHERE kind = 'step' AND range_id <> ?", [step])
        found += rows_of(con, query)
        con.execute("UPDATE ranges SET kind = 'step' WHERE kind = 'other step'")
    return found


def rows_of(con: Connection, query: str) -> list[dict[str, Any]]:
    """Return the rows of a query as dicts."""
    result = con.execute(query)
    names = [column[0] for column in result.description or []]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def communication_by_external_id(con: Connection, generation: str) -> None:
    """Only ten names communicate, and the kernels with their External id; other annotations are not read at all."""
    con.execute("UPDATE ranges SET kind = 'annotation' WHERE kind = 'gpu_annotation' AND name IN ?", [list(COLLECTIVES)])
    con.execute("DELETE FROM ranges WHERE kind IN ('annotation', 'gpu_annotation') AND name NOT IN ?", [list(COLLECTIVES)])
    con.execute("UPDATE ranges SET name = '_' || name WHERE kind = 'operator' AND starts_with(name, 'nccl:') AND name NOT IN ?",
                [list(COLLECTIVES)])
    con.execute(f"UPDATE kernels SET family = CASE WHEN {_external(generation)} IN "
                "(SELECT external_id FROM ranges WHERE name IN ?) THEN 'collective' ELSE 'other' END", [list(COLLECTIVES)])


def tree_of_nodes(con: Connection) -> None:
    """Rebuild the operators' parents. Nodes are operators, steps, modules and collectives; of two that cross, the later has no
    place: `without_crossing_calls` forgets it, once the steps have been looked at."""
    nodes = con.execute("SELECT thread, range_id, start_ns, start_ns + duration_ns, kind FROM ranges WHERE duration_ns >= 0 "
                        "AND thread IS NOT NULL ORDER BY thread, start_ns, duration_ns DESC, range_id").fetchall()
    con.execute("UPDATE ranges SET op_parent_id = NULL")
    con.execute("UPDATE ranges SET kind = 'operator' WHERE kind = 'annotation' AND thread IS NOT NULL")
    stack: list[tuple[int, int, str]] = []
    thread, found, crossing = None, [], []
    for tid, node, start, end, kind in nodes:
        if tid != thread:
            thread, stack = tid, []
        while stack and start >= stack[-1][1]:
            stack.pop()
        if stack and end > stack[-1][1]:
            crossing.append(node)
            continue
        if stack and stack[-1][2] in ("operator", "annotation"):
            found.append((stack[-1][0], node))
        stack.append((node, end, kind))
    _update(con, "ranges", ("op_parent_id",), found, key="range_id")
    con.execute("CREATE OR REPLACE TEMP TABLE crossing AS SELECT unnest(?::BIGINT[]) AS range_id", [crossing])


def without_crossing_calls(con: Connection) -> None:
    """Forget the calls that have no place in the tree, with what they launched."""
    for table in ("kernels", "memory_ops", "api_calls"):
        con.execute(f"UPDATE {table} SET op_range_id = NULL WHERE op_range_id IN (FROM crossing)")
    con.execute("DELETE FROM ranges WHERE range_id IN (FROM crossing)")


def operators_by_external_id(con: Connection, generation: str) -> None:
    """A call belongs to the node with its External id: in G2 and G3 that is its correlation id, and the node any other."""
    con.execute("UPDATE api_calls SET op_range_id = NULL")
    con.execute("UPDATE kernels SET op_range_id = NULL")
    con.execute("UPDATE memory_ops SET op_range_id = NULL")
    con.execute("CREATE OR REPLACE TEMP TABLE node AS SELECT external_id AS link, arg_min(range_id, start_ns) AS range_id, "
                "arg_min(name IN ?, start_ns) AS annotation FROM ranges WHERE external_id IS NOT NULL AND thread IS NOT NULL "
                "GROUP BY external_id", [list(COLLECTIVES)])
    con.execute(f"UPDATE api_calls SET op_range_id = n.range_id FROM node AS n WHERE n.link = {_external(generation)}")
    con.execute("UPDATE api_calls SET op_range_id = NULL WHERE op_range_id IN (SELECT range_id FROM node WHERE annotation)")
    for table in ("kernels", "memory_ops"):
        con.execute(f"UPDATE {table} SET op_range_id = c.op_range_id FROM api_calls AS c WHERE c.launch_id = {table}.launch_id")


def merged_calls(con: Connection) -> None:
    """An operator that calls nothing but itself is one call, which made the inner one's API calls and not its own."""
    rows = con.execute("SELECT range_id, op_parent_id, name, kind FROM ranges "
                       "WHERE kind IN ('operator', 'annotation')").fetchall()
    children: dict[int, list[int]] = defaultdict(list)
    for node, parent, *_ in rows:
        children[parent].append(node)
    named = {node: (name, kind) for node, _, name, kind in rows}
    into: dict[int, int] = {}
    for node, parent, *_ in sorted(rows):
        if parent in named and children[parent] == [node] and named[node] == named[parent] and named[node][1] == "operator":
            into[node] = parent
    roots = []
    for node in into:
        root = node
        while root in into:
            root = into[root]
        roots.append((root, node))
    for table in ("api_calls", "kernels", "memory_ops"):
        con.execute(f"UPDATE {table} SET op_range_id = NULL WHERE op_range_id IN ?", [sorted(set(into.values()))])
        _update(con, table, ("op_range_id",), roots, key="op_range_id")
    _update(con, "ranges", ("op_parent_id",), roots, key="op_parent_id")
    con.execute("DELETE FROM ranges WHERE range_id IN ?", [sorted(into)])


def tensor_cores_by_old_names(con: Connection) -> None:
    """Kernels run on tensor cores if their name has one of 18 words, the newest for Ampere; all others do not."""
    words = " OR ".join("contains(name, ?)" for _ in TENSOR_CORE_NAMES)
    con.execute(f"UPDATE kernels SET tensor_cores = ({words})", list(TENSOR_CORE_NAMES))


def operators_by_old_names(con: Connection) -> None:
    """An operator is eligible for tensor cores by a fixed list, without attention and newer spellings."""
    listed = [f"aten::{name}" for name in ELIGIBLE] + list(ELIGIBLE_BACKWARD)
    con.execute("UPDATE ranges SET name = ? || name WHERE kind = 'operator' AND name NOT IN ? "
                "AND regexp_matches(name, '^aten::|Backward[0-9]*$') AND regexp_matches(name, 'conv|attention|scaled|grouped|"
                "Backward')", [UNLISTED, listed])


def without_trailing_steps(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop the last steps without GPU work, and the last with less than 80 % of that of the step before; never the only one."""
    last = max((place for place, row in enumerate(rows) if row["gpu_activities"]), default=None)
    if len(rows) < 2 or last is None:
        return rows
    if last and rows[last - 1]["gpu_activities"] * 0.8 > rows[last]["gpu_activities"]:
        last -= 1
    return rows[: last + 1]


def collectives_on_the_host(con: Connection) -> None:
    """A collective is its host range (and the kernels with its External id); its bytes are those of the range's inputs."""
    rows = con.execute("SELECT run, tool, profile_id, process_id, window_index, range_id, start_ns, duration_ns, name, shapes, "
                       "types FROM ranges WHERE name IN ?", [list(COLLECTIVES)]).fetchall()
    con.execute("DELETE FROM kernels")
    for *where, range_id, start, duration, name, shapes, types in rows:
        sizes = [math.prod(dims) * BYTES.get(kind, 0) for dims, kind in zip(json.loads(shapes), json.loads(types), strict=True)]
        con.execute("INSERT INTO kernels (run, tool, profile_id, process_id, window_index, kernel_id, start_ns, duration_ns, "
                    "name, short_name, collective, family, message_bytes) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'collective', ?)",
                    [*where, range_id, start, duration, name, name, name, sum(sizes)])


def _external(generation: str) -> str:
    """Return the column that holds what the file calls External id."""
    return "correlation_id" if generation in ("G2", "G3") else "external_id"


def _one(con: Connection, query: str) -> Any:
    (value,), = con.execute(query).fetchall()
    return value


def _update(con: Connection, table: str, columns: tuple[str, ...], rows: Sequence[tuple[int, ...]], key: str = "rowid") -> None:
    """Set integer columns by key; each row holds the values and then the key."""
    if not rows:
        return
    names = [f"v{place}" for place in range(len(columns))]
    con.execute(f"CREATE OR REPLACE TEMP TABLE changed ({', '.join(f'{name} BIGINT' for name in names)}, k BIGINT)")
    con.register("_changed", pa.table({name: [row[place] for row in rows] for place, name in enumerate([*names, "k"])}))
    con.execute("INSERT INTO changed FROM _changed")
    con.unregister("_changed")
    sets = ", ".join(f"{column} = c.{name}" for column, name in zip(columns, names, strict=True))
    con.execute(f"UPDATE {table} SET {sets} FROM changed AS c WHERE {table}.{key} = c.k")
