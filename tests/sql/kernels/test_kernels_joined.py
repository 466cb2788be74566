"""kernels_joined on the simulated job: what is carried from Kineto to nsys rows is the truth, and no launch or time is lost."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.store.store import Store
from tests.fixtures.simulated_run import truth
from tests.places import ROOT

Place = tuple[int, int, int | None]
DATA = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="module")
def store(bundled_store: Path) -> Store:
    return nl.open(bundled_store)


@pytest.fixture(scope="module")
def true() -> dict[Place, dict[str, str]]:
    """The true launches, by what nsys recorded of them."""
    return {(int(row["rank"]), int(row["nsys_correlation"]), int(row["nsys_graph_node_id"] or 0) or None): row
            for row in truth("launches.tsv.gz") if row["in_nsys"] == "1"}


def _with_places(store: Store, query: str) -> list[tuple[Place, dict[str, Any]]]:
    rows = store.sql(f"SELECT j.*, k.correlation_id, k.graph_node_id, k.rank AS at FROM ({query}) AS j "
                     "JOIN kernels AS k USING (kernel_id)").to_pylist()
    return [((row["at"], row["correlation_id"], row["graph_node_id"]), row) for row in rows]


def test_every_launch_of_the_timeline_stands_once(store: Store) -> None:
    joined = store.sql("SELECT kernel_id, duration_ns FROM kernels_joined ORDER BY ALL")
    assert joined == store.sql("SELECT kernel_id, duration_ns FROM kernels WHERE tool = 'nsys' ORDER BY ALL")


def test_what_matched_launches_bring_is_true(store: Store, true: dict[Place, dict[str, str]]) -> None:
    brought: Counter[str] = Counter()
    query = "SELECT kernel_id, unnest(known) FROM _kineto_known WHERE grade = 'launch'"
    for place, row in _with_places(store, query):
        launch = true[place]
        assert row["duration_ns"] == int(launch["kineto_duration_ns"])
        assert row["step"] == int(launch["step"])
        for column in ("op", "module", "phase"):
            if row[column] is not None:
                brought[column] += 1
                assert row[column] == launch[column], (place, column)
    matched = store.sql("SELECT count(*) AS n FROM matches WHERE tool = 'nsys' AND other_tool = 'kineto'").to_pylist()[0]["n"]
    assert matched > 1900 and min(brought[column] for column in ("op", "module", "phase")) > 0.85 * matched


def test_the_joined_rows_say_nothing_untrue(store: Store, true: dict[Place, dict[str, str]]) -> None:
    """At every grade: operator and module are the launch's, where the truth knows one; nsys's own may be an outer operator."""
    told: Counter[str] = Counter()
    for place, row in _with_places(store, "FROM kernels_joined SELECT * EXCLUDE (rank)"):
        launch = true[place]
        assert row["nsys_duration_ns"] == int(launch["nsys_duration_ns"])
        told[f"op {row['op_source']}"] += 1
        told[f"module {row['module_source']}"] += 1
        if row["op"] is not None:
            assert row["op"] == launch["outer_op" if row["op_source"] == "nsys" else "op"], (place, row["op_source"])
        if row["module"] is not None:
            assert row["module"] == launch["module"], (place, row["module_source"])
    assert told["op kineto launch"] > 1700 and told["module kineto launch"] > 1700
    assert told["module kineto configuration"] + told["module kineto configuration of any rank"] > 0


def test_counters_come_with_their_grade(store: Store) -> None:
    rows = store.sql("SELECT rank, metrics_grade, metrics['dram__bytes.sum'] AS bytes, ncu_duration_ns "
                     "FROM kernels_joined").to_pylist()
    assert {(row["rank"], row["metrics_grade"]) for row in rows} == {
        (0, "launch"), (0, "configuration"), (1, "configuration of any rank"), (0, None), (1, None)}
    assert sum(row["metrics_grade"] == "launch" for row in rows) == 13
    assert all((row["bytes"] is None) == (row["ncu_duration_ns"] is None) == (row["metrics_grade"] is None) for row in rows)


@pytest.mark.captures
@pytest.mark.skipif(not DATA.is_dir(), reason="the real captures are not here")
def test_real_captures_lose_nothing(tmp_path: Path) -> None:
    """Captures of different jobs, taken for one run: hardly anything matches, and every launch and its time are still there."""
    (tmp_path / "run").mkdir()
    for name in ("nsys/GindaChen__nsys-ai__mfu_2gpu_after.sqlite", "kineto/AMD-AGI__TraceLens__h100__bert-small.json.gz",
                 "ncu/brycelelbach__nsightful__copy_blocked.csv"):
        shutil.copy(DATA / name, tmp_path / "run")
    store = nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1)
    total = "SELECT count(*) AS launches, count(DISTINCT kernel_id) AS ids, sum(duration_ns)::BIGINT AS ns FROM "
    joined = store.sql(f"{total} kernels_joined").to_pylist()
    assert joined == store.sql(f"{total} timeline_kernels").to_pylist() and joined[0]["launches"] > 1000
    for tool in ("nsys", "kineto", "ncu"):
        told = store.sql(f"SELECT sum({tool}_launches)::BIGINT AS n FROM tool_agreement").to_pylist()[0]["n"]
        assert told == store.sql("SELECT count(kernel_key) AS n FROM kernels WHERE tool = ?", [tool]).to_pylist()[0]["n"]
    assert {row["grade"] for row in store.view("profiler_overhead").to_pylist()} <= {"launch", "configuration", "recorded"}
    assert sum(row["time_pct"] for row in store.view("ncu_plan", cover=100).to_pylist()) == pytest.approx(100, abs=2)
