"""nsightlens compare: what the page of the ranks says, and whom it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import nsightlens as nl
from nsightlens.cli.compare import command
from nsightlens.errors import NsightlensError
from tests.captures import kineto
from tests.fixtures.simulated_run import RUN

MEGATRON = Path(__file__).resolve().parents[3] / "shared" / "data" / "kineto" / "astra-sim__astra-sim__megatron-tp8"


def compared(store: Path, width: int, *arguments: str) -> Result:
    return CliRunner().invoke(command, ["ranks", "--store", str(store), *arguments], env={"COLUMNS": str(width)})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare") / "store"
    nl.ingest(RUN, store=path).close()
    return path


@pytest.mark.parametrize("width", [80, 160])
def test_the_page_names_the_late_rank_and_fits(store: Path, width: int) -> None:
    done = compared(store, width)
    assert done.exit_code == 0, done.output
    assert "Straggler: rank 1." in done.stdout
    assert "Who is waited for · nsys" in done.stdout and "Who is waited for · kineto" in done.stdout
    assert "1 clocks fitted to that of rank 0" not in done.stdout
    assert "the clock of rank 1" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= width


def test_a_tool_can_be_chosen(store: Path) -> None:
    done = compared(store, 100, "--tool", "kineto")
    assert "kineto" in done.stdout and "· nsys" not in done.stdout


def test_one_rank_cannot_be_compared(tmp_path: Path) -> None:
    kineto(tmp_path / "run" / "rank0.json", rank=0)
    nl.ingest(tmp_path / "run", store=tmp_path / "store").close()
    done = compared(tmp_path / "store", 80)
    assert isinstance(done.exception, NsightlensError)
    assert "two ranks" in str(done.exception)


@pytest.mark.skipif(not MEGATRON.is_dir(), reason="the real captures are not here")
def test_eight_real_ranks(tmp_path: Path) -> None:
    nl.ingest(MEGATRON, store=tmp_path / "store").close()
    done = compared(tmp_path / "store", 120)
    assert "Straggler: rank 0. Without it 32 collectives" in done.stdout
    assert "32 collectives: cannot tell who was last, ± " in done.stdout


@pytest.fixture
def two(tmp_path: Path) -> Path:
    for run, duration in (("before", 10.0), ("after", 12.0)):
        launches = [("gemm", 1000.0 * k, duration + k % 3) for k in range(1, 101)]
        launches += [("same", 1000.0 * k + 500, 5.0 + k % 2) for k in range(1, 101)]
        kineto(tmp_path / run / "rank0.json", launches, rank=0, host=f"node-{run}")
    nl.ingest([tmp_path / "before", tmp_path / "after"], store=tmp_path / "store").close()
    return tmp_path / "store"


def test_the_page_of_two_runs_names_what_changed(two: Path) -> None:
    done = CliRunner().invoke(command, ["runs", "before", "after", "--what", "key", "--store", str(two)], env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    assert "node-before" in done.stdout and "node-after" in done.stdout
    line = next(line for line in done.stdout.splitlines() if line.split()[:1] == ["gemm"])
    assert "+2.000 µs" in line and "+18." in line and line.endswith("slower")
    assert "1 without a change beyond chance and 1 %." in done.stdout


def test_two_runs_as_data(two: Path) -> None:
    done = CliRunner().invoke(command, ["runs", "before", "after", "--what", "key", "--store", str(two), "--format", "json"])
    rows = json.loads(done.stdout)
    assert {row["item"]: row["verdict"] for row in rows} == {"gemm": "slower", "same": "no change"}
