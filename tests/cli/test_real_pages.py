"""Pages and pictures of real captures, held against exact figures of them; they skip where the captures are absent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import nsightlens as nl
from nsightlens.cli.compare import command as compare
from nsightlens.cli.summary import command
from nsightlens.errors import NsightlensError
from nsightlens.views import figures
from tests.exact_intervals import exact_intervals
from tests.places import ROOT
from tests.terminal.whole_commands import recorded, too_long

DATA = ROOT.parent / "shared" / "data"
pytestmark = [pytest.mark.captures, pytest.mark.skipif(not DATA.is_dir(), reason="the real captures are not here")]
CAPTURES = {
    "eight_ranks": ["kineto/astra-sim__astra-sim__megatron-tp8"],
    "windows": sorted(f"kineto/{path.name}" for path in (DATA / "kineto").glob("Quentin-Anthony__*")),
    "nsys": ["nsys/GindaChen__nsys-ai__mfu_2gpu_before.sqlite"],
    "cpu_only": ["kineto/facebookresearch__HolisticTraceAnalysis__cpu_only_rank-34_of_300.json.gz"],
    "no_kernels": ["nsys/NTHU-SC__ISC25-ICON-C__rank_.sqlite"],
}


@pytest.fixture(scope="module", params=CAPTURES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp(request.param) / "store"
    nl.ingest([DATA / path for path in CAPTURES[request.param]], store=folder, run="base", jobs=1).close()
    return request.param, folder


def exact_times(name: str) -> list[int]:
    """Return the idle and compute time of each of the eight ranks in ns, counted from the files alone."""
    if name != "eight_ranks":
        return []
    found = [exact_intervals(path) for path in sorted((DATA / CAPTURES[name][0]).iterdir())]
    assert len(found) == 8
    return [one[column] for one in found for column in ("idle_ns", "union_compute_kernel_ns")]


@pytest.mark.parametrize("width", [80, 160])
def test_the_page_fits_and_names_what_is_missing(store: tuple[str, Path], width: int) -> None:
    with recorded() as made:
        done = CliRunner().invoke(command, ["--store", str(store[1])], catch_exceptions=False, env={"COLUMNS": str(width)})
    assert done.exit_code == 0 and not too_long(done.stdout.splitlines(), width, made)
    assert ("Ranks side by side" in done.stdout) == (store[0] in ("eight_ranks", "windows", "nsys"))
    for ns in exact_times(store[0]):
        assert figures.duration(ns) in done.stdout
    is_missing = bool(re.search(r"\n  - (?:totals of )?memory", done.stdout))
    assert ("Memory peak · " in done.stdout) is not is_missing and "nan" not in done.stdout.split()


def test_every_plot_is_drawn_or_says_what_is_missing(store: tuple[str, Path], tmp_path: Path) -> None:
    drawn = []
    with nl.open(store[1]) as opened:
        for name, draw in nl.plots.PLOTS.items():
            try:
                nl.plots.save(draw(opened.view(name)), tmp_path / f"{name}.png")
            except NsightlensError as exc:
                reasons = ("name two runs",) if name == "run_waterfall" else ("nothing to draw", "no kernel can be plotted")
                assert any(reason in str(exc) for reason in reasons)
            else:
                drawn.append(name)
    assert "step_breakdown" in drawn and ("top_kernels" in drawn) == (store[0] not in ("cpu_only", "no_kernels"))


def test_the_waterfall_in_the_readme_is_that_of_the_real_pair(tmp_path: Path) -> None:
    for workers, recording in ((0, 1623143089861), (4, 1623212756351)):
        name = f"pytorch__kineto__tb_plugin__resnet50_num_workers_{workers}__worker0.{recording}.pt.trace.json.gz"
        nl.ingest(DATA / "kineto" / name, store=tmp_path / "store", run=f"w{workers}", jobs=1).close()
    done = CliRunner().invoke(compare, ["runs", "w0", "w4", "--store", str(tmp_path / "store")], env={"COLUMNS": "100"})
    block = re.search(r"```text\n(.*?)```", (ROOT / "docs" / "commands.md").read_text(), re.DOTALL)
    assert block and block[1] in done.stdout


def test_without_steps_the_page_covers_the_whole_capture(tmp_path: Path) -> None:
    nl.ingest(DATA / "nsys" / "GindaChen__nsys-ai__h100_2gpu_1s.sqlite", store=tmp_path / "store", jobs=1).close()
    done = CliRunner().invoke(command, ["--store", str(tmp_path / "store")], env={"COLUMNS": "120"}).stdout
    assert "GPUs · nsys, over the whole capture\n" in done
    assert "The judged window · nsys, first to last GPU work" in done and "Where the time went" not in done
    assert "first step's start" not in done


def test_grouped_gemms_of_three_namespaces_have_three_labels(tmp_path: Path) -> None:
    nl.ingest(DATA / "kineto" / "deepseek-ai__profile-data__train.json", store=tmp_path, jobs=1).close()
    done = CliRunner().invoke(command, ["--store", str(tmp_path)], catch_exceptions=False, env={"COLUMNS": "80"})
    top = done.stdout.partition("\nTop kernels")[2] or done.stdout.partition("\nKernels")[2]
    found = {line.strip().partition("  ")[0] for line in top.splitlines() if "GemmKernel" in line}
    assert found == {f"GemmKernel: {space}" for space in ("fp8_dptp128c_acc", "fp8_ptp128c", "m_grouped_fp8_ptp128c")}
    with nl.open(tmp_path) as opened:
        figure = nl.plots.top_kernels(opened.view("top_kernels"))
    drawn = [text.get_text() for part in figure.subfigs for text in part.axes[0].get_yticklabels()]
    assert found < set(drawn) and len(set(drawn)) == len(drawn)


def test_ranks_that_two_pooled_captures_claim_are_named(tmp_path: Path) -> None:
    """Ranks 0 and 1 of a DLRM job and of a Megatron job, put into one run."""
    folders = ("facebookresearch__param__dlrm8", "astra-sim__astra-sim__megatron-tp8")
    traces = [path for folder in folders for path in sorted((DATA / "kineto" / folder).iterdir())[:2]]
    nl.ingest(traces, store=tmp_path, run="pooled", jobs=1).close()
    done = CliRunner().invoke(compare, ["ranks", "--store", str(tmp_path)], catch_exceptions=False, env={"COLUMNS": "120"})
    assert done.exit_code == 0 and "Rank 0, 1: several processes claim it, and its time is the sum of theirs" in done.stdout
    assert re.findall(r"Stragglers · kineto, (\d+) matched", done.stdout) == ["8", "84"], "each job by itself"


def test_two_functions_of_one_process_are_no_two_processes(tmp_path: Path) -> None:
    """cuMemHostAlloc, the first call, takes 24,915,329 ns; copying calls hold 15.9 of 82,145,841 idle ns: by sqlite3 alone."""
    nl.ingest(DATA / "nsys" / "PolPuigPuy__OpenACC_Project_PolPuig__report2.sqlite", store=tmp_path, jobs=1).close()
    done = CliRunner().invoke(command, ["--store", str(tmp_path)], catch_exceptions=False, env={"COLUMNS": "160"})
    said = " ".join(done.stdout.split())
    assert "cuMemHostAlloc 24.92 ms" in said and "cuMemcpyHtoDAsync 15.94 ms" in said and "82.15 ms" in said
    assert "2 processes" not in said and "pinned memory" not in said, "the copies are asynchronous, and from pinned memory"
