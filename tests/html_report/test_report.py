"""A report: one file that loads nothing, holds what the views say, and stays below its size."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import nsightlens as nl
from nsightlens.errors import UsageError
from nsightlens.html_report import assets, contents, timeline
from nsightlens.html_report.report import report
from tests.captures import kineto, ncu
from tests.cli.command_line import run
from tests.html_report.test_packing import unpack
from tests.payloads import PAYLOADS
from tests.places import ROOT

PAGE = ROOT / "nsightlens" / "html_report" / "page"


@pytest.fixture(scope="module")
def store(bundled_store: Path) -> nl.Store:
    return nl.open(bundled_store)


@pytest.fixture(scope="module")
def page(store: nl.Store) -> str:
    return report(store).html


def facts(page: str) -> dict[str, Any]:
    text = re.search(r'<script type="application/json" id="facts">(.*?)</script>', page, re.DOTALL)
    assert text
    found: dict[str, Any] = json.loads(text[1])
    return found


def packed(page: str, name: str) -> str:
    text = re.search(rf'<script type="text/plain" id="data-{name}">(.*?)</script>', page, re.DOTALL)
    assert text, name
    return text[1]


def test_the_policy_allows_this_script_and_style_and_nothing_else(page: str) -> None:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy and policy[1].startswith("default-src &#39;none&#39;;")
    assert "unsafe" not in policy[1] and "http" not in policy[1]
    for kind, tag in (("script-src", "script"), ("style-src", "style")):
        text = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text[0].encode()).digest()).decode()
        assert len(text) == 1 and f"{kind} &#39;sha256-{digest}&#39;" in policy[1]


def test_nothing_is_loaded_from_anywhere(page: str) -> None:
    without_data = re.sub(r'<script type="text/plain".*?</script>', "", page, flags=re.DOTALL)
    urls = set(re.findall(r"https?://[^\s\"'<>)]+", without_data))
    assert urls <= {"http://www.w3.org/2000/svg"}  # the name of a kind of element, never fetched
    markup = re.sub(r"<script>.*?</script>", "", without_data, flags=re.DOTALL)
    assert not re.search(r"<(link|img|iframe|object|embed)\b|\bsrc=", markup)


def test_the_first_part_needs_no_script(page: str) -> None:
    static = page[: page.index('<script type="application/json"')]
    assert "simulated: no figure here was measured on a GPU" in static
    assert "computing takes 75.6 %" in static and "nsightlens show memory_op_summary" in static
    for title in ("Where the time went", "exposed copies", "Findings", "Captured", "Diagnostics"):
        assert title in static


@pytest.mark.parametrize("name", ["operator_summary", "kernel_summary", "step_breakdown", "straggler", "memory_peak"])
def test_tables_are_the_rows_of_the_views(store: nl.Store, page: str, name: str) -> None:
    table = store.view(name)
    found = unpack(packed(page, name))
    assert facts(page)["tables"][name]["command"] == f"nsightlens show {name}"
    assert found == {column: table[column].to_pylist() for column in found} and len(found) > 5


def test_the_timeline_holds_each_slice_once(store: nl.Store, page: str) -> None:
    known = facts(page)
    words = unpack(packed(page, "words"))["word"]
    steps = store.view("step_breakdown").to_pylist()
    assert len(known["steps"]) == sum(row["step"] is not None for row in steps)
    step = next(one for one in known["steps"] if (one["tool"], one["rank"], one["step"]) == ("nsys", 1, 2))
    rows = store.view("step_timeline", which_step=2, only_tool="nsys", only_rank=1).to_pylist()
    found = unpack(packed(page, step["table"]), words)
    here = sorted(zip(found["start_ns"], found["duration_ns"], map(str, found["name"]), strict=True))
    assert here == sorted((row["start_ns"], row["duration_ns"], str(row["name"])) for row in rows if (row["depth"] or 0) < 12)
    launched = [row for row, call in enumerate(found["launched_by"]) if call is not None]
    assert launched and all(found["start_ns"][found["launched_by"][row]] <= found["start_ns"][row] for row in launched)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    kineto(tmp_path / "run" / "a.json", [(name, 1000.0 + 20 * i, 10.0) for i, name in enumerate(PAYLOADS)])
    with nl.ingest(tmp_path / "run", store=tmp_path / "store", run="<b>&\u202e") as opened:
        page = report(opened).html
    scripts = re.findall(r"<script[^>]*>", page)
    assert all(re.fullmatch(r'<script( type="(text/plain|application/json)" id="[\w-]+")?>', one) for one in scripts)
    assert scripts.count("<script>") == 1 and "<img" not in page and "\u202e" not in page and "<b>&" not in page
    assert set(PAYLOADS) <= set(unpack(packed(page, "kernel_summary"))["name"])


@pytest.mark.long
def test_beyond_its_size_steps_are_merged_and_the_page_says_so(tmp_path: Path) -> None:
    kernels = [(f"k{n % 97}_{n * 7919 % 9973}", 1000.0 + 1.37 * n, 0.7 + n % 7 / 10) for n in range(30_000)]
    kineto(tmp_path / "run" / "a.json", kernels)
    with nl.ingest(tmp_path / "run", store=tmp_path / "store") as opened:
        small, large = report(opened, max_mb=1.2), report(opened)
    assert len(small.html) < 1_200_000 < len(large.html) and not large.left_out
    assert any("merged" in text for text in small.left_out) and all("nsightlens " in text for text in small.left_out)
    assert facts(small.html)["left_out"] == list(small.left_out)
    step = facts(small.html)["steps"][0]
    found = unpack(packed(small.html, step["table"]), unpack(packed(small.html, "words"))["word"])
    assert sum(found["pieces"]) == 60_000 and step["merged"] == 60_000 - len(found["pieces"]) > 0


def test_of_a_large_store_slices_are_merged_as_they_are_read(bundled_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with nl.open(bundled_store) as store:
        whole = list(timeline.steps(store, []))
        monkeypatch.setattr(timeline, "MOST", 100)
        monkeypatch.setattr(timeline, "FINEST", 50)
        merged = list(timeline.steps(store, []))
    assert [step.keys for step in merged] == [step.keys for step in whole]
    for few, all_ in zip(merged, whole, strict=True):
        assert few.lanes == all_.lanes and few.slices.num_rows < all_.slices.num_rows
        assert sum(few.slices["pieces"].to_pylist()) == all_.slices.num_rows
        for lane in range(len(few.lanes)):
            rows, of = (step.slices.filter(pc.equal(step.slices["lane"], lane)) for step in (few, all_))
            assert _span(rows) == _span(of)
            long = pc.greater_equal(of["duration_ns"], few.keys["step_ns"] // 50)
            assert {*zip(*_whole(of.filter(long)), strict=True)} <= {*zip(*_whole(rows), strict=True)}


def _span(rows: pa.Table) -> tuple[int, int]:
    return pc.min(rows["start_ns"]).as_py(), pc.max(pc.add(rows["start_ns"], rows["duration_ns"])).as_py()


def _whole(rows: pa.Table) -> list[list[object]]:
    return [rows[name].to_pylist() for name in ("start_ns", "duration_ns", "kind", "name", "op", "pieces")]


def test_tables_of_too_many_rows_are_named_and_not_fetched(bundled_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_MOST_ROWS", 100)
    with nl.open(bundled_store) as store:
        rows = store.view("timeline_kernels").num_rows
        made = report(store)
    assert f"{rows:,} rows of timeline_kernels: nsightlens show timeline_kernels" in made.left_out
    assert "timeline_kernels" not in facts(made.html)["tables"] and "kernel_summary" in facts(made.html)["tables"]


def test_views_that_read_every_launch_are_left_out_of_a_large_store(store: nl.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_MOST_LAUNCHES", 100)
    made = report(store)
    kernels = sum(store.view("profile_overview")["kernels"].to_pylist())
    assert f"nvtx_gpu_projection, which reads each of {kernels:,} kernels: nsightlens show nvtx_gpu_projection" in made.left_out
    assert "nvtx_gpu_projection" not in facts(made.html)["tables"] and "kernel_summary" in facts(made.html)["tables"]


def test_counters_alone_make_a_page(tmp_path: Path) -> None:
    ncu(tmp_path / "run" / "a.csv", {"gpu__time_duration.sum": ("nsecond", "1000")})
    with nl.ingest(tmp_path / "run", store=tmp_path / "store") as opened:
        page = report(opened).html
    assert "under ncu" in page and not facts(page)["steps"] and "kernel_summary" in facts(page)["tables"]


@pytest.mark.long
def test_two_runs_are_compared(tmp_path: Path) -> None:
    for name, length in (("a", 10.0), ("b", 20.0)):
        kineto(tmp_path / name / "a.json", [("gemm", 1000.0, length), ("other", 1050.0, 5.0)])
    with nl.ingest([tmp_path / "a", tmp_path / "b"], store=tmp_path / "store") as opened:
        page = report(opened, run="b", base="a").html
        assert facts(page)["compared"] == ["a", "b"]
        for name in ("run_waterfall", "run_difference", "comparability", "kernel_summary", "operator_shapes"):
            if name in facts(page)["tables"]:
                words = shlex.split(facts(page)["tables"][name]["command"])
                assert ("base=a" in words) != ("--run" in words)
                assert run(*words[1:], "--store", tmp_path / "store").returncode == 0
        assert {"run_waterfall", "run_difference", "comparability"} <= set(facts(page)["tables"])
        with pytest.raises(UsageError, match="two runs"):
            report(opened, base="a")
        with pytest.raises(UsageError, match="no run c"):
            report(opened, run="c")


def stepped(path: Path, length: float, name: str) -> None:
    """Write a trace of six steps, each with a gemm of `length` us and a kernel of its own name."""
    kineto(path, [(kernel, 10_000.0 * step + at, long) for step in range(1, 7)
                  for kernel, at, long in (("gemm", 1000.0, length), (name, 5000.0, 20.0))])
    trace = json.loads(path.read_text())
    trace["traceEvents"] += [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 77, "tid": 77,
                              "ts": 10_000.0 * step, "dur": 9_000.0 + length} for step in range(1, 7)]
    path.write_text(json.dumps(trace))


def test_a_comparison_says_what_compare_runs_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One recording of each does not show how runs vary: the page says so, and begins with the run to judge."""
    monkeypatch.setenv("COLUMNS", "160")  # the path of the store fits a line
    for name, length in (("a", 100.0), ("b", 900.0)):
        stepped(tmp_path / name / "a.json", length, f"only_in_{name}")
    with nl.ingest([tmp_path / "a", tmp_path / "b"], store=tmp_path / "store") as opened:
        page = report(opened, run="b", base="a").html
    assert facts(page)["runs"] == ["b", "a"] and facts(page)["compared"] == ["a", "b"]
    said = facts(page)["compared_said"]
    printed = " ".join(run("compare", "a", "b", "--store", tmp_path / "store").stdout.split())
    assert said[0].startswith("A step takes ") and all(text in printed for text in said)


@pytest.mark.long
def test_a_notebook_shows_it(store: nl.Store, tmp_path: Path) -> None:
    made = nl.report(store)
    assert made._repr_html_().startswith("<iframe srcdoc=\"&lt;!DOCTYPE html&gt;")
    assert made.save(tmp_path / "r.html").read_text(encoding="utf-8") == made.html


def test_only_tables_are_shown(store: nl.Store) -> None:
    assert "<table" in nl.show(store.view("kernel_summary"))._repr_html_()
    with pytest.raises(UsageError, match=r"table is a pyarrow.Table, not a Store: nl\.show"):
        nl.show(store)


def test_every_file_of_the_page_is_in_it() -> None:
    named = {f"{name}.js" for name in assets.SCRIPTS} | {f"{name}.css" for name in assets.STYLES} | {"report.html.j2"}
    assert named == {path.name for path in PAGE.iterdir()}
    assert "</script" not in assets.script().lower() and "<!--" not in assets.script()


@pytest.mark.parametrize("path", sorted(PAGE.glob("*.js")), ids=lambda path: path.name)
def test_scripts_stay_small_and_set_no_markup(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 400 and max(map(len, lines)) <= 130
    markup = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|fetch\("
    banned = [line for line in lines if re.search(markup, line)]
    assert not banned, f"text is set as text, and nothing is fetched: {banned}"
    starts = [number for number, line in enumerate(lines) if re.match(r"(async )?function |class ", line)]
    ends = [number for number, line in enumerate(lines) if line == "}"]
    assert len(starts) == len(ends)
    longest = [end - start for start, end in zip(starts, ends, strict=True) if not lines[start].startswith("class ")]
    assert max(longest, default=0) <= 50


@pytest.mark.long
def test_the_limit_of_steps_counts_each_number_once(store: nl.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {row["step"] for row in store.view("step_breakdown").to_pylist()}
    monkeypatch.setattr("nsightlens.html_report.contents._MOST_STEPS", len(numbers))
    assert report(store).left_out == ()
    monkeypatch.setattr("nsightlens.html_report.contents._MOST_STEPS", 1)
    assert [text.partition(":")[0].partition(" of ")[2] for text in report(store).left_out] == ["18 steps of the timeline"]
