"""run_waterfall: every nanosecond of a step stands once, and the items sum to the change of the step time, exactly."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nsightlens as nl
from nsightlens.analyses import run_waterfall
from nsightlens.analyses.run_waterfall import analyse, called
from nsightlens.errors import UsageError
from nsightlens.views import balance, registry
from tests.captures import kineto
from tests.catalogs import asking, catalog, fill

Piece = tuple[str, int, int]
Rows = list[dict[str, Any]]
STEPS = ((0, 20), (20, 50), (60, 80))
GPU = ("gemm", "elementwise", "graph", "memcpy", "collective")
HOST = {"nccl:all_gather": "communication calls", "api": "runtime calls", "enumerate(DataLoader)#_Iter.__next__": "data loader",
        "aten::mm": "operators"}
ORDER = (("gemm", "elementwise"), ("graph",), ("memcpy",), ("collective",), *((name,) for name in HOST))


@pytest.fixture(scope="module")
def empty() -> duckdb.DuckDBPyConnection:
    return catalog()


def run(name: str, steps: Sequence[tuple[int, int]], pieces: Sequence[Piece] = (), *, rank: int | None = 0, process: int = 0,
        tool: str = "kineto", world: int | None = None) -> dict[str, Rows]:
    """Return the rows of one process: (start, end) of its steps, (kind, start, duration) of what went on."""
    where = {"run": name, "tool": tool, "profile_id": f"{name}{tool}", "process_id": f"{name}{process}", "window_index": 0}
    tables: dict[str, Rows] = {"processes": [where | {"rank": rank, "world_size": world}], "ranges": [], "kernels": [],
                               "memory_ops": [], "graph_executions": [], "api_calls": []}
    del tables["processes"][0]["window_index"]
    for number, (start, end) in enumerate(steps):
        tables["ranges"].append(where | {"range_id": number, "kind": "step", "step": number, "name": "step", "start_ns": start,
                                         "duration_ns": end - start})
    for number, (kind, start, duration) in enumerate(pieces, len(steps)):
        row: dict[str, Any] = where | {"start_ns": start, "duration_ns": duration}
        if kind == "memcpy":
            tables["memory_ops"].append(row | {"kind": "memcpy"})
        elif kind == "graph":
            tables["graph_executions"].append(row)
        elif kind == "api":
            tables["api_calls"].append(row | {"launch_id": number})
        elif kind in HOST:
            tables["ranges"].append(row | {"range_id": number, "kind": "operator", "name": kind, "thread": 1})
        else:
            of = next((n for n, (first, last) in enumerate(steps) if first <= start < last), None)
            tables["kernels"].append(row | {"family": kind, "kernel_key": kind, "step": of})
    return tables


def waterfall(connection: duckdb.DuckDBPyConnection, *processes: dict[str, Rows], **asked: Any) -> Rows:
    """Return the rows of run_waterfall of runs a and b, and check their books."""
    connection.execute("BEGIN")
    try:
        for tables in processes:
            fill(connection, **{name: rows for name, rows in tables.items() if rows})
        table = analyse(asking(connection), **{"base": "a", "other": "b", **asked})
    finally:
        connection.execute("ROLLBACK")
    view = registry.known()["run_waterfall"]
    assert [name for name, _ in view.columns] == table.column_names
    assert not balance.unbalanced(table, view.balances)
    rows: Rows = table.to_pylist()
    return rows


def counted(pieces: Sequence[Piece], ns: int) -> str:
    """Return whose nanosecond it is, by looking at all that went on in it."""
    going = [(start, -(start + duration), kind) for kind, start, duration in pieces if start <= ns < start + duration]
    of = next((kinds for kinds in ORDER if any(kind in kinds for *_, kind in going)), None)
    if of is None:
        return "nothing recorded"
    first = min(piece for piece in going if piece[2] in of)
    return HOST.get(first[2], "CUDA graph, kernels unknown" if first[2] == "graph" else first[2])


@settings(max_examples=80)
@given(pieces=st.lists(st.tuples(st.sampled_from((*GPU, *HOST)), st.integers(-5, 85), st.integers(0, 25)), max_size=25))
@pytest.mark.long
def test_agrees_with_a_look_at_every_nanosecond(empty: duckdb.DuckDBPyConnection, pieces: list[Piece]) -> None:
    kernel = ("other", 81, 1)
    found = waterfall(empty, run("a", STEPS, [*pieces, kernel]), run("b", STEPS[:1], [kernel]))
    mean: dict[str, Fraction] = {}
    for start, end in STEPS:
        for ns in range(start, end):
            item = counted(pieces, ns)
            mean[item] = mean.get(item, Fraction(0)) + Fraction(1, 3)
    assert {row["base_total_ns"] for row in found} == {23}  # 70 / 3
    off = {row["item"]: row["base_ns"] - mean.get(row["item"], 0) for row in found}
    assert mean.keys() <= off.keys() and all(abs(by) < 1 for by in off.values())


@settings(max_examples=20)
@given(pieces=st.lists(st.tuples(st.sampled_from((*GPU, *HOST)), st.integers(-5, 85), st.integers(0, 60)), min_size=5,
                       max_size=25))
@pytest.mark.long
def test_slices_of_time_give_what_the_whole_gives(
    empty: duckdb.DuckDBPyConnection, pieces: list[Piece], monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = run("a", STEPS, [*pieces, ("other", 81, 1)]), run("b", STEPS[:1], [*pieces, ("other", 81, 1)])
    whole = waterfall(empty, *job)
    with monkeypatch.context() as patch:
        patch.setattr(run_waterfall, "_AT_ONCE", 2)
        assert waterfall(empty, *job) == whole


def test_a_long_run_is_cut_where_its_work_is(empty: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_waterfall, "_AT_ONCE", 4)
    pieces = [("gemm", start, 1) for start in (*range(8), 60, 70)]
    empty.execute("BEGIN")
    try:
        fill(empty, **{name: rows for name, rows in run("a", STEPS, pieces).items() if rows})
        assert run_waterfall._cuts(asking(empty), "a", "kineto") == [3, 7, 70]
    finally:
        empty.execute("ROLLBACK")


@pytest.mark.parametrize("earlier", ["x", "y"])
def test_steps_of_a_rank_in_several_profiles_are_in_the_order_of_time(empty: duckdb.DuckDBPyConnection, earlier: str) -> None:
    """The warm-up that is left out is that of the recording that began first, whatever the profiles are called."""
    recordings = [run("a", [(0, 10)] if mine == earlier else [(0, 100)], [("gemm", 0, 5)], process=process)
                  for process, mine in enumerate("xy")]
    profiles = []
    for mine, recording in zip("xy", recordings, strict=True):
        for rows in recording.values():
            for row in rows:
                row["profile_id"] = mine
        profiles.append({"profile_id": mine, "run": "a", "tool": "kineto", "origin_epoch_ns": 1000 * (mine != earlier)})
    b = run("b", [(0, 10), (10, 100)], [("gemm", 0, 5)])
    found = waterfall(empty, {"profiles": profiles}, *recordings, b, skip_steps=1)
    assert {(row["base_total_ns"], row["other_total_ns"], row["base_steps"]) for row in found} == {(100, 90, 1)}


def test_ranks_weigh_the_same_whatever_their_number_of_steps(empty: duckdb.DuckDBPyConnection) -> None:
    a0 = run("a", [(0, 100), (100, 200), (200, 301)], [("gemm", 0, 100), ("gemm", 250, 10)])
    a1 = run("a", [(0, 50)], [("gemm", 0, 20)], rank=1, process=1)
    b = [run("b", [(0, 100)], [("gemm", 0, 50)], rank=rank, process=rank) for rank in (0, 1)]
    rows = waterfall(empty, a0, a1, *b)
    assert [(row["item"], row["base_ns"], row["other_ns"], row["difference_ns"]) for row in rows] == [
        ("gemm", 28, 50, 22), ("nothing recorded", 47, 50, 3)]  # (110 / 3 + 20) / 2, (191 / 3 + 30) / 2, of 75 1/6
    assert {(row["change_ns"], row["base_steps"], row["base_ranks"]) for row in rows} == {(25, 4, 2)}


def test_a_rank_that_one_run_lacks_is_left_out_and_said(empty: duckdb.DuckDBPyConnection) -> None:
    a = [run("a", [(0, 100 + rank)], [("gemm", 0, 50)], rank=rank, process=rank, world=3) for rank in range(3)]
    b = [run("b", [(0, 100)], [("gemm", 0, 50)], rank=rank, process=rank, world=3) for rank in (0, 2, 5)]
    rows = waterfall(empty, *a, *b)
    assert {(row["base_total_ns"], row["base_ranks"], row["other_ranks"], row["excluded_ranks"]) for row in rows} == {
        (101, 2, 2, "base 1; other 5")}
    each = waterfall(empty, *a, *b, per="rank")
    assert {(row["rank"], row["base_total_ns"]) for row in each} == {(0, 100), (2, 102)}


def test_another_world_or_unknown_ranks_take_all_processes(empty: duckdb.DuckDBPyConnection) -> None:
    a = [run("a", [(0, 100 + 10 * rank)], [("gemm", 0, 50)], rank=rank, process=rank, world=2) for rank in range(2)]
    b = [run("b", [(0, 100)], [("gemm", 0, 50)], rank=0, world=1)]
    unknown = [run("b", [(0, 100)], [("gemm", 0, 50)], rank=None, process=process) for process in range(3)]
    for other, ranks in ((b, 1), (unknown, 3)):
        rows = waterfall(empty, *a, *other)
        assert {(row["base_total_ns"], row["base_ranks"], row["other_ranks"], row["excluded_ranks"]) for row in rows} == {
            (105, 2, ranks, None)}
    with pytest.raises(UsageError, match="no rank is known in both"):
        waterfall(empty, *a, *unknown, per="rank")


def test_without_steps_only_shares_are_compared(empty: duckdb.DuckDBPyConnection) -> None:
    a = run("a", [], [("aten::mm", 0, 300), ("gemm", 0, 100)])
    b = run("b", [(0, 100), (100, 200)], [("gemm", 0, 100), ("memcpy", 150, 10)])
    rows = {row["item"]: row for row in waterfall(empty, a, b)}
    assert {(row["unit"], row["difference_ns"], row["change_ns"], row["low_ns"]) for row in rows.values()} == {
        ("of the capture", None, None, None)}
    assert (rows["gemm"]["base_pct"], rows["gemm"]["other_pct"], rows["gemm"]["difference_pct"]) == (33.33, 50.0, 16.67)
    assert sum(round(100 * row["difference_pct"]) for row in rows.values()) == 0
    assert (rows["memcpy"]["absent"], rows["gemm"]["absent"]) == ("new", None)


def test_warm_up_can_be_left_out_but_not_everything(empty: duckdb.DuckDBPyConnection) -> None:
    processes = [run(name, [(0, 500), (500, 600), (600, 700)], [("gemm", 500, 50)]) for name in "ab"]
    assert {(row["base_total_ns"], row["base_steps"]) for row in waterfall(empty, *processes, skip_steps=1)} == {(100, 2)}
    with pytest.raises(UsageError, match="a has no step left"):
        waterfall(empty, *processes, skip_steps=3)


def test_durations_without_a_timeline_have_no_waterfall(empty: duckdb.DuckDBPyConnection) -> None:
    a, b = run("a", [(0, 9)], [("gemm", 0, 5)]), run("b", [], [("gemm", 0, 5)])
    b["kernels"][0]["start_ns"] = None
    assert waterfall(empty, a, b) == []


def test_two_tools_are_never_compared(empty: duckdb.DuckDBPyConnection) -> None:
    a, b = run("a", [(0, 9)], [("gemm", 0, 5)], tool="nsys"), run("b", [(0, 9)], [("gemm", 0, 5)])
    with pytest.raises(UsageError, match="no timeline of one tool in common"):
        waterfall(empty, a, b)
    both = [run("b", [(0, 8)], [("gemm", 0, 5)], tool="nsys"), run("a", [(0, 7)], [("gemm", 0, 5)])]
    assert {(row["tool"], row["base_total_ns"]) for row in waterfall(empty, a, b, *both)} == {("nsys", 9)}
    assert {(row["tool"], row["base_total_ns"]) for row in waterfall(empty, a, b, *both, time="kineto")} == {("kineto", 7)}
    with pytest.raises(UsageError, match="time is one of nsys, kineto"):
        waterfall(empty, a, b, time="ncu")


def test_a_slower_kernel_is_named_and_what_it_hid_is_not(empty: duckdb.DuckDBPyConnection) -> None:
    noise = random.Random(3)

    def job(name: str, slower: int) -> dict[str, Rows]:
        steps, pieces, at = [], [], 0
        for _ in range(20):
            first, second = (1000 + noise.randrange(20) for _ in range(2))
            pieces += [("gemm", at, first), ("collective", at + 10, 900), ("elementwise", at + first, second + slower)]
            steps.append((at, at + first + second + slower + 100))
            at = steps[-1][1]
        return run(name, steps, pieces)

    rows = waterfall(empty, job("a", 0), job("b", 100))
    assert {row["item"] for row in rows} == {"gemm", "elementwise", "nothing recorded"}, "the collective is hidden"
    slower = rows[0]
    assert slower["item"] == "elementwise"
    assert abs(slower["difference_ns"] - 100) < 20


def test_items_sum_to_the_categories_of_step_breakdown(bundled_store: Path) -> None:
    store = nl.open(bundled_store)
    for tool in ("nsys", "kineto"):
        for what in ("family", "kernel", "op", "module"):
            parts = store.sql(f"""
                SELECT sum(total_ns) FILTER (kind = 'compute')::BIGINT AS kernel_ns,
                    sum(total_ns) FILTER (kind = 'memory')::BIGINT AS memory_ns, sum(total_ns)::BIGINT AS step_ns,
                    sum(total_ns) FILTER (kind = 'collective' OR item = 'communication calls')::BIGINT AS communication_ns
                FROM _exclusive_time(of_run := 'simulated_resnet18_ddp', under_tool := '{tool}', items_of := '{what}')""")
            whole = store.sql(f"""
                SELECT sum(kernel_ns)::BIGINT AS kernel_ns, sum(memcpy_ns + memset_ns)::BIGINT AS memory_ns,
                    sum(step_ns)::BIGINT AS step_ns, sum(communication_ns)::BIGINT AS communication_ns
                FROM step_breakdown() WHERE tool = '{tool}'""")
            assert parts.to_pylist() == whole.to_pylist() and parts["kernel_ns"][0].as_py() > 0


def test_captures_without_steps_through_a_store(tmp_path: Path) -> None:
    for name, duration in (("a", 10.0), ("b", 20.0)):
        kineto(tmp_path / name / "rank0.json", [("gemm", 1000.0 * k, duration) for k in range(1, 11)], rank=0)
    store = nl.ingest([tmp_path / "a", tmp_path / "b"], store=tmp_path / "store", jobs=1)
    rows = store.view("run_waterfall").to_pylist()
    assert {row["unit"] for row in rows} == {"of the capture"}
    assert store.view("run_waterfall", only_kind="compute")["base_ns"].to_pylist() == [100_000]
    with pytest.raises(UsageError, match="per is one of run, rank"):
        store.view("run_waterfall", per="step")


@pytest.mark.parametrize(("kind", "item", "name"), [
    ("compute", "gemm", "gemm"), ("compute", "memory", "memory kernels"), ("compute", None, "compute, unattributed"),
    ("communication", "gemm", "communication: gemm"), ("memory", "memcpy HtoD", "memcpy HtoD"),
    ("idle", "nothing recorded", "idle, nothing recorded"), ("idle", "operators", "idle, host: operators")])
def test_what_people_call_a_row(kind: str, item: str | None, name: str) -> None:
    assert called({"kind": kind, "item": item}) == name
