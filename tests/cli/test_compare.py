"""nsightlens compare: what the page of the ranks says, and whom it refuses."""

from __future__ import annotations

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
