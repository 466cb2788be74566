"""nsightlens compare: what the page of the ranks says, and whom it refuses."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import nsightlens as nl
from nsightlens.cli.compare import command
from nsightlens.cli.show import command as show
from nsightlens.errors import NsightlensError
from tests.captures import kineto
from tests.fixtures.simulated_run import FIXTURES, RUN

sys.path.insert(0, str(FIXTURES))
generator = importlib.import_module("make_simulated_ddp")

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
    line = [line for line in done.stdout.splitlines() if line.split()[:1] == ["gemm"]][-1]
    assert "+2.000 µs" in line and "+18." in line and line.endswith("slower")
    assert "1 without a change beyond chance and 1 %." in done.stdout


def test_the_rest_of_the_changes_has_a_command_that_works(tmp_path: Path) -> None:
    for run, duration in (("be fore", 10.0), ("after", 12.0), ("third", 13.0)):
        launches = [(f"kernel_{i}", 1000.0 * (20 * k + i), duration) for k in range(40) for i in range(14)]
        kineto(tmp_path / run / "rank0.json", launches)
    nl.ingest([tmp_path / run for run in ("be fore", "after", "third")], store=tmp_path / "store").close()
    done = CliRunner().invoke(command, ["runs", "be fore", "after", "--what", "key", "--store", str(tmp_path / "store")],
                              env={"COLUMNS": "160"})
    line = next(line for line in done.stdout.splitlines() if "2 more: " in line)
    words = shlex.split(line.partition("nsightlens show ")[2])
    assert words == ["run_difference", "what=key", "base=be fore", "other=after"]
    shown = CliRunner().invoke(show, [*words, "--store", str(tmp_path / "store"), "--format", "csv"])
    assert shown.exit_code == 0 and len(shown.stdout.splitlines()) == 15


def test_two_runs_as_data(two: Path) -> None:
    done = CliRunner().invoke(command, ["runs", "before", "after", "--what", "key", "--store", str(two), "--format", "json"])
    tables = json.loads(done.stdout)
    assert list(tables) == ["comparability", "step", "waterfall", "differences"]
    assert {row["item"]: row["verdict"] for row in tables["differences"]} == {"gemm": "slower", "same": "no change"}
    assert {row["unit"] for row in tables["waterfall"]} == {"of the capture"} and tables["step"] == []
    done = CliRunner().invoke(command, ["runs", "before", "after", "--store", str(two), "--format", "csv"])
    assert done.stdout.startswith("item,kernel_key,") and len(done.stdout.splitlines()) == 201, "a kernel per grid"


def test_two_runs_without_steps_are_compared_by_share(two: Path) -> None:
    done = CliRunner().invoke(command, ["runs", "before", "after", "--store", str(two)], env={"COLUMNS": "100"})
    assert "Shares of the captured time, by family" in done.stdout and "no step time" in " ".join(done.stdout.split())
    assert "Step time" not in done.stdout and "Kineto slows the host" in done.stdout
    line = next(line for line in done.stdout.splitlines() if line.split()[:1] == ["gemm"])
    assert re.search(r" [\d.]+ % +[\d.]+ % +\+[\d.]+ +│", line), line


def test_the_waterfall_is_drawn(two: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["runs", "before", "after", "--store", str(two), "-o", str(tmp_path / "x.svg")])
    assert done.exit_code == 0 and "before to after, kineto" in (tmp_path / "x.svg").read_text()
    assert "Shares of the captured time, by family" in done.stdout, "the page stands beside the picture"


def test_what_sidecars_tell_is_compared(tmp_path: Path) -> None:
    for run, batch in (("before", 32), ("after", 64)):
        kineto(tmp_path / run / "rank0.json", rank=0)
        told = {"run": run, "command": ["train.py", "--batch", str(batch)], "driver_version": "550.1"}
        (tmp_path / run / "rank0.run.json").write_text(json.dumps(told))
    nl.ingest([tmp_path / "before", tmp_path / "after"], store=tmp_path / "store").close()
    asked = ["runs", "before", "after", "--store", str(tmp_path / "store")]
    page = CliRunner().invoke(command, asked, env={"COLUMNS": "120"}).stdout
    assert re.search(r"command +kineto +train.py --batch 32 +train.py --batch 64", page), page
    assert "driver_version" not in page and "batch size are not known" not in page


def test_where_the_step_time_went(tmp_path: Path) -> None:
    generator.make(tmp_path / "base", seed=1, run="base", steps=6, evaluate_after=())
    generator.make(tmp_path / "other", seed=2, run="other", steps=6, evaluate_after=(), late=((3, 1, 40_000_000),))
    nl.ingest([tmp_path / "base", tmp_path / "other"], store=tmp_path / "store").close()
    asked = ["runs", "base", "other", "--store", str(tmp_path / "store")]
    page = CliRunner().invoke(command, asked, env={"COLUMNS": "100"}).stdout
    tables = json.loads(CliRunner().invoke(command, [*asked, "-f", "json"]).stdout)
    change = tables["waterfall"][0]["change_ns"]
    assert sum(row["difference_ns"] for row in tables["waterfall"]) == change
    assert f"sum to {change:+,} ns" in page and "Step time · nsys, 7 and 7 steps" in page
    assert tables["step"][0]["difference_ns"] == change
    ranks = CliRunner().invoke(command, [*asked, "--per", "rank", "--tool", "kineto"], env={"COLUMNS": "100"}).stdout
    assert ranks.count("Where the step time went of rank ") == 2 and "kineto" in ranks
    assert max(map(len, page.splitlines())) <= 100
