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
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.pages.ranks_page import _as_late
from tests.captures import kineto
from tests.fixtures.simulated_run import FIXTURES
from tests.places import ROOT
from tests.terminal.whole_commands import recorded, too_long

sys.path.insert(0, str(FIXTURES))
generator = importlib.import_module("make_simulated_ddp")

DLRM = ROOT.parent / "shared" / "data" / "kineto" / "facebookresearch__param__dlrm8"
MEGATRON = ROOT.parent / "shared" / "data" / "kineto" / "astra-sim__astra-sim__megatron-tp8"


def compared(store: Path, width: int, *arguments: str) -> Result:
    return CliRunner().invoke(command, ["ranks", "--store", str(store), *arguments], env={"COLUMNS": str(width)})


@pytest.fixture(scope="module")
def store(bundled_store: Path) -> Path:
    return bundled_store


@pytest.mark.parametrize("width", [80, 160])
def test_the_page_names_the_late_rank_and_fits(store: Path, width: int) -> None:
    with recorded() as made:
        done = compared(store, width)
    assert done.exit_code == 0, done.output
    assert "Rank 1 comes last:" in done.stdout
    assert "Stragglers · nsys" in done.stdout and "Stragglers · kineto" in done.stdout
    assert "1 clocks fitted to that of rank 0" not in done.stdout
    assert "the clock of rank 1" in done.stdout
    assert not too_long(done.stdout.splitlines(), width, made)


def test_the_trees_of_the_ranks_stand_side_by_side(store: Path) -> None:
    with nl.open(store) as opened:
        rows = [row for row in opened.view("time_tree", only_tool=["nsys"]).to_pylist() if row["depth"] == 1]
    table = compared(store, 120).stdout.partition("Where the time of each rank went · nsys")[2].partition("\n\n")[0]
    for rank in (0, 1):
        (line,) = (line for line in table.splitlines() if line.split()[:1] == [str(rank)])
        shares = {f"{row['share_pct']} %" for row in rows if row["rank"] == rank and row["parent_index"] == 0 and row["total_ns"]}
        assert shares and all(text in line for text in shares)


def test_a_tool_can_be_chosen(store: Path) -> None:
    done = compared(store, 100, "--tool", "kineto")
    assert "kineto" in done.stdout and "· nsys" not in done.stdout


def test_one_rank_cannot_be_compared(tmp_path: Path) -> None:
    kineto(tmp_path / "run" / "rank0.json", rank=0)
    nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1).close()
    done = compared(tmp_path / "store", 80)
    assert isinstance(done.exception, NsightlensError)
    assert "needs at least two ranks of a run: run has rank 0. nsightlens scan" in str(done.exception)


def test_one_rank_of_several_cannot_be_compared(store: Path) -> None:
    done = compared(store, 80, "--rank", "0")
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("rank 0: compare ranks needs at least two ranks of a run: ")
    assert re.search(r" has ranks 0-\d+$", str(done.exception))


def test_ranks_that_a_straggler_hides_are_named() -> None:
    """Rank 2 usually comes as late as rank 1, a little before it; rank 3 as any other."""
    row = {"verdict": "on time", "lag_threshold_ns": 1000}
    rows = [row | {"rank": rank, "median_arrival_ns": ns} for rank, ns in ((0, 0), (2, 90_000), (3, 3000))]
    late = row | {"rank": 1, "median_arrival_ns": 80_000, "verdict": "straggler"}
    (said,) = _as_late([late, *rows], [late])
    assert said.startswith("Rank 2: median arrival as late") and _as_late(rows, []) == []
    certain = late | {"median_arrival_ns": 4}
    assert _as_late([certain, row | {"rank": 4, "median_arrival_ns": 999}], [certain]) == [], "the clocks may be off by more"


def test_json_has_the_verdicts_first(store: Path) -> None:
    tables = json.loads(compared(store, 80, "-f", "json").stdout)["tables"]
    assert next(iter(tables)) == "straggler" and "kernel_by_rank" in tables


@pytest.mark.captures
@pytest.mark.skipif(not MEGATRON.is_dir(), reason="the real captures are not here")
def test_eight_real_ranks(tmp_path: Path) -> None:
    nl.ingest(MEGATRON, store=tmp_path / "store").close()
    done = compared(tmp_path / "store", 120)
    assert "Rank 0 comes last: without it 32 collectives" in done.stdout
    assert "In 32 collectives the last rank is within the clocks' error, ± " in done.stdout


@pytest.mark.captures
@pytest.mark.skipif(not DLRM.is_dir(), reason="the real captures are not here")
def test_all_to_alls_that_nccl_runs_as_sends_and_receives(tmp_path: Path) -> None:
    """Eight collectives, five of them ncclKernel_SendRecv under nccl:all_to_all: rank 7 is last in five."""
    nl.ingest(DLRM, store=tmp_path / "store").close()
    done = compared(tmp_path / "store", 120)
    assert "Stragglers · kineto, 8 matched collectives" in done.stdout
    table = [line.split() for line in done.stdout.splitlines() if re.match(r"^ +\d  +\d ", line)]
    assert [(row[0], row[1], " ".join(row[2:4])) for row in table[:4]] == [
        ("7", "5", "1.309 ms"), ("5", "2", "101.0 µs"), ("4", "1", "14.00 µs"), ("0", "0", "0 ns")]
    assert "Rank 7 comes last: without it 5 collectives would have begun 1.309 ms earlier in total." in done.stdout
    assert "All communication kernels were matched across the ranks." in done.stdout


@pytest.mark.captures
@pytest.mark.skipif(not DLRM.is_dir(), reason="the real captures are not here")
def test_who_waits_longest_is_not_called_slowest(tmp_path: Path) -> None:
    """Rank 1 spends most time in collectives, since it comes first: the chief victim."""
    nl.ingest(DLRM, store=tmp_path / "store").close()
    page = compared(tmp_path / "store", 120).stdout
    _, _, balance = page.partition("Most imbalanced kernel time")
    rows, said, _ = balance.partition("Communication, including waits")
    assert "slowest rank" in rows and "elementwise" in rows
    assert "collective" not in rows and "record_param_comms" not in rows
    assert said and "1.746 ms to 11.34 ms, the most on rank 1. The rank with the most communication time waits" in " ".join(
        balance.split())


def exchange(path: Path, rank: int, *, pid: int, late_us: float = 0.0, count: int = 6, extra: int = 0) -> None:
    """Write a capture with `count` all-reduces and `extra` sends: the rank comes `late_us` after the others."""
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    ends = [1000.0 * k + 37 * k * k for k in range(1, count + 1)]
    kernels = [(name, end - 400 + late_us, 400 - late_us) for end in ends]
    kernels += [("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 50_000.0 + 500 * k, 100.0) for k in range(extra)]
    kineto(path, kernels, rank=rank, pid=pid, world_size=4)


def test_ranks_left_out_are_named(tmp_path: Path) -> None:
    """Two processes claim rank 0, and rank 3 has no communication."""
    for number, rank in enumerate((0, 0, 1, 2)):
        exchange(tmp_path / "run" / f"{number}.json", rank, pid=70 + number, late_us=100.0 if rank == 2 else 0.0)
    kineto(tmp_path / "run" / "4.json", rank=3, pid=90, world_size=4)
    nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1).close()
    done = compared(tmp_path / "store", 120)
    assert "Rank 2 comes last:" in done.stdout
    assert "Left out: rank 0: 2 processes claim it." in done.stdout
    assert "Left out: rank 3: no communication kernels." in done.stdout
    assert "Rank 0: several processes claim it, and its time is the sum of theirs" in done.stdout
    assert "12 communication kernels, 53.3 % of communication time, could not be matched to find who was late." in done.stdout


def test_where_every_rank_is_claimed_twice_the_page_says_why_it_compares_nothing(tmp_path: Path) -> None:
    for number in range(4):
        exchange(tmp_path / "run" / f"{number}.json", number % 2, pid=70 + number)
    nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1).close()
    done = compared(tmp_path / "store", 120)
    assert "Cannot tell who was late: no collective could be matched across the ranks." in done.stdout
    assert "Left out: ranks 0, 1: 2 processes claim it." in done.stdout
    assert "24 communication kernels, 100.0 % of communication time, could not be matched to find who was late." in done.stdout


def test_what_could_not_be_matched_is_said(tmp_path: Path) -> None:
    """Two sends and receives of one rank alone, 200 of its 2,600 us."""
    for rank in range(2):
        exchange(tmp_path / "run" / f"{rank}.json", rank, pid=70 + rank, extra=2 * rank)
    nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1).close()
    page = compared(tmp_path / "store", 120).stdout
    assert "2 communication kernels, 4.0 % of communication time, could not be matched to find who was late." in page


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    for run, duration in (("before", 10.0), ("after", 12.0)):
        launches = [("gemm", 1000.0 * k, duration + k % 3) for k in range(1, 101)]
        launches += [("same", 1000.0 * k + 500, 5.0 + k % 2) for k in range(1, 101)]
        kineto(folder / run / "rank0.json", launches, rank=0, host=f"node-{run}")
    nl.ingest([folder / "before", folder / "after"], store=folder / "store", jobs=1).close()
    return folder / "store"


def said(*arguments: object, width: int = 160) -> str:
    """Return what compare prints, spaces apart."""
    done = CliRunner().invoke(command, list(map(str, arguments)), env={"COLUMNS": str(width)})
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def test_the_difference_comes_first_and_nothing_is_undecided(two: Path) -> None:
    page = said("runs", "before", "after", "--store", two)
    assert page.startswith("First to last GPU work takes "), page
    assert "Undecided" not in page and "undecided" not in page
    assert "node-before" in page and "node-after" in page, "their hosts differ"
    assert f"To add one: nsightlens ingest AGAIN --run NAME --store {two}" in page
    assert said("before", "after", "--store", two) == page, "the command's name may be left out"
    assert said("after", "before", "--store", two) == said("--store", two), "the two runs of the store"


def test_items_are_listed_where_they_are_asked_for(two: Path) -> None:
    page = CliRunner().invoke(command, ["before", "after", "--by", "key", "--store", str(two)], env={"COLUMNS": "100"}).stdout
    line = [line for line in page.splitlines() if line.split()[:1] == ["gemm"]][-1]
    assert "What changed, by key" in page and "+2.000 µs" in line


def test_with_another_recording_the_page_says_what_they_vary_by(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for number, run in enumerate(("before", "after")):
        kineto(tmp_path / run / "rank0.json", [("gemm", 1000.0 * k, 10.0 + k % 3) for k in range(100)], pid=number)
    kineto(tmp_path / "again" / "rank0.json", [("gemm", 60e6 + 1000.0 * k, 10.0 + k % 3) for k in range(101)], pid=2)
    nl.ingest([tmp_path / "before", tmp_path / "after"], store=store, jobs=1).close()
    assert "One recording of each" in said("before", "after", "--store", store)
    nl.ingest(tmp_path / "again", store=store, run="before", jobs=1).close()
    page = said("before", "after", "--store", store)
    assert "2 and 1 recordings: the difference " in page and "95 % interval" in page and "To add one" not in page


def test_the_rest_of_the_changes_has_a_command_that_works(tmp_path: Path) -> None:
    for run, duration in (("be fore", 10.0), ("after", 12.0), ("third", 13.0)):
        launches = [(f"kernel_{i}", 1000.0 * (20 * k + i), duration) for k in range(40) for i in range(14)]
        kineto(tmp_path / run / "rank0.json", launches)
    nl.ingest([tmp_path / run for run in ("be fore", "after", "third")], store=tmp_path / "store", jobs=1).close()
    page = said("runs", "be fore", "after", "--by", "key", "--store", tmp_path / "store")
    store = str(tmp_path / "store")
    words = shlex.split(page.partition("2 more: ")[2].partition("nsightlens show ")[2].partition(store)[0] + store)
    assert words == ["run_difference", "by=key", "base=be fore", "other=after", "--store", store]
    shown = CliRunner().invoke(show, [*words, "--format", "csv"])
    assert shown.exit_code == 0 and len(shown.stdout.splitlines()) == 15


def test_of_two_programs_the_page_says_so_first_and_lists_no_kernels(tmp_path: Path) -> None:
    for number, (run, names) in enumerate({"solver": ("stencil", "halo"), "train": ("gemm",), "again": ("gemm", "halo")}.items()):
        launches = [(name, 1000.0 * (3 * k + at), 10.0) for k in range(40) for at, name in enumerate(names)]
        kineto(tmp_path / run / "rank0.json", launches, pid=number)
    store = tmp_path / "store"
    nl.ingest([tmp_path / "solver", tmp_path / "train", tmp_path / "again"], store=store, jobs=1).close()
    apart = said("solver", "train", "--store", store)
    assert apart.startswith("No kernel is in both runs: solver has 2, train 1. They look like different programs"), apart
    assert "Where the time went" in apart and " Kernels " not in apart
    assert "is in both" not in said("solver", "again", "--store", store)
    assert nl.compare(nl.open(store), "solver", "train").verdict[0].startswith("No kernel is in both runs: solver has 2, train 1")


def test_two_runs_as_data(two: Path) -> None:
    done = CliRunner().invoke(command, ["runs", "before", "after", "--by", "key", "--store", str(two), "--format", "json"])
    tables = json.loads(done.stdout)["tables"]
    assert list(tables) == ["tree", "comparability", "differences"]
    assert {row["item"]: row["verdict"] for row in tables["differences"]} == {"gemm": "undecided", "same": "undecided"}
    whole = tables["tree"][0]
    assert sum(row["difference_ns"] for row in tables["tree"] if row["parent_index"] == 0) == whole["difference_ns"]
    done = CliRunner().invoke(command, ["before", "after", "--store", str(two), "--format", "csv"])
    assert done.stdout.startswith("base_run,other_run,tool,unit,row_index,parent_index,depth,node,")


@pytest.mark.parametrize("width", [80, 200])
def test_the_page_fits(two: Path, width: int) -> None:
    with recorded() as made:
        done = CliRunner().invoke(command, ["before", "after", "--store", str(two)], env={"COLUMNS": str(width)})
    assert not too_long(done.stdout.splitlines(), width, made)


def test_captures_need_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also two files of one folder, and a file against itself."""
    monkeypatch.chdir(tmp_path)
    for name, length in (("before", 10.0), ("after", 20.0)):
        kineto(tmp_path / "runs" / f"{name}.json", [("gemm", 1000.0 * k, length) for k in range(100)])
    page = said("runs/before.json", "runs/after.json")
    assert "computing 2.000 instead of 1.000 ms" in page and " before after difference" in page
    assert not list(tmp_path.glob("nsightlens*")), "nothing is left behind"
    assert "in both; no part of it changed." in said("runs/before.json", "runs/before.json")
    assert isinstance(CliRunner().invoke(command, ["runs/before.json"]).exception, UsageError)
    missing = CliRunner().invoke(command, ["runs/before.json", "runs/nothing.json"]).exception
    assert isinstance(missing, UsageError) and str(missing).startswith("runs/nothing.json: no such file")


def test_stores_are_compared_with_captures(two: Path, tmp_path: Path) -> None:
    for name, length in (("before", 10.0), ("after", 20.0)):
        kineto(tmp_path / f"{name}.json", [("gemm", 1000.0 * k, length) for k in range(100)])
        nl.ingest(tmp_path / f"{name}.json", store=tmp_path / f"{name}-store", jobs=1).close()
    for after in ("after.json", "after-store"):
        assert "computing 2.000 instead of 1.000 ms" in said(tmp_path / "before-store", tmp_path / after)
    several = CliRunner().invoke(command, [str(two), str(tmp_path / "after.json")]).exception
    assert isinstance(several, UsageError) and "has 2 runs (after, before)" in str(several)


def test_more_than_two_runs_have_their_trees_side_by_side(two: Path, tmp_path: Path) -> None:
    kineto(tmp_path / "last.json", [("gemm", 1000.0 * k, 30.0) for k in range(100)], rank=0)
    nl.ingest(tmp_path / "last.json", store=(store := tmp_path / "store"), run="last", jobs=1).close()
    for run in ("first", "middle"):
        nl.ingest(two.parent / "before", store=store, run=run, jobs=1).close()
    page = said("first", "middle", "last", "--store", store)
    assert re.match(r"First to last GPU work takes .* in first, .* in middle, .* in last\. last against first: ", page), page
    assert "first middle last last - first" in page
    done = CliRunner().invoke(command, ["first", "middle", "last", "--store", str(store), "-f", "json"])
    assert {row["run"] for row in json.loads(done.stdout)["tables"]["tree"]} == {"first", "middle", "last"}


def test_the_waterfall_is_drawn(two: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["runs", "before", "after", "--store", str(two), "-o", str(tmp_path / "x.svg")])
    assert done.exit_code == 0 and "before to after, kineto" in (tmp_path / "x.svg").read_text()
    assert "Where the time went" in done.stdout, "the page stands beside the picture"


def test_what_sidecars_tell_is_compared(tmp_path: Path) -> None:
    for run, batch in (("before", 32), ("after", 64)):
        kineto(tmp_path / run / "rank0.json", rank=0)
        told = {"run": run, "command": ["train.py", "--batch", str(batch)], "driver_version": "550.1"}
        (tmp_path / run / "rank0.run.json").write_text(json.dumps(told))
    nl.ingest([tmp_path / "before", tmp_path / "after"], store=tmp_path / "store", jobs=1).close()
    page = said("before", "after", "--store", tmp_path / "store")
    assert "command train.py --batch 32 train.py --batch 64" in page, page
    missing = page.partition("Not recorded, so not compared: ")[2].partition(".")[0]
    assert "driver" in page.partition("The same: ")[2] and "driver" not in missing and "operators" in missing


@pytest.mark.long
def test_the_step_of_two_simulated_jobs(tmp_path: Path) -> None:
    generator.make(tmp_path / "base", seed=1, run="base", steps=6, evaluate_after=())
    generator.make(tmp_path / "other", seed=2, run="other", steps=6, evaluate_after=(), late=((3, 1, 40_000_000),))
    nl.ingest([tmp_path / "base", tmp_path / "other"], store=tmp_path / "store", jobs=1)
    asked = ["runs", "base", "other", "--store", str(tmp_path / "store")]
    with recorded() as made:
        page = CliRunner().invoke(command, asked, env={"COLUMNS": "100"}).stdout
    assert page.startswith("A step takes ") and not too_long(page.splitlines(), 100, made)
    tree = json.loads(CliRunner().invoke(command, [*asked, "-f", "json"]).stdout)["tables"]["tree"]
    assert sum(row["difference_ns"] for row in tree if row["parent_index"] == 0) == tree[0]["difference_ns"] > 0


def test_records_of_all_ranks_say_which_to_trace(tmp_path: Path) -> None:
    """No timeline at all: rank 2 comes 90 us late to each of five collectives."""
    for rank in range(4):
        lines = [{"header": {"id": "0xw", "comm_name": "default_pg", "rank": rank, "n_ranks": 4, "nnodes": 1},
                  "metadata": {"inspector_output_format_version": "v4.2", "dump_timestamp_us": 10**15, "hostname": "n",
                               "pid": rank},
                  "coll_perf": {"coll": "AllReduce", "coll_sn": number, "coll_msg_size_bytes": 64,
                                "coll_exec_time_us": 10 if rank == 2 else 100 + rank, "coll_timing_source": "kernel_gpu"}}
                 for number in range(5)]
        (tmp_path / f"n-pid{rank}.log").write_text("".join(json.dumps(line) + "\n" for line in lines))
    nl.ingest(tmp_path, store=tmp_path / "store", jobs=1).close()
    done = compared(tmp_path / "store", 100)
    assert done.exit_code == 0, done.output
    assert re.search(r"2 +straggler +5 +450.0 µs +0 ns +0 +default_pg +no", done.stdout)
    assert re.search(r"3 +reference +0 +0 ns +465.0 µs", done.stdout)
    assert "Trace rank 2, 3" in done.stdout and "Stragglers" not in done.stdout
    tables = json.loads(compared(tmp_path / "store", 100, "--format", "json").stdout)
    assert "ranks_to_trace" in json.dumps(tables) and max(map(len, done.stdout.splitlines())) <= 100
