"""nsightlens summary: the page to read first, at every width, with and without what the captures hold."""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from pathlib import Path
from typing import Any, cast

import click
import pytest
from click.testing import CliRunner, Result

import nsightlens as nl
from nsightlens.cli.summary import command
from nsightlens.diagnosis import words
from nsightlens.diagnosis.branches import BRANCHES
from nsightlens.diagnosis.timeline import CAUSES
from nsightlens.errors import UsageError
from nsightlens.pages import page
from nsightlens.pages.page import Renderer
from nsightlens.pages.query import Page
from nsightlens.pages.section import Section
from nsightlens.pages.sections import SECTIONS, diagnostics, ordered
from nsightlens.pages.tables import Column
from nsightlens.store.store import Store
from nsightlens.terminal.text import written
from nsightlens.views import figures
from tests.captures import kineto, ncu
from tests.cli.command_line import run as ran
from tests.places import ROOT
from tests.readers.nsys_report import base, call, strings, write
from tests.terminal.whole_commands import recorded, too_long

FIXTURE = ROOT / "fixtures" / "simulated_resnet18_ddp"


@pytest.fixture(scope="module")
def demo(bundled_store: Path) -> Path:
    return bundled_store


def ask(store: Path, *arguments: str, width: int = 100) -> Result:
    return CliRunner().invoke(command, [*arguments, "--store", str(store)], catch_exceptions=False, env={"COLUMNS": str(width)})


@pytest.mark.parametrize("width", [60, 80, 100, 160, 300])
def test_every_line_fits_the_page(demo: Path, width: int) -> None:
    with recorded() as made:
        done = ask(demo, width=width)
    assert done.exit_code == 0 and not too_long(done.stdout.splitlines(), min(width, 160), made)


def test_the_page_has_every_section_and_figures_of_the_views(demo: Path) -> None:
    text = ask(demo, width=160).stdout
    first, middle, last = ("The judged window", "Captured", "GPUs"), (
        "Ranks side by side", "Communication", "Top operators", "Top kernels", "Copies", "API calls", "Memory peak"), (
        "GPU time traced back to", "Diagnostics")
    places = [[text.index(f"\n{title}") for title in titles] for titles in (first, middle, last)]
    assert places[0] == sorted(places[0]) and max(places[0]) < min(places[1]) and max(places[1]) < min(places[2])
    assert "simulated" in text and "\nRanks side by side, first to last GPU work · " in text
    with nl.open(demo) as store:
        busy = store.view("busy_time", only_tool="nsys").to_pylist()
        top = store.view("top_kernels", only_tool="nsys", how_many=1).to_pylist()
        peak = store.view("memory_peak").to_pylist()
        copied = store.view("memory_op_summary", only_tool="nsys").to_pylist()[0]
    assert figures.rate(copied["bytes_per_s"], "B") in text, "in the unit that the view has"
    for row in busy:
        assert figures.duration(row["compute_ns"]) in text and figures.share(row["busy_pct"]) in text
    assert figures.duration(top[0]["total_ns"]) in text and f"{top[0]['instances']:,}" in text
    assert figures.size(peak[0]["peak_allocated_bytes"]) in text


def test_categories_are_the_view_s_and_their_shares_sum_to_the_step(demo: Path) -> None:
    text = ask(demo, "--step", "3", width=120).stdout
    section = text[text.index("Where a step went"):]
    section = section[:section.index("\n\n")]
    shares = [float(share) for share in re.findall(r"s +([\d.]+) %", section)]
    assert len(shares) == 8 and sum(shares) == pytest.approx(100, abs=0.4)


def test_filters_reach_every_section_or_say_so(demo: Path) -> None:
    text = ask(demo, "--tool", "kineto", "--rank", "1", width=120).stdout
    assert "nsys" not in text.replace("nsightlens", "") and "Ranks side by side" not in text
    assert "Top kernels · kineto\n" in text and re.search(r"Captured · .*all ranks", text), "a profile has no single rank"
    stepped = ask(demo, "--step", "2", width=160).stdout
    assert re.search(r"Top kernels · .*all steps", stepped)


def test_a_run_or_tool_that_is_not_there(demo: Path) -> None:
    with pytest.raises(UsageError, match="--run nonsense: the store has simulated_resnet18_ddp"):
        ask(demo, "--run", "nonsense")
    with pytest.raises(UsageError, match="--tool rocprof: the store has ncu, kineto, nsys"):
        ask(demo, "--tool", "rocprof")


def test_what_was_not_recorded_is_said_and_never_zero(tmp_path: Path) -> None:
    kineto(tmp_path / "base" / "a.json", [("k\x1b[31mred", 10.0, 5.0)])
    nl.ingest([tmp_path / "base"], store=tmp_path / "store", jobs=1).close()
    text = ask(tmp_path / "store").stdout
    assert "Memory peak" not in text and "memory: a PyTorch-profiler trace with profile_memory=True has it" in text
    assert "first to last GPU work" in text and "\x1b" not in text
    assert not re.search(r"\b0 B\b", text)


def test_memory_of_the_host_alone_is_not_called_unrecorded(tmp_path: Path) -> None:
    trace = json.loads(kineto(tmp_path / "base" / "a.json", [("k", 10.0, 5.0)]).read_text())
    told = {"Device Type": 0, "Device Id": -1, "Addr": 1, "Bytes": 8, "Total Allocated": 8, "Total Reserved": 0}
    memory = {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 77, "tid": 77, "ts": 9.0, "args": told}
    trace["traceEvents"].append(memory)
    (tmp_path / "base" / "a.json").write_text(json.dumps(trace))
    nl.ingest([tmp_path / "base"], store=tmp_path / "store", jobs=1).close()
    text = " ".join(ask(tmp_path / "store", width=300).stdout.split())
    assert f"memory of a GPU; the host: nsightlens show memory_peak --store {tmp_path / 'store'}" in text


def test_memory_without_totals_names_the_curve(tmp_path: Path) -> None:
    trace = json.loads(kineto(tmp_path / "base" / "a.json", [("k", 10.0, 5.0)]).read_text())
    told = {"Device Type": 1, "Device Id": 0, "Addr": 1, "Bytes": 8}
    trace["traceEvents"].append({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 77, "tid": 77,
                                 "ts": 9.0, "args": told})
    (tmp_path / "base" / "a.json").write_text(json.dumps(trace))
    store = nl.ingest([tmp_path / "base"], store=tmp_path / "store", jobs=1)
    assert store.view("memory_curve").num_rows
    text = " ".join(ask(tmp_path / "store", width=300).stdout.split())
    assert f"what was allocated and freed: nsightlens show memory_curve --store {tmp_path / 'store'}" in text


def test_a_store_of_counters_alone_has_a_page(tmp_path: Path) -> None:
    ncu(tmp_path / "base" / "a.csv", {"gpu__time_duration.sum": ("us", "10.00")})
    nl.ingest([tmp_path / "base"], store=tmp_path / "store", jobs=1).close()
    text = ask(tmp_path / "store").stdout
    assert "Top kernels · ncu" in text and "GPUs ·" not in text and "Speed of light" not in text


def test_a_run_of_counters_alone_says_what_limits_its_kernels(tmp_path: Path, demo: Path) -> None:
    for number, (sm, memory, time) in enumerate(((20.0, 90.0, "30.00"), (9.0, 8.0, "10.00"))):
        ncu(tmp_path / "base" / f"{number}.csv", {
            "gpu__time_duration.sum": ("us", time), "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", f"{sm}"),
            "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": ("%", f"{memory}")}, name=f"kernel{number}")
    nl.ingest([tmp_path / "base"], store=tmp_path / "store", jobs=1).close()
    text = ask(tmp_path / "store").stdout
    assert "memory 75.0 %, latency 25.0 %" in text
    assert re.search(r"kernel0 +1 +30\.00 µs +memory +memory +90\.0 % +20\.0 % +90\.0 %", text)
    assert "Speed of light" not in ask(demo).stdout, "where there is a timeline, its figures count"


def test_of_many_runs_the_first_have_a_page_each(tmp_path: Path) -> None:
    for name in "abcde":
        kineto(tmp_path / name / "a.json", [("k", 10.0, 5.0)])
    nl.ingest([tmp_path / name for name in "abcde"], store=tmp_path / "store", jobs=1).close()
    text = ask(tmp_path / "store").stdout
    assert text.count("Captured") == 3 and "2 more runs; --run NAME gives the page of one: d, e" in text
    assert ask(tmp_path / "store", "--run", "e").stdout.count("Captured") == 1


def test_sections_ask_only_views() -> None:
    source = Path(page.__file__).with_name("sections.py").read_text()
    assert ".sql(" not in source and len({section for section, _ in SECTIONS}) == len(SECTIONS)


def test_causes_of_sections_are_causes_of_findings() -> None:
    assert {cause for _, causes in SECTIONS for cause in causes} <= {*CAUSES, *BRANCHES, *words.SUBJECTS}


def test_a_run_without_operators_shows_its_calls(tmp_path: Path) -> None:
    write(tmp_path / "run" / "a.sqlite", base(
        StringIds=strings("k", "k", "cudaMalloc_v3020", "k"), CUPTI_ACTIVITY_KIND_RUNTIME=[call(0, 1000)]))
    nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1).close()
    text = ask(tmp_path / "store").stdout
    assert "\nAPI calls" in text and "cudaMalloc" in text and "\nTop operators" not in text and "\nMPI" not in text


def test_sections_of_the_first_finding_come_first() -> None:
    answers: dict[tuple[object, ...], list[dict[str, Any]]] = {
        ("verdict",): [{"run": run, "tool": "nsys", "kind": "finding", "cause": cause} for run, cause in (
            ("r", "copies"), ("r", "communication"), ("s", "late rank"))]}
    names = [section.__name__ for section in ordered(Page(cast(Store, None), "r", {}, answers))]
    assert names[5:8] == ["copies", "communication", "ranks"] and names[-1] == "diagnostics"


def test_captures_are_read_without_a_store_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = kineto(tmp_path / "base" / "a.json", [("k", 10.0, 5.0)])
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, [str(trace)], catch_exceptions=False, env={"COLUMNS": "100"})
    assert done.exit_code == 0 and "Top kernels · kineto" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"base", "temporary"} and not [*(tmp_path / "temporary").iterdir()]
    with pytest.raises(UsageError, match="captures or --store"):
        ask(tmp_path / "store", str(trace))


@pytest.mark.parametrize(("ns", "text"), [
    (None, "–"), (0, "0 ns"), (850, "850 ns"), (1_000, "1.000 µs"), (131_390_000, "131.4 ms"), (999_999, "1.000 ms"),
    (4_397_000_000, "4.397 s"), (7_200_000_000_000, "7,200 s"), (-5_000, "-5.000 µs")])
def test_durations(ns: int | None, text: str) -> None:
    assert figures.duration(ns) == text


@pytest.mark.parametrize(("count", "text"), [(None, "–"), (0, "0 B"), (1023, "1023 B"), (6.174 * 2**30, "6.174 GiB")])
def test_sizes(count: float | None, text: str) -> None:
    assert figures.size(count) == text


def test_bars() -> None:
    assert page.bar(0.5, 10) == "█████" and page.bar(0, 10) == "" and page.bar(1, 10) == "█" * 10
    assert page.mixed_bar([("a", 1 / 3), ("b", 1 / 3), ("c", 1 / 3)], 10) == "aaabbbbccc"


def test_columns_of_the_least_weight_go_first() -> None:
    columns = Column("keep", ["x" * 12], 9), Column("drop", ["y" * 20], 1), Column("cut", ["z" * 40], 5, True, True)
    header, row = map(click.unstyle, Renderer(width=40).drawn([Section(columns=columns)]))
    assert header.split() == ["keep", "cut"] and "x" * 12 in row and "z…z" in row and max(map(len, (header, row))) <= 40


def test_the_name_of_one_gpu_does_not_stand_for_unnamed_ones(tmp_path: Path) -> None:
    first, second = tmp_path / "run" / "rank0.json", tmp_path / "run" / "rank1.json"
    kineto(first)
    trace = json.loads(first.read_text())
    second.write_text(json.dumps(trace | {"deviceProperties": []}))
    nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1).close()
    assert re.search(r"NVIDIA A100, unknown\b", ask(tmp_path / "store", width=160).stdout)


@pytest.mark.parametrize(("gpu", "cores"), [("AMD Instinct MI300X", "matrix cores"), ("NVIDIA A100", "tensor cores")])
def test_cores_for_matrices_have_their_maker_s_name(tmp_path: Path, gpu: str, cores: str) -> None:
    trace = kineto(tmp_path / "run" / "a.json")
    trace.write_text(trace.read_text().replace("NVIDIA A100", gpu))
    nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1).close()
    (line,) = [line for line in ask(tmp_path / "store", width=160).stdout.splitlines() if "  SM efficiency  " in line]
    assert line.endswith(cores)


@pytest.mark.parametrize(("long", "said"), [(30.0, True), (10.0, False)])
def test_a_kernel_with_most_of_the_kernel_time_is_pointed_out(tmp_path: Path, long: float, said: bool) -> None:
    kineto(tmp_path / "run" / "trace.json", [("stencil", 1000, long), ("copy_kernel", 2000, 10.0), ("other_kernel", 3000, 5.0)])
    nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1).close()
    page = " ".join(ask(tmp_path / "store").stdout.split())
    assert ("One kernel has 66.7 % of the kernel time. To measure what limits it: nsightlens plan-ncu" in page) is said


def test_a_process_without_a_rank_has_a_name_only_among_others(tmp_path: Path) -> None:
    for number in (1, 2):
        kineto(tmp_path / "job" / f"{number}.json", rank=None, pid=number)
        nl.ingest(tmp_path / "job", store=tmp_path / f"s{number}", run="job").close()
    assert "process" not in ask(tmp_path / "s1").stdout.partition("GPUs ·")[2].partition("\n\n")[0]
    assert ask(tmp_path / "s2").stdout.partition("GPUs ·")[2].partition("\n\n")[0].count(" process ") == 2


def test_one_step_is_no_mean(tmp_path: Path) -> None:
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 77, "tid": 77, "ts": 900.0, "dur": 200.0}
    trace = kineto(tmp_path / "run" / "a.json")
    content = json.loads(trace.read_text())
    content["traceEvents"].append(step)
    trace.write_text(json.dumps(content))
    nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1).close()
    page_ = ask(tmp_path / "store", "--step", "3").stdout
    assert "Where a step went · kineto, 1 step: " in page_ and "mean of 1" not in page_


@pytest.mark.parametrize(("severities", "said"), [
    (["info"], "Diagnostics no errors, no warnings; 1 note: nsightlens show"),
    (["warning", "info", "info"], "Diagnostics 2 notes more: nsightlens show"),
])
def test_notes_are_more_where_others_are_listed(severities: list[str], said: str) -> None:
    row = {"run": "r", "code": "x", "tool": "nsys", "count": 1, "message": "m"}
    answers: dict[tuple[object, ...], list[dict[str, Any]]] = {
        ("diagnostic_summary",): [row | {"severity": severity} for severity in severities]}
    (section,) = diagnostics(Page(cast(Store, None), "r", {}, answers))
    assert f"{section.title} {written(section.note)}".startswith(said)


def test_what_a_page_of_several_runs_tells_to_run_can_be_run(tmp_path: Path) -> None:
    """A run of 20 kernels that fill the GPU, so that one is worth measuring; its command names the run: the store has two."""
    work = [(f"gemm_{number % 3}", 1000.0 + 2000 * number, 1500.0) for number in range(20)]
    for run in ("$(touch x)", "b"):
        trace = kineto(tmp_path / run / "a.json", work)
        trace.write_text(re.sub(r'("grid": \[\s*)\d+', r"\g<1>4096", trace.read_text()))
        nl.ingest(trace, tmp_path / "store", run=run, jobs=1).close()
    printed = " ".join(ask(tmp_path / "store", width=300).stdout.split())
    commands = [shlex.split(text)[1:] for text in re.findall(r"nsightlens plan-ncu .*? --store \S+", printed)]
    assert {tuple(each[:3]) for each in commands} == {("plan-ncu", "--run", "$(touch x)"), ("plan-ncu", "--run", "b")}
    for each in commands:
        assert ran(*each).returncode == 0, each
