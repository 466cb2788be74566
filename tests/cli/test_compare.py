"""nsightlens compare: what the page of the ranks says, and whom it refuses."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import nsightlens as nl
from nsightlens.cli.compare import command
from nsightlens.cli.show import command as show
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.pages import runs_page
from nsightlens.pages.page import Renderer, page_width
from nsightlens.pages.ranks_page import _as_late
from nsightlens.pages.section import NAME
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
    assert "32 collectives: cannot tell who was last, ± " in done.stdout


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


def test_the_page_of_two_runs_names_what_changed(two: Path) -> None:
    done = CliRunner().invoke(command, ["runs", "before", "after", "--by", "key", "--store", str(two)], env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    assert "node-before" in done.stdout and "node-after" in done.stdout
    assert " ".join(done.stdout.split()).startswith(
        "Undecided whether after differs from before, as one recording of each does not show how they vary; "
        "of 2 kernels in these two, 1 is longer. Comparable?")
    line = [line for line in done.stdout.splitlines() if line.split()[:1] == ["gemm"]][-1]
    assert "+2.000 µs" in line and "+18." in line and line.endswith("longer")
    assert all(line.endswith("these two") for line in done.stdout.splitlines() if line.split()[:2] == ["key", "base"])
    assert "1 without a clear difference beyond 1 %." in done.stdout
    assert "Whether the runs differ is undecided: one recording of each" in done.stdout


def test_one_recording_of_each_the_page_says_how_to_add_another(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for number, run in enumerate(("before", "after")):
        kineto(tmp_path / run / "rank0.json", [("gemm", 1000.0 * k, 10.0 + k % 3) for k in range(100)], pid=number)
    kineto(tmp_path / "again" / "rank0.json", [("gemm", 60e6 + 1000.0 * k, 10.0 + k % 3) for k in range(100)], pid=2)
    nl.ingest([tmp_path / "before", tmp_path / "after"], store=store, jobs=1).close()

    def said() -> str:
        done = CliRunner().invoke(command, ["runs", "before", "after", "--store", str(store)], env={"COLUMNS": "100"})
        return " ".join(done.stdout.split())

    assert f"To add one, capture the run again: nsightlens ingest AGAIN --run NAME --store {store}" in said()
    nl.ingest(tmp_path / "again", store=store, run="before", jobs=1).close()
    assert "2 and 1 recordings" in said() and "To add one" not in said()


def test_the_rest_of_the_changes_has_a_command_that_works(tmp_path: Path) -> None:
    for run, duration in (("be fore", 10.0), ("after", 12.0), ("third", 13.0)):
        launches = [(f"kernel_{i}", 1000.0 * (20 * k + i), duration) for k in range(40) for i in range(14)]
        kineto(tmp_path / run / "rank0.json", launches)
    nl.ingest([tmp_path / run for run in ("be fore", "after", "third")], store=tmp_path / "store", jobs=1).close()
    done = CliRunner().invoke(command, ["runs", "be fore", "after", "--by", "key", "--store", str(tmp_path / "store")],
                              env={"COLUMNS": "160"})
    more = " ".join(done.stdout.split()).partition("2 more: ")[2].partition("nsightlens show ")[2]
    store = str(tmp_path / "store")
    words = shlex.split(more.partition(store)[0] + store)
    assert words == ["run_difference", "by=key", "base=be fore", "other=after", "--store", store]
    shown = CliRunner().invoke(show, [*words, "--format", "csv"])
    assert shown.exit_code == 0 and len(shown.stdout.splitlines()) == 15


def test_of_two_programs_the_page_says_so_first_and_lists_nothing(tmp_path: Path) -> None:
    for number, (run, names) in enumerate({"solver": ("stencil", "halo"), "train": ("gemm",), "again": ("gemm", "halo")}.items()):
        launches = [(name, 1000.0 * (3 * k + at), 10.0) for k in range(40) for at, name in enumerate(names)]
        kineto(tmp_path / run / "rank0.json", launches, pid=number)
    store = tmp_path / "store"
    nl.ingest([tmp_path / "solver", tmp_path / "train", tmp_path / "again"], store=store, jobs=1).close()

    def said(*arguments: str) -> str:
        done = CliRunner().invoke(command, ["runs", *arguments, "--store", str(store)], env={"COLUMNS": "160"})
        assert done.exit_code == 0, done.output
        return " ".join(done.stdout.split())

    apart = said("solver", "train")
    assert apart.startswith("No kernel is in both runs: solver has 2, train 1. They look like different programs"), apart
    assert "Shares of the captured time" in apart and "How these two recordings differ" not in apart
    for kind in ("kernel", "family"):
        words = f"nsightlens show run_difference by={kind} base=solver other=train --store {store}"
        assert words in apart
        shown = CliRunner().invoke(show, words.split()[2:])
        assert shown.exit_code == 0 and ("stencil" if kind == "kernel" else "gemm") in shown.output
    assert said("solver", "train", "--by", "key").startswith("No kernel is in both runs")
    assert "is in both" not in said("solver", "train", "--by", "step"), "no item is compared"
    assert "is in both" not in said("solver", "train", "--by", "op"), "no operator is known in either"
    shared = said("solver", "again")
    assert shared.startswith("Undecided whether again differs from solver, as") and "How these two recordings differ" in shared
    assert nl.compare(nl.open(store), "solver", "train").verdict[0].startswith("No kernel is in both runs: solver has 2, train 1")


def test_two_runs_as_data(two: Path) -> None:
    done = CliRunner().invoke(command, ["runs", "before", "after", "--by", "key", "--store", str(two), "--format", "json"])
    tables = json.loads(done.stdout)["tables"]
    assert list(tables) == ["comparability", "step", "waterfall", "differences"]
    assert {row["item"]: (row["verdict"], row["in_recordings"]) for row in tables["differences"]} == {
        "gemm": ("undecided", "longer"), "same": ("undecided", "alike")}
    assert {row["unit"] for row in tables["waterfall"]} == {"of the capture"} and tables["step"] == []
    done = CliRunner().invoke(command, ["runs", "before", "after", "--store", str(two), "--format", "csv"])
    assert done.stdout.startswith("item,kernel_key,") and len(done.stdout.splitlines()) == 201, "a kernel per grid"


def test_two_runs_without_steps_are_compared_by_share(two: Path) -> None:
    done = CliRunner().invoke(command, ["runs", "before", "after", "--store", str(two)], env={"COLUMNS": "100"})
    assert "Shares of the captured time, by family" in done.stdout and "not step times" in " ".join(done.stdout.split())
    assert re.search(r"GPU idle in all: from [\d.]+ % to [\d.]+ %\.", done.stdout)
    assert "Step time" not in done.stdout and "Kineto slows the host" in done.stdout
    line = next(line for line in done.stdout.splitlines() if line.split()[:1] == ["gemm"])
    assert re.search(r" [\d.]+ % +[\d.]+ % +\+[\d.]+ +│", line), line


def waterfall_row(kind: str, item: str, difference: int, verdict: str = "undecided") -> dict[str, object]:
    return {"kind": kind, "item": item, "base_ns": 47_380_000, "other_ns": 47_380_000 + difference, "base_pct": 50.0,
            "other_pct": 50.0, "difference_ns": difference, "difference_pct": 0.0, "change_ns": 12_000_000, "rank": None,
            "tool": "nsys", "base_steps": 9, "other_steps": 9, "base_ranks": 2, "other_ranks": 2, "base_recordings": 3,
            "other_recordings": 3, "base_total_ns": 94_760_000, "other_total_ns": 106_760_000, "excluded_ranks": None,
            "verdict": verdict, "in_recordings": None}


@pytest.mark.parametrize(("width", "half"), [(80, 0), (84, 4), (100, 8), (200, 8)])
def test_the_bar_gives_way_to_names_and_verdicts(monkeypatch: pytest.MonkeyPatch, width: int, half: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    section = runs_page.waterfall([waterfall_row("idle", "communication calls", 16_000_000, "slower"),
                                   waterfall_row("compute", "gemm", -4_000_000)], "family")
    drawn = map(click.unstyle, Renderer(width=page_width()).drawn([section]))
    first, second = (line for line in drawn if " ms" in line and line[2:6] in ("idle", "gemm"))
    assert first.startswith("  idle, host: communication calls  47.38 ms") and first.endswith("slower")
    assert first.count("█") == half and ("│" in second) == bool(half)


def test_a_name_is_recognised_at_80_columns() -> None:
    name = "x" * NAME
    row = {"item": name, "base_ns": 47_380_000, "other_ns": 48_380_000, "difference_ns": 1_000_000, "low_ns": 900_000,
           "high_ns": 1_100_000, "change_pct": 2.1, "verdict": "slower", "in_recordings": None, "base_recordings": 3,
           "other_recordings": 3, "base_replicates": 9, "other_replicates": 9, "tool": "nsys", "unit": "per step"}
    drawn = map(click.unstyle, Renderer(width=80).drawn(runs_page.changes([row], "kernel", "base", "other", 1.0)))
    line = next(line for line in drawn if name in line)
    assert "+1.000 ms" in line and "+2.1 %" in line and line.endswith("slower")


def test_the_waterfall_is_drawn(two: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["runs", "before", "after", "--store", str(two), "-o", str(tmp_path / "x.svg")])
    assert done.exit_code == 0 and "before to after, kineto" in (tmp_path / "x.svg").read_text()
    assert "Shares of the captured time, by family" in done.stdout, "the page stands beside the picture"


def test_what_sidecars_tell_is_compared(tmp_path: Path) -> None:
    for run, batch in (("before", 32), ("after", 64)):
        kineto(tmp_path / run / "rank0.json", rank=0)
        told = {"run": run, "command": ["train.py", "--batch", str(batch)], "driver_version": "550.1"}
        (tmp_path / run / "rank0.run.json").write_text(json.dumps(told))
    nl.ingest([tmp_path / "before", tmp_path / "after"], store=tmp_path / "store", jobs=1).close()
    asked = ["runs", "before", "after", "--store", str(tmp_path / "store")]
    page = CliRunner().invoke(command, asked, env={"COLUMNS": "120"}).stdout
    assert re.search(r"command +kineto +train.py --batch 32 +train.py --batch 64", page), page
    assert "driver_version" not in page and "batch size are not known" not in page


@pytest.mark.long
def test_where_the_step_time_went(tmp_path: Path) -> None:
    generator.make(tmp_path / "base", seed=1, run="base", steps=6, evaluate_after=())
    generator.make(tmp_path / "other", seed=2, run="other", steps=6, evaluate_after=(), late=((3, 1, 40_000_000),))
    nl.ingest([tmp_path / "base", tmp_path / "other"], store=tmp_path / "store", jobs=1).close()
    asked = ["runs", "base", "other", "--store", str(tmp_path / "store")]
    with recorded() as made:
        page = CliRunner().invoke(command, asked, env={"COLUMNS": "100"}).stdout
    tables = json.loads(CliRunner().invoke(command, [*asked, "-f", "json"]).stdout)["tables"]
    change = tables["waterfall"][0]["change_ns"]
    assert sum(row["difference_ns"] for row in tables["waterfall"]) == change
    assert f"sum to {change:+,} ns" in page and "Step time · nsys, 1 recording each, 7 and 7 steps" in page
    assert tables["step"][0]["difference_ns"] == change
    ranks = CliRunner().invoke(command, [*asked, "--per", "rank", "--tool", "kineto"], env={"COLUMNS": "100"}).stdout
    assert ranks.count("Where the step time went of rank ") == 2 and "kineto" in ranks
    assert not too_long(page.splitlines(), 100, made)


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
