"""matches: the pairs of grade launch against the truth of the simulated job, and what must give no pair."""

from __future__ import annotations

import csv
import gzip
import importlib
import re
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.errors import UsageError
from nsightlens.matching import cross_tool
from nsightlens.store.store import Store
from tests.catalogs import catalog
from tests.fixtures.simulated_run import FIXTURES, RUN

sys.path.insert(0, str(FIXTURES))
generator = importlib.import_module("make_simulated_ddp")

Launch = tuple[str, str]


def judged(
    store: Store, run: Path,
) -> tuple[Counter[tuple[str, str]], list[tuple[Launch | None, Launch | None]], Counter[tuple[str, str]]]:
    """Return right pairs per pair of tools, the wrong ones, and how many true pairs there are."""
    text = gzip.decompress((run / "truth" / "launches.tsv.gz").read_bytes()).decode()
    launches = list(csv.DictReader(text.splitlines(), delimiter="\t"))
    true: dict[tuple[str, ...], Launch] = {}
    for row in launches:
        launch = row["rank"], row["launch"]
        if row["in_nsys"] == "1":
            true["nsys", row["rank"], row["nsys_correlation"], row["nsys_graph_node_id"]] = launch
        if row["in_kineto"] == "1":
            true["kineto", row["rank"], row["kineto_correlation"], row["kineto_start_ns"]] = launch
        if row["in_ncu"] == "1":
            true["ncu", row["ncu_id"]] = launch
    base = 1_767_189_312_000_000_000  # truth/clocks.tsv: what the times in a Kineto file are relative to
    found: dict[int, Launch | None] = {}
    for k in store.sql("SELECT k.*, p.origin_epoch_ns FROM kernels AS k JOIN profiles AS p USING (profile_id)").to_pylist():
        rank, correlation = str(k["rank"]), str(k["correlation_id"])
        if k["tool"] == "ncu":
            place: tuple[str, ...] = ("ncu", str(k["ncu_id"]))
        elif k["tool"] == "nsys":
            place = ("nsys", rank, correlation, str(k["graph_node_id"] or ""))
        else:
            place = ("kineto", rank, correlation, str(k["start_ns"] + k["origin_epoch_ns"] - base))
        found[k["kernel_id"]] = true.get(place)
    right: Counter[tuple[str, str]] = Counter()
    wrong = []
    for row in store.sql("FROM matches").to_pylist():
        one, other = found[row["kernel_id"]], found[row["other_kernel_id"]]
        if one is None or one != other:
            wrong.append((one, other))
        else:
            right[row["tool"], row["other_tool"]] += 1
    pairs = Counter((one, other) for row in launches for one, other in (("nsys", "kineto"), ("nsys", "ncu"), ("kineto", "ncu"))
                    if row[f"in_{one}"] == row[f"in_{other}"] == "1" and (other != "ncu" or row["ncu_kernel"] == row["kernel"]))
    return right, wrong, pairs


@pytest.fixture(scope="module")
def simulated(bundled_store: Path) -> Store:
    return nl.open(bundled_store)


def test_the_timelines_of_the_simulated_run_meet(simulated: Store) -> None:
    right, wrong, true = judged(simulated, RUN)
    assert wrong == []
    assert right["nsys", "kineto"] >= 0.95 * true["nsys", "kineto"] > 1900


def test_a_pair_is_one_to_one(simulated: Store) -> None:
    rows = simulated.sql("FROM matches").to_pylist()
    for side in ("kernel_id", "other_kernel_id"):
        assert max(Counter((row[side], row["tool"], row["other_tool"]) for row in rows).values()) == 1


def test_dropped_and_swapped_launches_make_no_wrong_pair(tmp_path: Path) -> None:
    generator.make(tmp_path / "run", seed=1, dropped=0.05, swapped=8)
    right, wrong, true = judged(nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1), tmp_path / "run")
    assert wrong == []
    assert right["nsys", "kineto"] > 1000
    assert right["nsys", "ncu"] == true["nsys", "ncu"] == 10


def test_ncu_meets_both_timelines(simulated: Store) -> None:
    right, _, true = judged(simulated, RUN)
    assert {pair: right[pair] for pair in (("nsys", "ncu"), ("kineto", "ncu"))} == {("nsys", "ncu"): 13, ("kineto", "ncu"): 13}
    assert true["nsys", "ncu"] == true["kineto", "ncu"] == 13
    evidence = {row["evidence"] for row in simulated.sql("FROM matches WHERE other_tool = 'ncu'").to_pylist()}
    assert "NVTX ranges, step 1" in evidence and "through nsys: NVTX ranges, step 1" in evidence
    # the launch for which cuDNN chose another kernel in ncu's run
    (variant,) = simulated.sql("FROM tool_match WHERE tool = 'ncu' AND other_tool = 'nsys' AND grade <> 'launch'").to_pylist()
    assert (variant["grade"], variant["candidates"]) == ("none", 0)


OTHER_CHOICES = (("layer1.0.conv1", "layer2.0.conv2"), ("layer2.1.conv1", "layer1.0.conv2"))


@pytest.mark.long
@pytest.mark.parametrize(("seed", "knobs", "told"), [
    (3, {"borrowed": OTHER_CHOICES, "swapped": 8, "dropped": 0.01}, True),
    pytest.param(4, {"borrowed": OTHER_CHOICES, "filter": ("relu|norm|elementwise|gemm|conv", 181, 60)}, True,
                 marks=pytest.mark.long),
    pytest.param(5, {"filter": ("elementwise", 100, 50), "dropped": 0.01}, True,
                 marks=pytest.mark.long),
    (6, {"filter": ("gemm", 50, 60), "nvtx": False, "dropped": 0.0}, True),
    (7, {"nvtx": False}, False),                                                      # neither ranges nor a place
    pytest.param(8, {"filter": ("gemm", 50, 60), "nvtx": False, "late_nsys": True}, False,
                 marks=pytest.mark.long),  # nsys began later than ncu counted
    (9, {"filter": ("conv|fprop", 20, 90), "nvtx": False, "borrowed": OTHER_CHOICES}, False),    # the place names another kernel
])
def test_ncu_is_placed_by_what_it_tells_and_not_without(tmp_path: Path, seed: int, knobs: dict[str, Any], told: bool) -> None:
    generator.make(tmp_path / "run", seed=seed, **knobs)
    right, wrong, true = judged(nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1), tmp_path / "run")
    assert wrong == []
    for pair in (("nsys", "ncu"), ("kineto", "ncu")):
        assert right[pair] >= 0.95 * true[pair] > 0 if told else right[pair] == 0, (pair, right, true)


@pytest.mark.parametrize(("filtered", "borrowed", "found"), [
    ("norm|relu", (), True), ("gemm|xmma|conv", OTHER_CHOICES, False),
])
@pytest.mark.long
def test_steps_alone_tell_the_place_where_all_in_them_fits(
    tmp_path: Path, filtered: str, borrowed: tuple[tuple[str, str], ...], found: bool,
) -> None:
    """Only steps are known of each launch: two kernels that were exchanged leave as many of each, in another order."""
    generator.make(tmp_path / "run", seed=11, dropped=0.0, filter=(filtered, 0, 400), borrowed=borrowed, late_nsys=True)
    page = tmp_path / "run/ncu/rank0.raw.csv"
    page.write_text(re.sub(r'  ""<default domain>:(?!step )[^"]*""', "", page.read_text()))
    right, wrong, true = judged(nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1), tmp_path / "run")
    assert wrong == []
    assert right["nsys", "ncu"] > 0.3 * true["nsys", "ncu"] > 20 if found else right["nsys", "ncu"] == 0


def test_the_report_accounts_for_every_launch(simulated: Store) -> None:
    rows = simulated.view("match_report").to_pylist()
    counted = simulated.sql("SELECT tool, rank, count(*) AS n FROM kernels GROUP BY ALL").to_pylist()
    true = {(r["tool"], r["rank"]): r["n"] for r in counted}
    assert {(r["tool"], r["rank"]): r["all_launches"] for r in rows} == true
    hidden = [r for r in rows if r["reason"] == "hidden by graph mode"]
    assert {(r["tool"], r["other_tool"], r["rank"]) for r in hidden} == {("kineto", "nsys", 1)}
    assert sum(r["launches"] for r in hidden) == 136
    measured = {r["reason"] for r in rows if (r["tool"], r["other_tool"], r["rank"]) == ("nsys", "ncu", 0)}
    assert measured == {None, "not profiled by ncu", "another configuration", "another variant"}


def test_launches_of_two_runs_meet(simulated: Store, tmp_path: Path) -> None:
    """nsys and Kineto in one run, ncu in another: the same pairs as in one run."""
    for run, folders in (("a", ("nsys", "torch")), ("b", ("ncu",))):
        for folder in folders:
            shutil.copytree(RUN / folder, tmp_path / run / folder)
    nl.ingest(tmp_path / "a", store=tmp_path / "store", run="a", jobs=1)
    store = nl.ingest(tmp_path / "b", store=tmp_path / "store", run="b", jobs=1)
    assert store.sql("FROM matches WHERE other_tool = 'ncu'").num_rows == 0
    found = store.view("run_match").to_pylist()
    assert {(row["run"], row["other_run"], row["other_tool"]) for row in found} == {("a", "b", "ncu")}
    place = "SELECT kernel_id, tool, rank, correlation_id, start_ns, ncu_id FROM kernels"
    where = [{row["kernel_id"]: tuple(row.values())[1:] for row in s.sql(place).to_pylist()} for s in (store, simulated)]
    pairs = {(where[0][row["kernel_id"]], where[0][row["other_kernel_id"]], row["evidence"]) for row in found}
    true = simulated.sql("FROM matches WHERE other_tool = 'ncu'").to_pylist()
    assert pairs == {(where[1][row["kernel_id"]], where[1][row["other_kernel_id"]], row["evidence"]) for row in true}
    assert store.view("run_match", base="b", other="a").num_rows == len(found) == 26


def test_the_same_capture_in_two_runs_meets_itself(tmp_path: Path) -> None:
    for run in ("a", "b"):
        shutil.copytree(RUN / "torch", tmp_path / run)
        store = nl.ingest(tmp_path / run, store=tmp_path / "store", run=run, jobs=1)
    found = store.view("run_match", base="b", other="a").to_pylist()
    kernels = store.sql("SELECT run, rank, correlation_id, start_ns, kernel_id FROM kernels").to_pylist()
    at = {row["kernel_id"]: (row["rank"], row["correlation_id"], row["start_ns"]) for row in kernels}
    assert all(row["run"] == "b" and at[row["kernel_id"]] == at[row["other_kernel_id"]] for row in found)
    assert 2 * len(found) == len(kernels)
    for asked in ({"base": "a", "other": "a"}, {"base": "c", "other": "a"}, {"base": "a"}):
        with pytest.raises(UsageError):
            store.view("run_match", **asked)


def _whole(tool: str, first: int, names: str) -> list[dict[str, Any]]:
    return [{"run": "r", "tool": tool, "rank": 0, "profile_id": tool, "process_id": f"{tool}:0", "kernel_id": first + i,
             "launch_index": i, "kernel_key": name, "grid_x": 1} for i, name in enumerate(names)]


@pytest.mark.parametrize(("timeline", "measured", "pairs"), [
    ("abca", "abca", 4),     # from end to end
    ("abca", "abc", 0),      # and no shorter: which end was left out?
    ("abca", "abda", 0),
    ("aab", "aab", 0),       # too little to tell
])
def test_without_evidence_recordings_are_the_same_from_end_to_end_or_not_at_all(timeline: str, measured: str, pairs: int) -> None:
    connection = catalog(kernels=[*_whole("nsys", 0, timeline), *_whole("ncu", 100, measured)])
    found = cross_tool.matches(lambda query, values: connection.sql(query, params=values).to_arrow_table(), ["r"]).to_pylist()
    assert [(row["kernel_id"], row["other_kernel_id"]) for row in found] == [(i, 100 + i) for i in range(pairs)]
    assert {row["evidence"] for row in found} <= {"whole recording"}
