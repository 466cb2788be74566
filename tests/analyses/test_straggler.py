"""The late rank that no duration shows: 200 ms of host delay on one of four ranks (a published case, simulated)."""

from __future__ import annotations

import importlib
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner

import nsightlens as nl
from nsightlens.cli.compare import command
from nsightlens.store.store import Store
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
    assert all("Straggler: rank 1." in part and part.count("Straggler:") == 1 for part in parts)
    _, _, balance = done.stdout.partition("Most imbalanced GPU time")
    assert "collective" not in balance.partition("Communication, waiting")[0], "who waits is not called slow"
