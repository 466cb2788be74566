"""HTA's analyses against a count of every nanosecond."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalogs import catalog, fill

KINDS = ("compute", "communication", "memory", "graph")
PIECE = st.tuples(st.integers(0, 50), st.integers(0, 20), st.sampled_from(KINDS), st.sampled_from(("p", "q")),
                  st.sampled_from(("g0", "g1", None)), st.integers(7, 8), st.integers(0, 50) | st.none())
Piece = tuple[int, int, str, str, str | None, int, int | None]


@pytest.fixture(scope="module")
def empty() -> duckdb.DuckDBPyConnection:
    return catalog()


def _tables(pieces: list[Piece]) -> dict[str, list[dict[str, Any]]]:
    """Return the pieces as tables; the last number of a piece is the start of its launch call, if there was one."""
    tables: dict[str, list[dict[str, Any]]] = {"kernels": [], "memory_ops": [], "graph_executions": [], "api_calls": []}
    for number, (start, duration, kind, process, device, stream, call) in enumerate(pieces):
        who = {"run": "r", "tool": "nsys", "profile_id": "P", "process_id": process, "window_index": 0}
        row = who | {"device_id": device, "stream": stream, "start_ns": start, "duration_ns": duration}
        if call is not None:
            tables["api_calls"].append(who | {"launch_id": number, "correlation_id": number, "start_ns": call, "duration_ns": 1})
        if kind == "graph":
            tables["graph_executions"].append(row | {"graph_execution_id": number, "correlation_id": number})
        elif kind == "memory":
            tables["memory_ops"].append(row | {"memory_op_id": number, "launch_id": number})
        else:
            family = "collective" if kind == "communication" else "gemm"
            tables["kernels"].append(row | {"kernel_id": number, "launch_id": number, "family": family, "name": f"k{number}"})
    return tables


def _asked(connection: duckdb.DuckDBPyConnection, pieces: list[Piece], query: str) -> list[tuple[Any, ...]]:
    connection.execute("BEGIN")
    fill(connection, **_tables(pieces))
    rows = connection.execute(query).fetchall()
    connection.execute("ROLLBACK")
    return rows


def _running(pieces: list[Piece], at: int) -> set[str]:
    return {kind for start, duration, kind, *_ in pieces if start <= at < start + duration}


@settings(max_examples=60)
@given(pieces=st.lists(PIECE, min_size=1, max_size=20), per=st.sampled_from(("device", "process")))
def test_each_nanosecond_has_one_class(empty: duckdb.DuckDBPyConnection, pieces: list[Piece], per: str) -> None:
    rows = _asked(empty, pieces, f"SELECT class, sum(total_ns)::BIGINT FROM kernel_type_breakdown(per := '{per}') GROUP BY ALL")
    counted = dict.fromkeys((row[0] for row in rows), 0)
    for owner in {piece[4] if per == "device" else piece[3] for piece in pieces}:
        mine = [piece for piece in pieces if (piece[4] if per == "device" else piece[3]) == owner]
        for at in range(min(p[0] for p in mine), max(p[0] + p[1] for p in mine)):
            running = _running(mine, at)
            known = "+".join(kind for kind in KINDS[:3] if kind in running)
            counted[known or ("unknown" if running else "idle")] += 1
    assert dict(rows) == counted


@settings(max_examples=60)
@given(pieces=st.lists(PIECE, min_size=1, max_size=20), per=st.sampled_from(("device", "process")))
def test_exposed_is_where_nothing_computes(empty: duckdb.DuckDBPyConnection, pieces: list[Piece], per: str) -> None:
    rows = _asked(empty, pieces, f"SELECT name, total_ns, overlapped_ns, exposed_ns FROM exposed_communication(per := '{per}')")
    counted = []
    for number, piece in enumerate(pieces):
        if piece[2] == "communication":
            mine = [other for other in pieces if (other[4] == piece[4] if per == "device" else other[3] == piece[3])]
            hidden = sum("compute" in _running(mine, at) for at in range(piece[0], piece[0] + piece[1]))
            counted.append((f"k{number}", piece[1], hidden, piece[1] - hidden))
    assert sorted(rows) == sorted(counted)


@settings(max_examples=60)
@given(pieces=st.lists(PIECE, min_size=1, max_size=20), short=st.integers(1, 20))
def test_each_idle_nanosecond_has_one_reason(empty: duckdb.DuckDBPyConnection, pieces: list[Piece], short: int) -> None:
    rows = _asked(empty, pieces, "SELECT process_id, device_id, stream, span_ns, busy_ns, host_wait_ns, kernel_wait_ns, "
                                 f"other_ns, unlinked_ns FROM idle_breakdown(kernel_wait_below_ns := {short})")
    counted = []
    for key in {(p[3], p[4], p[5]) for p in pieces}:
        # of those that begin together, the shortest ends the gap, then by kind and number
        mine = sorted(((p, i) for i, p in enumerate(pieces) if (p[3], p[4], p[5]) == key),
                      key=lambda one: (one[0][0], one[0][0] + one[0][1],
                                       {"compute": "kernel", "communication": "kernel"}.get(one[0][2], one[0][2]), one[1]))
        first, last = mine[0][0][0], max(p[0] + p[1] for p, _ in mine)
        why = dict.fromkeys(("host_wait", "kernel_wait", "other", "unlinked"), 0)
        until = first
        for (start, duration, *_, call), _ in mine:
            if start > until:
                waited = "kernel_wait" if start - until < short else "other"
                why["unlinked" if call is None else "host_wait" if call > until else waited] += start - until
            until = max(until, start + duration)
        busy = sum(bool(_running([p for p, _ in mine], at)) for at in range(first, last))
        counted.append((*key, last - first, busy, *why.values()))
    assert sorted(rows, key=str) == sorted(counted, key=str)
