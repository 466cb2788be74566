"""nsightlens roofline: what a person asks, what stands on standard output, what is said beside it."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import nsightlens as nl
from nsightlens.cli.roofline import command
from nsightlens.cli.summary import command as summary
from nsightlens.errors import NsightlensError, UsageError
from tests.captures import kineto, ncu
from tests.places import ROOT

REPORT = ROOT.parent / "shared" / "data" / "ncu" / "rep" / "lakshya_naive.ncu-rep"
CORE = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
COUNTERS = {
    "gpu__time_duration.sum": ("us", "10.00"), "dram__bytes.sum": ("Mbyte", "2.00"), CORE.format("fadd"): ("inst", "1,000,000"),
    CORE.format("fmul"): ("inst", "0"), CORE.format("ffma"): ("inst", "2,000,000"),
    "dram__bytes.sum.peak_sustained": ("byte/cycle", "1,000"), "dram__cycles_elapsed.avg.per_second": ("Ghz", "1.00"),
    "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": ("inst/cycle", "6,912"),  # 108 SMs of 64 lanes
    "sm__cycles_elapsed.avg.per_second": ("Ghz", "1.00"),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CUDA-core kernel, a tensor kernel without tensor counters, one without counters, one that only Kineto saw."""
    folder = tmp_path_factory.mktemp("roofline")
    ncu(folder / "base" / "a.csv", COUNTERS, name="ampere_sgemm_128x64_nn", pid=1)
    ncu(folder / "base" / "b.csv", COUNTERS, name="ampere_bf16_s16816gemm_bf16_128x256_ldg8", pid=2)
    ncu(folder / "base" / "c.csv", {"gpu__time_duration.sum": ("us", "10.00")}, name="copy_kernel", pid=3)
    kineto(folder / "base" / "rank0.json", [("only_in_the_timeline", 10.0, 5.0)])
    nl.ingest([folder / "base"], store=folder / "store", jobs=1).close()
    return folder / "store"


def ask(store: Path, *arguments: str | Path) -> Result:
    asked = [*map(str, arguments), "--store", str(store)]
    return CliRunner().invoke(command, asked, catch_exceptions=False, env={"COLUMNS": "400"})


def refused(store: Path, *arguments: str | Path) -> str:
    with pytest.raises(NsightlensError) as caught:
        ask(store, *arguments)
    return str(caught.value)


def test_table_on_standard_output_and_reasons_beside(store: Path) -> None:
    done = ask(store)
    assert done.exit_code == 0
    (line,) = [line for line in done.stdout.splitlines() if "sgemm" in line]
    cells = line.split()
    assert cells[:7] == ["base", "–", "ampere_sgemm_128x64_nn", "4x1x1", "128x1x1", "dram", "fp32"]
    assert [float(cell) for cell in cells[7:13]] == [10.0, 500.0, 2.5, 20.0, 200.0, 1]
    (tensor,) = [line for line in done.stdout.splitlines() if "s16816gemm" in line]
    assert tensor.split()[8] == "–", "its CUDA-core operations are not its performance"
    assert "not plotted: ampere_bf16_s16816gemm_bf16_128x256_ldg8: " in done.stderr and "--set roofline" in done.stderr
    assert "not plotted: copy_kernel: no operations were counted" in done.stderr


def test_captures_of_different_programs_are_suspected(store: Path) -> None:
    hint = "if the captures are of different programs, ingest each with a --run NAME of its own"
    assert hint in ask(store, "--time", "kineto", "--kernel", "sgemm").stderr
    assert hint not in ask(store).stderr


@pytest.mark.parametrize(("arguments", "kernels"), [
    (["--kernel", "SGEMM"], {"ampere_sgemm_128x64_nn"}),
    (["--kernel", "^ampere_.*(nn|ldg8)$", "--regex"], {"ampere_sgemm_128x64_nn", "ampere_bf16_s16816gemm_bf16_128x256_ldg8"}),
    (["--run", "base", "--kernel", "copy"], {"copy_kernel"}),
    (["--kernel", "*gemm*"], {"ampere_sgemm_128x64_nn", "ampere_bf16_s16816gemm_bf16_128x256_ldg8"}),
    (["--kernel", "AMPERE_S*"], {"ampere_sgemm_128x64_nn"}),
    (["--kernel", "copy_kerne?"], {"copy_kernel"}),
    (["--kernel", ".*gemm.*"], {"ampere_sgemm_128x64_nn", "ampere_bf16_s16816gemm_bf16_128x256_ldg8"}),
    (["--kernel", "copy,sgemm"], {"copy_kernel", "ampere_sgemm_128x64_nn"}),
    (["--kernel", "copy", "--kernel", "sgemm"], {"copy_kernel", "ampere_sgemm_128x64_nn"}),
    (["--kernel", "^copy", "--kernel", "^ampere_s", "--regex"], {"copy_kernel", "ampere_sgemm_128x64_nn"}),
    (["--precision", "fp32"], {"ampere_sgemm_128x64_nn", "ampere_bf16_s16816gemm_bf16_128x256_ldg8"}),
    (["--precision", "tensor"], {"ampere_bf16_s16816gemm_bf16_128x256_ldg8"}),
    (["--precision", "bf16"], {"ampere_bf16_s16816gemm_bf16_128x256_ldg8"}),
])
def test_kernels_are_chosen(store: Path, arguments: list[str], kernels: set[str]) -> None:
    assert {line.split()[2] for line in ask(store, *arguments).stdout.splitlines()[2:]} == kernels


@pytest.mark.parametrize("shown", ["ampere_bf16_s…6_128x256_ldg8", "ampere_bf16_s…ldg8 (1)"])
def test_a_kernel_is_asked_for_as_tables_show_it(store: Path, shown: str) -> None:
    (line,) = ask(store, "-k", shown).stdout.splitlines()[2:]
    assert line.split()[2] == "ampere_bf16_s16816gemm_bf16_128x256_ldg8"


def test_kernels_that_are_not_there_have_one_list_of_similar_names(store: Path) -> None:
    message = refused(store, "-k", "foo", "-k", "fooo")
    assert message.count("similar names") == 1 and "no kernel like 'foo' or 'fooo'" in message


def test_how_a_name_was_understood_is_said(store: Path) -> None:
    assert "--kernel .*sgemm: taken as a regular expression" in ask(store, "--kernel", ".*sgemm").stderr
    assert "regular expression" not in ask(store, "--kernel", "*sgemm*").stderr
    assert "ncu profiled no kernel like 'zonk'" in ask(store, "--kernel", "sgemm,zonk").stderr
    assert "ncu profiled no kernel like 'zonk'" in refused(store, "--kernel", "zonk")


@pytest.mark.parametrize("asked", [["zonk"], ["^zonk", "--regex"], ["zonk", "--time", "kineto"]])
def test_a_kernel_that_is_not_there_is_a_usage_error_that_names_those_that_are(store: Path, asked: list[str]) -> None:
    with pytest.raises(UsageError, match=r"similar names: .*copy_kernel") as caught:
        ask(store, "--kernel", *asked)
    assert caught.value.subject == "kernel" and "copy_kernel" in caught.value.choices


def test_longest_kernels_come_first_and_kernels_without_operations_have_a_share(tmp_path: Path) -> None:
    none = {name: (unit, "0" if "op_f" in name and "peak" not in name else value) for name, (unit, value) in COUNTERS.items()}
    for number, (name, us, counters) in enumerate((("a", "5.00", COUNTERS), ("b", "20.00", none), ("c", "10.00", COUNTERS))):
        ncu(tmp_path / "run" / f"{name}.csv", {**counters, "gpu__time_duration.sum": ("us", us)}, name=name, pid=number)
    rates = {"dram__bytes.sum.per_second": ("Gbyte/s", "500"), **{
        name: cell for name, cell in COUNTERS.items() if "peak" in name or "per_second" in name}, **{
        CORE.format(op) + ".per_second": ("inst/s", "1,000,000,000") for op in ("fadd", "fmul", "ffma")}}
    ncu(tmp_path / "run" / "d.csv", rates, name="d", pid=9)
    nl.ingest([tmp_path / "run"], store=tmp_path / "store", jobs=1).close()
    rows = list(csv.DictReader(ask(tmp_path / "store", "--format", "csv").stdout.splitlines()))
    assert [row["kernel"] for row in rows] == ["b", "c", "a", "d"]
    copy, _, _, untimed = rows
    assert float(copy["roof_pct"]) == pytest.approx(10) and copy["gflop_per_s"] == "", "2 MB in 20 us, of 1 TB/s"
    assert float(untimed["roof_pct"]) == pytest.approx(50) and untimed["duration_us"] == "", "unknown, not 0"


def test_several_launches_have_a_range(tmp_path: Path) -> None:
    ncu(tmp_path / "run" / "a.csv", COUNTERS, name="a", pid=1, launches=2)
    ncu(tmp_path / "run" / "b.csv", COUNTERS | {"gpu__time_duration.sum": ("us", "20.00")}, name="a", pid=2)
    nl.ingest([tmp_path / "run"], store=tmp_path / "store", jobs=1).close()
    (row,) = csv.DictReader(ask(tmp_path / "store", "--format", "csv").stdout.splitlines())
    assert [float(row[f"{end}_gflop_per_s"]) for end in ("min", "max")] == [250, 500]
    assert [float(row[f"{end}_gbyte_per_s"]) for end in ("min", "max")] == [100, 200]


def test_a_time_that_is_not_recorded_is_unknown_and_not_0(tmp_path: Path) -> None:
    untimed = {name: cell for name, cell in COUNTERS.items() if "time" not in name}
    ncu(tmp_path / "run" / "a.csv", untimed, name="a", pid=1)
    from nsightlens.cli.ingest import command as ingest
    done = CliRunner().invoke(ingest, [str(tmp_path / "run"), "--store", str(tmp_path / "store")], catch_exceptions=False)
    assert "1 kernel (time unknown)" in done.stdout + done.stderr
    page = CliRunner().invoke(summary, ["--store", str(tmp_path / "store")], catch_exceptions=False).stdout
    assert "0 ns" not in page


def test_nearest_names_come_from_full_names(tmp_path: Path) -> None:
    named = "void Kernel<Gemm<MmaPipelined<Shape<128, 256>, Iterator<A>>, Epilogue>>(P)"
    ncu(tmp_path / "run" / "a.csv", COUNTERS, name=named, pid=1)
    ncu(tmp_path / "run" / "b.csv", COUNTERS, name="mma_pipes", pid=2)
    nl.ingest([tmp_path / "run"], store=tmp_path / "store", jobs=1).close()
    assert "similar names: 'Gemm<MmaPipelined<" in refused(tmp_path / "store", "--kernel", "MmaPipelind")


def test_all_levels_and_precisions(store: Path) -> None:
    lines = ask(store, "--kernel", "s16816", "--level", "all", "--precision", "all").stdout.splitlines()[2:]
    assert sorted(tuple(line.split()[5:7]) for line in lines) == sorted(
        (level, precision) for level in ("dram", "l2", "l1") for precision in ("fp32", "tensor"))


def test_kernels_of_one_short_name_are_told_apart(tmp_path: Path) -> None:
    for number, functor in enumerate(("AddFunctor", "MulFunctor")):
        name = f"void at::elementwise_kernel<4, at::{functor}<float>>(int)"
        ncu(tmp_path / "run" / f"{number}.csv", COUNTERS, name=name, pid=number)
    nl.ingest([tmp_path / "run"], store=tmp_path / "store", jobs=1).close()
    rows = list(csv.DictReader(ask(tmp_path / "store", "--format", "csv").stdout.splitlines()))
    assert [row["kernel"] for row in rows] == ["elementwise_kernel<AddFunctor<float>>", "elementwise_kernel<MulFunctor<float>>"]
    assert {row["block"] for row in rows} == {"128x1x1"} and {row["run"] for row in rows} == {"run"}


def test_a_missing_roof_says_how_to_give_one(tmp_path: Path) -> None:
    peakless = {name: value for name, value in COUNTERS.items() if "peak_sustained" not in name}
    peakless["l1tex__t_bytes.sum"] = ("Mbyte", "3.00")
    ncu(tmp_path / "run" / "a.csv", peakless, name="some_kernel", pid=1)
    nl.ingest([tmp_path / "run"], store=tmp_path / "store", jobs=1).close()
    hint = "no roof for fp32, dram: the report does not name its GPU: use --gpu NAME"
    assert hint in ask(tmp_path / "store").stderr
    assert "no roof" not in ask(tmp_path / "store", "--gpu", "NVIDIA A100-SXM4-40GB").stderr
    of_l1 = ask(tmp_path / "store", "--gpu", "A30", "--level", "l1").stderr
    assert "no roof for l1: the datasheet of A30 has none" in of_l1 and "--gpu NAME" not in of_l1, "it was given"


def counted(folder: Path, **devices: tuple[str, str | None]) -> Path:
    """A store with one kernel per run; devices: the compute capability of each, and its GPU's name where the report has one."""
    for number, (run, (capability, gpu)) in enumerate(devices.items()):
        more = {"device__attribute_display_name": ("", gpu)} if gpu else {}
        ncu(folder / run / "a.csv", {**COUNTERS, **more}, name=f"kernel_of_{run}", pid=number, cc=capability)
    nl.ingest([folder / run for run in devices], store=folder / "store", jobs=1).close()
    return folder / "store"


A100 = ("--gpu", "A100 SXM4 40GB", "--roofs", "datasheet", "--format", "csv")


def shares(store: Path, *arguments: str) -> dict[str, str]:
    return {row["run"]: row["roof_pct"] for row in csv.DictReader(ask(store, *arguments).stdout.splitlines())}


def test_the_datasheet_that_is_given_fits_the_report(tmp_path: Path) -> None:
    """A100: compute capability 8.0, 108 SMs, which the peak per cycle of COUNTERS is, too; A30 has 56."""
    store = counted(tmp_path, one=("8.0", None), two=("12.0", None))
    found = ask(store, *A100)
    by_run = {row["run"]: row for row in csv.DictReader(found.stdout.splitlines())}
    assert float(by_run["one"]["roof_pct"]) == pytest.approx(100 * 200e9 / 1555e9, rel=1e-3)
    assert float(by_run["two"]["roof_pct"]) == pytest.approx(20), "of ncu's own roof"
    assert "A100 SXM4 40GB not used: it has compute capability 8.0, the report's GPU 12.0" in found.stderr
    assert "it has compute capability 8.0, the report's GPU 12.0" in refused(store, *A100, "--run", "two")
    assert "it has 56 SMs, the report's GPU 108" in refused(store, "--gpu", "A30", "--run", "one")
    forced = shares(store, *A100, "--force-gpu")
    assert float(forced["two"]) == float(forced["one"]) == pytest.approx(100 * 200e9 / 1555e9, rel=1e-3)


def test_the_datasheet_that_is_given_is_for_unknown_gpus(tmp_path: Path) -> None:
    store = counted(tmp_path, known=("9.0", "NVIDIA H100 80GB HBM3"), unknown=("8.0", None))
    found = ask(store, *A100)
    assert "A100 SXM4 40GB not used: the report's GPU is named, NVIDIA H100 80GB HBM3" in found.stderr
    found_shares = shares(store, *A100)
    assert float(found_shares["known"]) == pytest.approx(100 * 200e9 / 3352e9, rel=1e-3)
    assert float(found_shares["unknown"]) == pytest.approx(100 * 200e9 / 1555e9, rel=1e-3)
    assert float(shares(store, *A100, "--force-gpu")["known"]) == pytest.approx(100 * 200e9 / 1555e9, rel=1e-3)
    assert "--force-gpu needs --gpu" in refused(store, "--force-gpu")


def test_the_roofs_are_printed_with_five_digits(store: Path) -> None:
    assert "roofs of ncu: fp32 13.824 TFLOP/s, dram 1 TB/s" in ask(store, "--kernel", "sgemm").stderr


def test_points_hold_all_columns(store: Path, tmp_path: Path) -> None:
    ask(store, "--kernel", "sgemm", "--points", tmp_path / "points.csv")
    (row,) = csv.DictReader(io.StringIO((tmp_path / "points.csv").read_text()))
    assert list(row) == [name for name, _ in nl.open(store).views["roofline"].columns]
    assert float(row["achieved_flop_per_s"]) == 500e9 and row["plottable"] == "True"


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_figure_is_drawn(store: Path, tmp_path: Path, ending: str) -> None:
    done = ask(store, "--kernel", "sgemm", "--output", tmp_path / f"x.{ending}")
    assert (tmp_path / f"x.{ending}").stat().st_size > 5000
    assert f"x.{ending}" in done.stderr and "x." not in done.stdout


def test_captures_are_read_without_a_store(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ncu(tmp_path / "run" / "a.csv", COUNTERS, name="ampere_sgemm_128x64_nn", pid=1)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["-k", "sgemm", "--output", "x.png", "run"], catch_exceptions=False)
    assert "ampere_sgemm_128x64_nn" in done.stdout and {path.name for path in tmp_path.iterdir()} == {"run", "x.png"}
    with pytest.raises(UsageError, match="without a store"):
        ask(store, tmp_path / "run")


@pytest.mark.captures
@pytest.mark.skipif(not REPORT.is_file(), reason="no ../shared/data/ncu/rep")
def test_a_report_needs_no_gpu_to_be_named(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    shutil.copy(REPORT, tmp_path / "run")
    asked = ["-k", "naive_gemm", "--points", str(tmp_path / "x.json"), "--output", str(tmp_path / "x.svg"), str(tmp_path / "run")]
    done = CliRunner().invoke(command, asked, catch_exceptions=False)
    rows = json.loads((tmp_path / "x.json").read_text())["rows"]
    assert rows and all(row["precision"] == "fp32" and 0 < row["roof_pct"] < 100 for row in rows)
    assert "roofs of ncu: fp32" in done.stderr and (tmp_path / "x.svg").is_file()


def test_nothing_to_draw_is_an_error_with_the_reason(store: Path, tmp_path: Path) -> None:
    message = refused(store, "--kernel", "s16816", "--output", tmp_path / "x.png")
    assert "no kernel can be plotted" in message
    assert not (tmp_path / "x.png").exists()
    asked = ["--kernel", "s16816", "--output", str(tmp_path / "x.png"), "--store", str(store)]
    done = CliRunner().invoke(command, asked)
    assert (done.stderr + str(done.exception)).count("--set roofline") == 1, "the reason stands beside the table"


def test_rows_are_sorted_and_what_is_sorted_by_has_room(store: Path) -> None:
    rows = list(csv.DictReader(ask(store, "--sort=-gflop_per_s,kernel", "--format", "csv").stdout.splitlines()))
    assert [row["kernel"].split("_")[1] for row in rows] == ["sgemm", "bf16", "kernel"]
    asked = ["--sort", "precision", "--store", str(store)]
    narrow = CliRunner().invoke(command, asked, catch_exceptions=False, env={"COLUMNS": "60"}).stdout.splitlines()
    assert "precision" in next(narrow[n - 1] for n, line in enumerate(narrow) if line.startswith("─"))
    assert "the table has no column 'roof'; did you mean roof_pct?" in refused(store, "--sort", "roof")


def test_several_runs_and_ranks_are_told_apart_on_a_narrow_terminal(tmp_path: Path) -> None:
    for number, run in enumerate(("before", "after")):
        for rank in range(2):
            ncu(tmp_path / run / f"ncu_rank{rank}.csv", COUNTERS, name=f"sgemm_of_{run}_{rank}", pid=10 * number + rank)
    nl.ingest([tmp_path / "before", tmp_path / "after"], store=tmp_path / "store", jobs=1).close()
    asked = ["--store", str(tmp_path / "store")]
    lines = CliRunner().invoke(command, asked, catch_exceptions=False, env={"COLUMNS": "60"}).stdout.splitlines()
    assert {"run", "rank"} <= set(next(lines[n - 1] for n, line in enumerate(lines) if line.startswith("─")).split())


def test_datasheet_roofs_of_a_gpu_that_the_report_does_not_name(store: Path) -> None:
    done = ask(store, "--kernel", "sgemm", "--roofs", "datasheet", "--gpu", "NVIDIA A100-SXM4-40GB", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert float(row["roof_pct"]) == pytest.approx(100 * 200e9 / 1555e9, rel=1e-3)


@pytest.mark.parametrize(("arguments", "message"), [
    (["--kernel", "ampere_sgem_128x64"], "ampere_sgemm_128x64_nn"),
    (["--kernel", "only_in_the_timeline"], "kineto recorded such kernels, without counters: profile them with ncu"),
    (["--run", "none"], "--run none: the store has base"),
    (["--rank", "7"], "--rank 7: the store has rank 0"),
    (["--step", "1"], "roofline has no column step"),
    (["--precision", "fp8"], "no kernel has precision fp8"),
    (["--gpu", "Voodoo 2"], "no datasheet for 'Voodoo 2'; there are: A10"),
    (["--output", "x.bmp"], "use .png, .svg or .pdf"),
    (["--points", "x.txt"], "use .csv, .json or .parquet"),
    (["--regex"], "--regex needs --kernel"),
    (["--kernel", "(", "--regex"], "("),
])
def test_what_cannot_be_done_says_what_can(store: Path, arguments: list[str], message: str) -> None:
    if arguments[1:2] == ["fp8"]:
        # A tensor kernel that was not counted answers for every tensor path, so that only other kernels can lack it.
        arguments = [*arguments, "--kernel", "sgemm"]
    assert message in refused(store, *arguments)


TIMED = 3.0  # us in the timeline, of what takes 10 under ncu


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernel of COUNTERS (grid 4) in Kineto too: one launch at grid 4; another kernel at another grid only."""
    folder = tmp_path_factory.mktemp("timed")
    ncu(folder / "base" / "a.csv", COUNTERS, name="ampere_sgemm_128x64_nn", pid=1)
    ncu(folder / "base" / "b.csv", COUNTERS, name="volta_sgemm_64x64_nn", pid=2)
    kineto(folder / "base" / "rank0.json", [  # the n-th launch has grid n
        *(("filler", 10.0 * i, 5.0) for i in range(3)), ("ampere_sgemm_128x64_nn", 40.0, TIMED),
        ("volta_sgemm_64x64_nn", 50.0, 4.0)])
    nl.ingest([folder / "base"], store=folder / "store", jobs=1).close()
    return folder / "store"


def test_who_timed_the_kernels_undisturbed_is_said_once(timed: Path, store: Path) -> None:
    assert "kineto timed 1 of these 2 configurations undisturbed: for the true roofline add --time kineto\n" in ask(timed).stderr
    assert "undisturbed" not in ask(store).stderr and "undisturbed" not in ask(timed, "--time", "kineto").stderr


def test_undisturbed_time_in_the_table(timed: Path) -> None:
    done = ask(timed, "--time", "kineto", "--kernel", "ampere", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert list(row) == [
        "run", "rank", "kernel", "grid", "block", "level", "precision", "duration_us", "gflop_per_s", "flop_per_byte",
        "roof_pct", "gbyte_per_s", "launches", "work", "time", "grade", "time_launches", "ncu_gflop_per_s", "min_us", "p5_us",
        "p95_us", "max_us", "roof_clock"]
    assert (row["time"], row["grade"], row["time_launches"], row["launches"]) == (
        "kineto", "configuration, all ranks", "all", "1")
    assert [float(row[name]) for name in ("duration_us", "p5_us", "p95_us", "gflop_per_s", "ncu_gflop_per_s")] == [
        TIMED, TIMED, TIMED, pytest.approx(5e6 / TIMED / 1e3), 500.0]
    assert row["roof_clock"] == "1 GHz, clock under ncu"
    assert "roofs at the clock under ncu, 1 GHz; the clock during the launches is unknown" in done.stderr


def test_without_counters_the_shapes_are_offered(tmp_path: Path) -> None:
    kineto(tmp_path / "run" / "t.json", [("a_kernel", 10.0, 5.0)])
    nl.ingest([tmp_path / "run"], store=tmp_path / "store", jobs=1).close()
    assert "from operator shapes alone: --time kineto" in refused(tmp_path / "store")
    assert "--time" not in refused(tmp_path / "store", "--time", "kineto")


def test_worse_grades_must_be_asked_for(timed: Path) -> None:
    refused_ = ask(timed, "--time", "kineto", "--kernel", "volta", "--format", "json")
    assert json.loads(refused_.stdout)["rows"][0]["gflop_per_s"] is None
    assert "kineto timed this kernel only with another grid or block (grade key, 1 launches)" in refused_.stderr
    taken = ask(timed, "--time", "kineto", "--kernel", "volta", "--grade", "key", "--format", "json")
    assert json.loads(taken.stdout)["rows"][0]["grade"] == "key, all ranks" and "timed with another grid or block" in taken.stderr


def test_a_true_roofline_is_drawn_and_its_points_written(timed: Path, tmp_path: Path) -> None:
    ask(timed, "--time", "kineto", "--output", tmp_path / "x.svg", "--points", tmp_path / "x.csv", "--notes")
    assert "over the duration under ncu" in (tmp_path / "x.svg").read_text()
    (row, _) = csv.DictReader(io.StringIO((tmp_path / "x.csv").read_text()))
    assert list(row) == [name for name, _ in nl.open(timed).views["true_roofline"].columns]


@pytest.mark.parametrize("option", [["--grade", "key"], ["--ranks", "each"], ["--launches", "all"], ["--work", "shapes"]])
def test_options_of_undisturbed_times_need_one(timed: Path, option: list[str]) -> None:
    assert refused(timed, *option) == f"{option[0]} needs --time nsys or kineto"


def test_a_store_without_ncu_says_what_to_ingest(tmp_path: Path) -> None:
    kineto(tmp_path / "run" / "rank0.json")
    nl.ingest([tmp_path / "run"], store=tmp_path / "store", jobs=1).close()
    assert refused(tmp_path / "store").endswith(
        "ingest an ncu report (ncu --set roofline --export FILE); from operator shapes alone: --time kineto")
    assert refused(tmp_path / "store", "--time", "kineto").endswith(
        "; nor is their work known from operator shapes (record_shapes=True)")


@pytest.fixture(scope="module")
def shaped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace with shapes alone: 21 products of m x 64 and 64 x 32, half precision, m = 64 to 84, 10 us each."""
    folder = tmp_path_factory.mktemp("shaped")
    kernels = [(f"ampere_fp16_s16816gemm_fp16_64x{64 + i}", 100.0 * i, 10.0 + i) for i in range(21)]
    path = kineto(folder / "run" / "rank0.json", kernels)
    trace = json.loads(path.read_text())
    calls = [event for event in trace["traceEvents"] if event.get("cat") == "cuda_runtime"]
    for number, call in enumerate(calls):
        trace["traceEvents"].append({
            "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": call["pid"], "tid": call["tid"], "ts": call["ts"] - 1.0,
            "dur": 9.0,
            "args": {"External id": number + 1, "Input Dims": [[64 + number, 64], [64, 32]],
                     "Input type": ["c10::Half", "c10::Half"]}})
    path.write_text(json.dumps(trace))
    nl.ingest([folder / "run"], store=folder / "store", jobs=1).close()
    return folder / "store"


def test_without_counters_the_shapes_place_kernels(shaped: Path, tmp_path: Path) -> None:
    asked = ("--time", "kineto", "--kernel", "64x65", "--format", "json", "--output", tmp_path / "x.svg")
    assert "no datasheet for NVIDIA A100: --gpu NAME --force-gpu" in refused(shaped, *asked)
    done = ask(shaped, *asked, "--gpu", "A100 SXM4 40GB", "--force-gpu")
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["work"], row["time"], row["grade"], row["precision"]) == ("shapes", "kineto", "launch, all ranks", "tensor_fp16")
    assert row["gflop_per_s"] == pytest.approx(2 * 65 * 64 * 32 / 11e3)
    assert row["flop_per_byte"] == pytest.approx(2 * 65 * 64 * 32 / (2 * (65 * 64 + 64 * 32 + 65 * 32)))
    assert row["shapes"] == "aten::mm [[65, 64], [64, 32]]"
    assert "the intensity is an upper bound" in done.stderr
    picture = (tmp_path / "x.svg").read_text()
    assert "FP16 tensor, from shapes" in picture and "Stars: operations and least bytes from the shapes" in done.stderr


def test_of_many_kernels_from_shapes_the_longest_are_shown(shaped: Path) -> None:
    done = ask(shaped, "--time", "kineto", "--format", "json")
    shown = [row["duration_us"] for row in json.loads(done.stdout)["rows"]]
    assert shown == [30.0 - i for i in range(20)], "the shortest is left out"
    assert "1 more kernels from shapes with less time: --kernel NAME shows them" in done.stderr


def test_wrong_requests_are_usage_errors(store: Path) -> None:
    with pytest.raises(UsageError):
        ask(store, "--regex")
    assert ask(store, "--level", "l3").exit_code == 2


def test_the_summary_points_here(bundled_store: Path, tmp_path: Path) -> None:
    ncu(tmp_path / "base" / "a.csv", {"gpu__time_duration.sum": ("us", "10.00")})
    nl.ingest([tmp_path / "base"], store=tmp_path / "store", jobs=1).close()
    for store, pointer in ((bundled_store, f"nsightlens roofline --time nsys --store {bundled_store}\n"),
                           (tmp_path / "store", f"nsightlens roofline --store {tmp_path / 'store'}\n")):
        page = CliRunner().invoke(summary, ["--store", str(store)], catch_exceptions=False, env={"COLUMNS": "300"})
        assert pointer in page.stdout


def test_roofs_and_operations_of_a_study_go_first(store: Path, tmp_path: Path) -> None:
    """2 MB and 5 million operations in 10 us: 200 GB/s and 500 GFLOP/s."""
    def points(*options: str) -> dict[str, str]:
        ask(store, "--kernel", "sgemm", "--points", tmp_path / "points.csv", *options)
        (row,) = csv.DictReader((tmp_path / "points.csv").open())
        return row

    measured = points("--roof", "dram=800GB/s", "--roof", "fp32=2 TFLOP/s")
    assert (float(measured["given_peak_bytes_per_s"]), float(measured["given_peak_flop_per_s"])) == (8e11, 2e12)
    assert float(measured["given_roof_pct"]) == pytest.approx(25.0) and float(measured["roof_pct"]) == pytest.approx(20.0)
    assert float(points("--roof", "dram=250e9")["given_roof_pct"]) == pytest.approx(80.0)
    counted = points("--flops", "SGEMM=2.5e6")
    assert (counted["work_definition"], float(counted["work_flop"])) == ("given", 2.5e6)
    assert [float(counted[name]) for name in ("achieved_flop_per_s", "arithmetic_intensity")] == [2.5e11, 1.25]
    assert float(counted["given_roof_pct"]) == pytest.approx(20.0), "the memory's share, which does not depend on operations"
    assert "dram 800 GB/s" in ask(store, "--kernel", "sgemm", "--roof", "dram=800GB/s").stderr


def test_operations_are_given_where_none_were_counted(store: Path, tmp_path: Path) -> None:
    ask(store, "--kernel", "s16816gemm", "--flops", "s16816=4e6", "--roof", "tensor=1e12", "--points", tmp_path / "points.csv")
    (row,) = csv.DictReader((tmp_path / "points.csv").open())
    assert row["plottable"] == "True" and float(row["achieved_flop_per_s"]) == 4e11 and float(row["given_roof_pct"]) == 40.0


@pytest.mark.parametrize("options", [
    ("--roof", "bf17=1e12"), ("--roof", "dram=-1"), ("--roof", "dram=fast"), ("--roof", "dram"), ("--roof", "dram=1.2.3"),
    ("--flops", "no_such_kernel=1e9"), ("--flops", "copy_kernel=1e9"), ("--flops", "=1"),
])
def test_figures_of_a_study_that_fit_nothing_are_refused(store: Path, options: tuple[str, str]) -> None:
    with pytest.raises(UsageError):
        ask(store, *options)
