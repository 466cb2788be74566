"""The late rank that no duration shows: 200 ms of host delay on one of four ranks (a published case, simulated)."""

from __future__ import annotations

import importlib
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner

import nsightlens as nl
from benchmarks import job_input
from nsightlens.analyses import straggler
from nsightlens.cli.compare import command
from nsightlens.store.store import Store
from tests.captures import kineto
from tests.conftest import Shared
from tests.fixtures.simulated_run import FIXTURES

sys.path.insert(0, str(FIXTURES))
generator = importlib.import_module("make_simulated_ddp")

LATE, DELAY_NS = 1, 200_000_000
STEPS = range(1, 4)


def _make(folder: Path) -> None:
    """ResNet-18 on four GPUs; the host of rank 1 is held up for 200 ms in the backward pass of every step but the first."""
    generator.make(folder / "run", world_size=4, batch=1056, steps=len(STEPS), late=(), evaluate_after=(),
                   stalled=tuple((step, LATE, DELAY_NS) for step in STEPS))
    nl.ingest(folder / "run", store=folder / "store", jobs=1).close()


@pytest.fixture(scope="module")
def store(shared: Shared) -> Store:
    return nl.open(shared("straggler", _make) / "store")


@pytest.mark.parametrize("tool", ["nsys", "kineto"])
def test_the_durations_name_nobody(store: Store, tool: str) -> None:
    """On each rank the backward pass takes 292 to 293 ms of GPU time, first kernel to last, waiting included."""
    rows = store.sql("SELECT rank, step, max(start_ns + duration_ns) - min(start_ns) AS ns FROM kernels "
                     "WHERE tool = ? AND phase = 'backward' AND step IN (1, 2, 3) GROUP BY ALL", [tool]).to_pylist()
    lengths: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        lengths[row["rank"]].append(row["ns"])
    assert sorted(lengths) == [0, 1, 2, 3] and all(len(steps) == len(STEPS) for steps in lengths.values())
    assert {round(sum(steps) / len(steps) / 1e6) for steps in lengths.values()} <= {292, 293}


@pytest.mark.parametrize("tool", ["nsys", "kineto"])
def test_the_arrivals_name_the_late_rank(store: Store, tool: str) -> None:
    rows = {row["rank"]: row for row in store.view("straggler", only_tool=tool).to_pylist()}
    assert [rank for rank, row in rows.items() if row["verdict"] == "straggler"] == [LATE]
    calls = [row for row in store.view("collective_match", only_tool=tool, only_rank=LATE).to_pylist() if row["step"] in STEPS]
    lags = {step: max(row["lag_ns"] for row in calls if row["step"] == step) for step in STEPS}
    assert {row["last_rank"] for row in calls} == {LATE}
    assert all(abs(lag - DELAY_NS) < 0.01 * DELAY_NS for lag in lags.values()), "by the delay that was injected"


def test_compare_ranks_names_the_late_rank_with_each_tool(store: Store) -> None:
    done = CliRunner().invoke(command, ["ranks", "--store", str(store.path)], env={"COLUMNS": "120"})
    parts = done.stdout.split("Stragglers · ")[1:]
    assert sorted(part.split(",")[0] for part in parts) == ["kineto", "nsys"]
    assert all("Rank 1 comes last:" in part and part.count(" comes last:") == 1 for part in parts)
    _, _, balance = done.stdout.partition("Most imbalanced kernel time")
    assert "collective" not in balance.partition("Communication, waiting")[0], "who waits is not called slow"


JOB = job_input.job(32, 12)


@pytest.mark.parametrize(("delay", "verdict"), [(1000, "late"), (1001, "straggler")])
def test_a_delay_that_the_clocks_may_have_made_makes_no_straggler(delay: int, verdict: str) -> None:
    row = {"rank": 1, "times_last": 1, "caused_delay_ns": delay, "lag_threshold_ns": 1000, "inherited_delay_ns": 0,
           "undecided_delay_ns": 0}
    assert straggler._verdict(row, [delay, 0]) == verdict


@pytest.mark.parametrize(("arrival", "verdict"), [(None, "cannot tell"), (5, "on time")])
def test_without_a_common_clock_no_rank_is_called_on_time(arrival: int | None, verdict: str) -> None:
    row = {"rank": 1, "times_last": 0, "caused_delay_ns": 0, "median_arrival_ns": arrival}
    assert straggler._verdict(row, [0, 0]) == verdict


@pytest.mark.parametrize(("threshold", "said"), [
    (None, ": no common clock"), (1, ", ± 1 ns"), (99, ", ± 99 ns"), (100, ", ± 0.1 µs")])
def test_how_far_the_clocks_may_be_off_is_never_0(threshold: int | None, said: str) -> None:
    assert straggler._verdict({"rank": None, "lag_threshold_ns": threshold}, []) == f"cannot tell{said}"


def _simulate(folder: Path) -> None:
    job_input.write(folder / "run", JOB)
    (folder / "run" / "truth.json").unlink()
    nl.ingest(folder / "run", store=folder / "store", jobs=1).close()


def test_who_was_held_up_by_another_group_is_no_straggler(shared: Shared) -> None:
    """A slow link makes the ranks of its data-parallel group late in their tensor-parallel ones, a late rank its neighbours in
    the data-parallel ones. Only the late rank is to blame for what it did by itself."""
    with nl.open(shared("held-up", _simulate) / "store") as store:
        rows = {row["rank"]: row for row in store.view("straggler").to_pylist() if row["rank"] is not None}
    assert sorted(rows) == [rank for rank in range(JOB.ranks) if rank not in JOB.missing]
    assert [rank for rank, row in rows.items() if row["verdict"] == "straggler"] == [JOB.late]
    slow = [rank for rank in rows if rank % 8 == JOB.slow and rank // 8 != JOB.late // 8]
    neighbours = [rank for rank in rows if rank // 8 == JOB.late // 8 and rank != JOB.late]
    assert {rows[rank]["verdict"] for rank in [*slow, *neighbours]} == {"held up"}
    assert all(rows[rank]["inherited_delay_ns"] > 11 * 170_000 for rank in slow), "180 us in all steps but the first"
    assert all(rows[rank]["caused_delay_ns"] < 12 * 2_000 for rank in [*slow, *neighbours]), "GEMMs differ by 2 us at most"
    alone = 250_000 + 11 * (250_000 - 180_000)  # the neighbour that the slow link held up is late, too, but in the first step
    assert abs(rows[JOB.late]["caused_delay_ns"] - alone) < 12 * 3_000


def test_the_late_rank_has_what_all_groups_wait_and_the_slow_link_nothing(shared: Shared) -> None:
    """Six neighbours wait 250 us for it in each step, and one that the slow link held up for 180 us waits the rest; then all 21
    ranks of the other tensor groups wait that rest (in the first step 250 us), each for the rank that the late one held up."""
    with nl.open(shared("held-up", _simulate) / "store") as store:
        rows = {row["rank"]: row for row in store.view("straggler").to_pylist() if row["rank"] is not None}
    alone = 250_000 + 11 * (250_000 - 180_000)
    later = 21 * alone
    assert abs(rows[JOB.late]["propagated_wait_ns"] - later) < 12 * 21 * 3_000
    assert abs(rows[JOB.late]["others_wait_ns"] - (12 * 6 * 250_000 + alone + later)) < 12 * 28 * 3_000
    assert sum(row["propagated_wait_ns"] for rank, row in rows.items() if rank != JOB.late) < 0.001 * later


def test_the_group_with_the_slow_link_is_named_and_no_other(shared: Shared) -> None:
    """180 us more than the 60 us of the other data-parallel groups, in each of the 12 steps; the late rank slows no group."""
    with nl.open(shared("held-up", _simulate) / "store") as store:
        rows = store.view("communicator_summary").to_pylist()
    slow = [row for row in rows if row["verdict"] != "as its peers"]
    assert [(row["members"], row["verdict"], row["ranks"], row["group_size"], row["calls"], row["peers"]) for row in slow] == [
        ("5 to 29 by 8", "slow", 4, 4, 12, 7)]
    assert (slow[0]["transfer_ns"], slow[0]["peers_ns"], slow[0]["excess_ns"]) == (240_000, 60_000, 12 * 180_000)
    assert len(rows) == 32 // 8 + 8


def test_without_a_common_clock_what_ranks_waited_and_caused_is_unknown(tmp_path: Path) -> None:
    for rank in (0, 1):
        kineto(tmp_path / "run" / f"{rank}.json", [("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 1000.0, 10.0)], rank=rank,
               host=f"node{rank}")
    with nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1) as store:
        for view in ("straggler", "rank_skew"):
            rows = store.view(view, only_rank=[0, 1]).to_pylist()
            assert [row["collectives"] for row in rows] == [1, 1]
            assert {row[name] for row in rows for name in (
                "times_last", "caused_delay_ns", "inherited_delay_ns", "others_wait_ns", "propagated_wait_ns", "wait_ns",
                "undecided_delay_ns")} == {None}
