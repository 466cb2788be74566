"""step_breakdown and distributed_overview against a count of every nanosecond."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalogs import catalog, fill

CATEGORIES = ("kernel", "memcpy", "memset", "communication", "runtime", "data_loader", "cpu_exec")
"""In the order of priority; what is left is other."""

KINDS = (*CATEGORIES, "nccl:all_gather")
STEPS = ((0, 20), (20, 50), (60, 80))
PIECE = st.tuples(st.sampled_from(KINDS), st.integers(-5, 85), st.integers(0, 25))
Piece = tuple[str, int, int]


@pytest.fixture(scope="module")
def empty() -> duckdb.DuckDBPyConnection:
    return catalog()


def _tables(pieces: list[Piece]) -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {"kernels": [], "memory_ops": [], "api_calls": [], "ranges": []}
    where = {"run": "r", "tool": "kineto", "profile_id": "P", "process_id": "p", "window_index": 0}
    for number, (start, end) in enumerate(STEPS):
        tables["ranges"].append(where | {"range_id": number, "start_ns": start, "duration_ns": end - start, "kind": "step",
                                         "step": number, "name": f"ProfilerStep#{number}"})
    for number, (kind, start, duration) in enumerate(pieces, len(STEPS)):
        row: dict[str, Any] = where | {"start_ns": start, "duration_ns": duration}
        if kind in ("kernel", "communication"):
            tables["kernels"].append(row | {"name": "k", "family": "collective" if kind == "communication" else "gemm"})
        elif kind in ("memcpy", "memset"):
            tables["memory_ops"].append(row | {"kind": kind})
        elif kind == "runtime":
            tables["api_calls"].append(row | {"launch_id": number})
        else:
            name = {"data_loader": "enumerate(DataLoader)#_Iter.__next__", "cpu_exec": "aten::mm"}.get(kind, kind)
            tables["ranges"].append(row | {"range_id": number, "kind": "operator", "name": name, "thread": 1})
    return tables


def _counted(pieces: list[Piece], first: int, last: int) -> tuple[list[int], list[int]]:
    """Return (ns per category and other; computation, both, communication, neither), by looking at each nanosecond."""
    roles: Counter[str] = Counter()
    classes: Counter[tuple[bool, bool]] = Counter()
    computing = "kernel" if any(kind == "kernel" and duration and start < STEPS[-1][1] and _inside(start, start + duration)
                                for kind, start, duration in pieces) else "cpu_exec"
    for ns in range(first, last):
        going = {"communication" if kind.startswith("nccl") else kind for kind, start, duration in pieces
                 if start <= ns < start + duration}
        roles[next((category for category in CATEGORIES if category in going), "other")] += 1
        classes[computing in going, "communication" in going] += 1
    return [roles[category] for category in (*CATEGORIES, "other")], [
        classes[True, False], classes[True, True], classes[False, True], classes[False, False]]


def _inside(start: int, end: int) -> bool:
    return any(start < last and end > first for first, last in STEPS)


@settings(max_examples=80)
@given(pieces=st.lists(PIECE, max_size=25))
@pytest.mark.long
def test_agrees_with_a_count_of_every_nanosecond(empty: duckdb.DuckDBPyConnection, pieces: list[Piece]) -> None:
    empty.execute("BEGIN")
    fill(empty, **_tables(pieces))
    roles = empty.execute("SELECT start_ns, step_ns, " + ", ".join(f"{category}_ns" for category in (*CATEGORIES, "other"))
                          + " FROM step_breakdown()").fetchall()
    classes = empty.execute("SELECT computation_ns, overlapping_ns, communication_ns, other_ns "
                            "FROM distributed_overview()").fetchall()
    empty.execute("ROLLBACK")
    expected = [_counted(pieces, first, last) for first, last in STEPS]
    assert [(start, length, *(ns or 0 for ns in found)) for start, length, *found in roles] == [  # NULL: nothing recorded
        (first, last - first, *of_step[0]) for (first, last), of_step in zip(STEPS, expected, strict=True)]
    assert [list(found) for found in classes] == [of_step[1] for of_step in expected]
