"""tree_difference: the trees of two runs of a store side by side, to the ns those of time_tree."""

from __future__ import annotations

from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.errors import UsageError
from tests.captures import kineto
from tests.places import ROOT

NSYS = ROOT / "fixtures/simulated_resnet18_ddp"
BRANCHES = ("computing", "communication", "copies", "idle", "not recorded")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> nl.Store:
    """Return two runs of one capture, and a third whose only rank is the first of them."""
    path = tmp_path_factory.mktemp("difference") / "store"
    for name in ("base", "same"):
        nl.ingest(NSYS / "nsys", path, run=name, jobs=1).close()
    return nl.ingest(NSYS / "nsys" / "rank0.sqlite", path, run="one rank", jobs=1)


def test_a_run_against_itself_is_zero_everywhere(store: nl.Store) -> None:
    rows = store.view("tree_difference", base="base", other="same").to_pylist()
    assert len(rows) > 20 and {row["difference_ns"] for row in rows} == {0} and {row["state"] for row in rows} == {None}


def test_the_other_way_round_every_row_is_mirrored(store: nl.Store) -> None:
    there, back = ({row["row_index"]: row for row in store.view("tree_difference", base=base, other=other).to_pylist()}
                   for base, other in (("base", "one rank"), ("one rank", "base")))
    assert there.keys() == back.keys()
    for place, row in there.items():
        assert (row["node"], row["base_ns"], row["other_ns"], row["difference_ns"]) == (
            back[place]["node"], back[place]["other_ns"], back[place]["base_ns"], -back[place]["difference_ns"])


def test_steps_and_branches_are_those_of_the_trees(store: nl.Store) -> None:
    trees = [row for row in store.view("time_tree", only_tool="nsys").to_pylist() if row["run"] == "base"]
    steps = sum(row["count"] for row in trees if row["node"] == "window")
    rows = store.view("tree_difference", base="base", other="one rank").to_pylist()
    assert {row["unit"] for row in rows} == {"per step"}
    whole = rows[0]
    for name in ("window", *BRANCHES):
        (row,) = [row for row in rows if row["node"] == name and row["depth"] < 2]
        exact = sum(node["total_ns"] for node in trees if node["node"] == name and node["depth"] < 2) / steps
        assert abs(row["base_ns"] - exact) <= 1
    for column in ("base_ns", "other_ns", "difference_ns"):
        assert sum(row[column] for row in rows if row["parent_index"] == 0) == whole[column]


def test_a_rank_alone_can_be_compared(store: nl.Store) -> None:
    rows = store.view("tree_difference", base="base", other="one rank", rank=0).to_pylist()
    assert {row["difference_ns"] for row in rows} == {0}
    with pytest.raises(UsageError, match="rank 1 is not in both runs"):
        store.view("tree_difference", base="base", other="one rank", rank=1)


def test_two_recordings_of_a_run_give_an_interval(tmp_path: Path) -> None:
    for number, (run, length) in enumerate((("a", 10.0), ("a", 12.0), ("b", 30.0))):
        kineto(tmp_path / f"{number}.json", [("gemm", 60e6 * number + 1000.0 * k, length) for k in range(20)], pid=number)
        nl.ingest(tmp_path / f"{number}.json", tmp_path / "store", run=run, jobs=1).close()
    with nl.open(tmp_path / "store") as opened:
        whole, *parts = opened.view("tree_difference").to_pylist()
    assert whole["low_ns"] < whole["difference_ns"] < whole["high_ns"]
    assert {row["low_ns"] for row in parts} == {None}


def test_runs_without_a_tool_in_common_are_refused(tmp_path: Path) -> None:
    kineto(tmp_path / "a.json", rank=0)
    nl.ingest(tmp_path / "a.json", tmp_path / "store", run="traced", jobs=1).close()
    with nl.ingest(NSYS / "nsys" / "rank0.sqlite", tmp_path / "store", run="nsys", jobs=1) as opened, pytest.raises(
            UsageError, match="no timeline of one tool in common"):
        opened.view("tree_difference", base="traced", other="nsys")
