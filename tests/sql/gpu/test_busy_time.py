"""busy_time against a count of every nanosecond, and against the exact unions of real traces."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalogs import catalog, fill
from tests.places import ROOT

DATA = ROOT / "../shared/data"
ORACLE = DATA / "oracle" / "exact_intervals_ns.json"
TRACES = (
    "AMD-AGI__TraceLens__b200__eager_trace_rank0.json.gz",  # one stream whose kernels overlap
    "facebookresearch__HolisticTraceAnalysis__nccl_data_rank0.json.gz",  # G4: absolute times beyond a double
    "facebookresearch__HolisticTraceAnalysis__cuda_event_sync_multi_stream.json.gz",
    "astra-sim__astra-sim__megatron-tp8/megatron_kineto_0.json",
)
KINDS = ("compute", "communication", "memory", "graph")
PIECE = st.tuples(st.integers(0, 60), st.integers(0, 25), st.sampled_from(KINDS), st.sampled_from(("p", "q")),
                  st.sampled_from(("g0", "g1", None)), st.integers(0, 1))


@pytest.fixture(scope="module")
def empty() -> duckdb.DuckDBPyConnection:
    return catalog()


def _tables(pieces: list[tuple[int, int, str, str, str | None, int]]) -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {"kernels": [], "memory_ops": [], "graph_executions": []}
    for start, duration, kind, process, device, window in pieces:
        row: dict[str, Any] = {"run": "r", "tool": "nsys", "profile_id": "P", "process_id": process, "device_id": device,
                               "window_index": window, "start_ns": start, "duration_ns": duration}
        if kind in ("compute", "communication"):
            row["family"] = "collective" if kind == "communication" else "gemm"
        tables[{"memory": "memory_ops", "graph": "graph_executions"}.get(kind, "kernels")].append(row)
    return tables


def _counted(pieces: list[tuple[int, int, str, str, str | None, int]]) -> list[int]:
    """Return span, busy, idle, compute, communication, overlap, exposed, memory and graph, by looking at each nanosecond."""
    first, last = min(p[0] for p in pieces), max(p[0] + p[1] for p in pieces)
    running = [{kind for start, duration, kind, *_ in pieces if start <= ns < start + duration} for ns in range(first, last)]
    busy = sum(map(bool, running))
    overlap = sum({"compute", "communication"} <= kinds for kinds in running)
    compute, communication, memory, graph = (sum(kind in kinds for kinds in running) for kind in KINDS)
    return [last - first, busy, last - first - busy, compute, communication, overlap, communication - overlap, memory, graph]


@settings(max_examples=60)
@given(pieces=st.lists(PIECE, min_size=1, max_size=25), per=st.sampled_from(("device", "process")))
def test_agrees_with_a_count_of_every_nanosecond(
    empty: duckdb.DuckDBPyConnection, pieces: list[tuple[int, int, str, str, str | None, int]], per: str,
) -> None:
    empty.execute("BEGIN")
    fill(empty, **_tables(pieces))
    got = empty.execute(
        "SELECT window_index, process_id, device_id, span_ns, busy_ns, idle_ns, compute_ns, communication_ns, overlap_ns, "
        "exposed_communication_ns, memory_ns, graph_ns FROM busy_time(per := ?)", [per]).fetchall()
    empty.execute("ROLLBACK")
    groups: dict[tuple[int, str | None], list[tuple[int, int, str, str, str | None, int]]] = {}
    for piece in pieces:
        groups.setdefault((piece[5], piece[4] if per == "device" else piece[3]), []).append(piece)
    expected = []
    for (window, _), members in groups.items():
        processes, devices = {p[3] for p in members}, {p[4] for p in members if p[4]}
        expected.append((window, processes.pop() if len(processes) == 1 else None,
                         devices.pop() if len(devices) == 1 else None, *_counted(members)))
    assert sorted(got, key=str) == sorted(expected, key=str)


def _exact_ns(us: Decimal | int) -> int:
    return int(us * 1000)


def _gpu_rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return kernels and memory operations of a Kineto trace, read as plain JSON with exact decimals."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    events = json.loads(content, parse_float=Decimal)["traceEvents"]
    tables: dict[str, list[dict[str, Any]]] = {"kernels": [], "memory_ops": []}
    for event in events:
        table = {"kernel": "kernels", "gpu_memcpy": "memory_ops", "gpu_memset": "memory_ops"}.get(event.get("cat"))
        if table and event["ph"] == "X":
            tables[table].append({
                "run": "r", "tool": "kineto", "profile_id": "P", "process_id": "p", "window_index": 0, "name": event["name"],
                "device_id": str(event["pid"]), "start_ns": _exact_ns(event["ts"]), "duration_ns": _exact_ns(event["dur"]),
            })
    return tables


@pytest.mark.skipif(not ORACLE.exists(), reason="no captures here")
@pytest.mark.parametrize("trace", TRACES)
def test_agrees_with_the_exact_unions_of_real_traces(empty: duckdb.DuckDBPyConnection, trace: str) -> None:
    exact = json.loads(ORACLE.read_text())[trace]
    empty.execute("BEGIN")
    fill(empty, **_gpu_rows(DATA / "kineto" / trace))
    got = empty.execute(
        "SELECT span_ns, busy_ns, idle_ns, compute_ns, communication_ns, overlap_ns, memory_ns "
        "FROM busy_time(per := 'process', communication_pattern := '^nccl.*Kernel')").fetchall()
    empty.execute("ROLLBACK")
    names = ("span", "union_gpu", "idle", "union_compute_kernel", "union_nccl", "overlap_nccl_compute", "union_memcpy_memset")
    assert got == [tuple(exact[f"{name}_ns"] for name in names)]
