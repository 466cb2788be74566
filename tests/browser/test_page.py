"""The report in a browser: tabs open, filter, sort and zoom, and show what the views say."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.views.figures import duration
from tests.browser.conftest import Opened, Visit
from tests.captures import kineto

TABS = ("overview", "operators", "kernels", "timeline", "ranks", "memory", "modules", "roofline", "host", "data")


def downloaded(seen: Visit, label: str) -> bytes:
    with seen.page.expect_download() as waiting:
        seen.page.get_by_role("button", name=re.compile(label)).first.click()
    return Path(waiting.value.path()).read_bytes()


def table(seen: Visit, label: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(downloaded(seen, f"Download {label}.* as CSV").decode())))


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_tab_opens(visit: Opened, demo: Path, tab: str, scheme: str) -> None:
    seen = visit(demo, f"tab={tab}", color_scheme=scheme)
    assert seen.page.locator("body").get_attribute("data-ready") == tab
    panel = seen.page.locator(f"section#{tab}")
    assert panel.is_visible() and panel.locator("table, svg, canvas").count() > 0
    assert seen.page.locator("section.tab:visible").count() == 1
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window"


def test_a_narrow_window_scrolls_only_down(visit: Opened, demo: Path) -> None:
    for tab in TABS:
        seen = visit(demo, f"tab={tab}", viewport={"width": 800, "height": 700})
        assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), tab


def test_tabs_without_data_are_not_there(visit: Opened, tmp_path: Path) -> None:
    kineto(tmp_path / "run" / "a.json")
    with nl.ingest(tmp_path / "run", store=tmp_path / "store") as store:
        path = nl.report(store).save(tmp_path / "r.html")
    names = visit(path).page.get_by_role("tab").all_inner_texts()
    assert names == ["Overview", "Kernels", "Timeline", "Host", "Data"]


def test_operators_are_the_sums_of_the_view(visit: Opened, demo: Path, demo_store: nl.Store) -> None:
    rows = table(visit(demo, "tab=operators"), "Operators")
    sums: dict[str, list[int]] = {}
    for row in demo_store.view("operator_summary", only_tool="kineto").to_pylist():
        found = sums.setdefault(row["name"], [0, 0])
        found[0] += row["calls"] or 0
        found[1] += row["device_self_ns"] or 0
    assert {row["name"]: [int(row["calls"] or 0), int(row["device_self_ns"] or 0)] for row in rows} == sums
    assert [int(row["device_self_ns"]) for row in rows] == sorted((int(row["device_self_ns"]) for row in rows), reverse=True)


@pytest.mark.parametrize(("state", "label", "view", "filters"), [
    ("tab=kernels", "Kernels", "kernel_summary", {"only_tool": "nsys"}),
    ("tab=kernels&tool=kineto", "Kernels", "kernel_summary", {"only_tool": "kineto"}),
    ("tab=kernels&rank=1", "Kernels", "kernel_by_rank", {"only_tool": "nsys", "only_rank": 1}),
    ("tab=kernels&kernels=kernel_by_config", "Kernels", "kernel_by_config", {"only_tool": "nsys"}),
    ("tab=ranks", "Who the others wait for", "straggler", {"only_tool": "nsys"}),
    ("tab=memory&rank=0", "Peaks", "memory_peak", {"only_rank": 0}),
    ("tab=host", "API calls", "cuda_api_summary", {"only_tool": "nsys"}),
    ("tab=data", "Captures", "profile_overview", {}),
])
def test_tables_are_the_views(
    visit: Opened, demo: Path, demo_store: nl.Store, state: str, label: str, view: str, filters: dict[str, object],
) -> None:
    rows = table(visit(demo, state), label)
    expected = demo_store.view(view, **filters).to_pylist()
    said = [tuple(row.items()) for row in rows]
    columns = list(rows[0])
    assert len(columns) > 4
    assert sorted(said) == sorted(tuple((name, _text(row[name])) for name in columns) for row in expected)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


def test_what_is_shown_has_units(visit: Opened, demo: Path, demo_store: nl.Store) -> None:
    top = demo_store.view("top_kernels", only_tool="nsys", how_many=1).to_pylist()[0]
    seen = visit(demo, "tab=kernels")
    shown = seen.rows("Kernels")[0]
    assert seen.page.locator("#kernels tbody td").first.get_attribute("title") == top["name"]
    assert shown[2] == f"{top['instances']:,}"
    assert shown[3] == f"{top['total_ns'] / 1e6:.2f} ms" and shown[4] == f"{top['time_pct']:.1f} %"


def test_a_heading_sorts_and_a_search_filters(visit: Opened, demo: Path) -> None:
    seen = visit(demo, "tab=operators")
    heading = seen.page.get_by_role("columnheader", name="calls")
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    calls = [int(row[1].replace(",", "")) for row in seen.rows("Operators")]
    assert calls == sorted(calls, reverse=True) and len(set(calls)) > 2
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    seen.page.locator("section#operators").get_by_label("Search").fill("BATCH_norm")
    names = [row[0] for row in seen.rows("Operators")]
    assert names and all("batch_norm" in name for name in names)


def test_filters_change_what_is_shown_and_the_address(visit: Opened, demo: Path) -> None:
    seen = visit(demo, "tab=ranks")
    seen.page.get_by_label("Rank", exact=True).select_option("1")
    seen.until("document.querySelectorAll('#ranks section.grid tbody')[0].rows.length === 1")
    assert "rank=1" in seen.page.url
    assert visit(demo, seen.page.url.partition("#")[2]).rows("Who the others wait for")[0][0] == "1"
    seen.page.get_by_role("button", name="Clear").click()
    seen.until("document.querySelectorAll('#ranks section.grid tbody')[0].rows.length === 2")


def test_an_operator_opens_its_kernels(visit: Opened, demo: Path, demo_store: nl.Store) -> None:
    seen = visit(demo, "tab=operators")
    seen.page.get_by_role("button", name="aten::cudnn_convolution", exact=True).click()
    seen.page.wait_for_selector("#operators #detail section.grid")
    rows = demo_store.view("operator_kernels", only_op="aten::cudnn_convolution", only_tool="kineto").to_pylist()
    found = table(seen, "Kernels of aten::cudnn_convolution")
    assert sorted(int(row["total_ns"]) for row in found) == sorted(row["total_ns"] for row in rows) != []
    assert table(seen, "Shapes of aten::cudnn_convolution")
    seen.page.get_by_role("button", name="Show in timeline").click()
    seen.page.wait_for_selector("body[data-ready=timeline] ol.hits button")
    assert "find=aten" in seen.page.url and "tool=kineto" in seen.page.url
    seen.page.locator("ol.hits button").first.click()
    assert "aten::cudnn_convolution" in seen.page.locator("aside.details").inner_text()


def test_an_operator_opens_its_stacks(visit: Opened, demo: Path, demo_store: nl.Store) -> None:
    sites = demo_store.view("operator_call_sites").to_pylist()
    op = sites[0]["op"]
    found = table(visit(demo, f"tab=operators&op={op}"), f"Stacks of {op}")
    assert sorted((row["call_stack"], int(row["calls"])) for row in found) == sorted(
        (row["call_stack"], row["calls"]) for row in sites if row["op"] == op) != []


def test_a_kernel_opens_its_launches(visit: Opened, demo: Path, demo_store: nl.Store) -> None:
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    kernel = next(row["name"] for row in demo_store.view("kernel_summary", only_tool="nsys").to_pylist() if name in row["name"])
    seen = visit(demo, f"tab=kernels&kernel={kernel}")
    bars = seen.page.locator("svg[aria-label^='Durations of'] title").all_text_contents()
    launches = demo_store.view("timeline_kernels", only_name=kernel).num_rows
    assert sum(int(text.split()[0].replace(",", "")) for text in bars) == launches


def test_the_timeline_zooms_finds_and_says_what_lies_there(visit: Opened, demo: Path, demo_store: nl.Store) -> None:
    seen = visit(demo, "tab=timeline&step=2&rank=0&tool=nsys")
    span = "nsightlensTimeline.to - nsightlensTimeline.from"
    whole = seen.page.evaluate(span)
    assert whole == demo_store.view("step_timeline", which_step=2, only_rank=0, only_tool="nsys")["step_ns"][0].as_py()
    seen.page.locator("canvas.timeline").focus()
    seen.page.keyboard.press("+")
    assert seen.page.evaluate(span) == pytest.approx(0.7 * whole)
    seen.page.keyboard.press("0")
    seen.page.get_by_label("Find").fill("nccl")
    seen.page.locator("ol.hits button").first.click()
    longest = max((row for row in demo_store.view("step_timeline", which_step=2, only_rank=0, only_tool="nsys").to_pylist()
                   if "nccl" in (row["name"] or "")), key=lambda row: row["duration_ns"])
    said = seen.page.locator("aside.details").inner_text()
    assert longest["name"] in said and f"{longest['duration_ns']:,} ns" in said and f"{longest['start_ns']:,} ns" in said


def test_a_click_on_the_timeline_chooses_what_is_under_it(visit: Opened, demo: Path) -> None:
    seen = visit(demo, "tab=timeline&step=2&rank=0&tool=nsys")
    lane = seen.page.evaluate("nsightlensTimeline.lanes.items.find(item => item.kind === 'lane').y")
    seen.page.locator("canvas.timeline").click(position={"x": 160, "y": lane + 30})
    assert "memcpy Host-to-Device" in seen.page.locator("aside.details").inner_text()
    seen.page.mouse.move(700, 300)
    seen.page.mouse.down()
    seen.page.mouse.move(500, 300)
    seen.page.mouse.up()
    assert seen.page.evaluate("nsightlensTimeline.from") > 0


def test_how_busy_the_gpu_is_adds_up_to_the_union_of_its_work(visit: Opened, demo: Path, demo_store: nl.Store) -> None:
    """Of all work, and of kernels that compute; the shares of 1,000 parts of the step are the same time."""
    seen = visit(demo, "tab=timeline&step=2&rank=0&tool=nsys")
    rows = [row for row in demo_store.view("step_timeline", which_step=2, only_rank=0, only_tool="nsys").to_pylist()
            if row["kind"] in ("kernel", "memory")]
    computing = [row for row in rows if row["kind"] == "kernel" and row["family"] not in ("collective", "memory")]
    spans, parts = seen.page.evaluate("""() => {
        const item = nsightlensTimeline.lanes.items.find((item) => item.kind === "busy"), to = nsightlensTimeline.lanes.length;
        const sum = (values) => values.reduce((all, value) => all + value, 0);
        const of = [item.busy, item.computing];
        return [of.map((spans) => sum(spans.map(([start, end]) => Math.max(0, Math.min(end, to) - Math.max(start, 0))))),
            of.map((spans) => sum([...nsightlensTimeline.lanes.constructor.shares(spans, 0, to, 1000)]) * to / 1000)];
    }""")
    assert spans == [_united(rows), _united(computing)] and 0 < spans[1] < spans[0]
    assert parts == pytest.approx(spans, abs=1)


def _united(rows: list[dict[str, Any]]) -> int:
    """Return for how many ns of the step at least one of them runs."""
    found, last = 0, 0
    for start, end in sorted((row["start_ns"], row["start_ns"] + row["duration_ns"]) for row in rows):
        end = min(end, rows[0]["step_ns"])
        found += max(0, end - max(start, last))
        last = max(last, end)
    return found


def test_a_bar_of_the_overview_opens_its_step(visit: Opened, demo: Path) -> None:
    seen = visit(demo)
    seen.page.get_by_role("button", name=re.compile("rank 1, step 4")).focus()
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_selector("body[data-ready=timeline]")
    assert "step=4" in seen.page.url and "rank=1" in seen.page.url
    assert seen.page.evaluate("nsightlensTimeline.processes.map(p => [p.step.rank, p.step.step])") == [[1, 4]]


def test_charts_are_downloaded(visit: Opened, demo: Path) -> None:
    seen = visit(demo)
    assert downloaded(seen, "Download steps as SVG").startswith(b"<svg")
    assert downloaded(seen, "Download steps as PNG")[:4] == b"\x89PNG"
    assert downloaded(visit(demo, "tab=timeline"), "Download the timeline as PNG")[:4] == b"\x89PNG"


def test_tabs_obey_the_arrow_keys(visit: Opened, demo: Path) -> None:
    seen = visit(demo)
    seen.page.get_by_role("tab", name="Overview").focus()
    seen.page.keyboard.press("ArrowRight")
    seen.page.wait_for_selector("body[data-ready=operators]")
    assert seen.page.get_by_role("tab", name="Operators").get_attribute("aria-selected") == "true"


def test_the_first_part_is_there_without_javascript(visit: Opened, demo: Path) -> None:
    seen = visit(demo, java_script_enabled=False)
    text = seen.page.locator("body").inner_text()
    assert "computing takes 75.6 %" in text and "exposed copies" in text and "19.6 %" in text and "need JavaScript" in text


def test_no_serious_violation_of_accessibility(visit: Opened, demo: Path) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed: pip install 'nsightlens[browser]'")
    for tab in TABS:
        for scheme in ("light", "dark"):
            seen = visit(demo, f"tab={tab}", color_scheme=scheme)
            found = [(one["id"], one["nodes"][0]["html"][:160]) for one in axe.Axe().run(seen.page).response["violations"]
                     if one["impact"] in ("serious", "critical")]
            assert not found, f"{tab}, {scheme}"


def test_a_printed_page_has_the_heads_of_its_tables_and_dark_words(visit: Opened, demo: Path) -> None:
    """Buttons are left out of print, but those in the heads of tables are the names of columns; paper is white."""
    seen = visit(demo, "tab=operators", color_scheme="dark")
    seen.page.emulate_media(media="print", color_scheme="dark")
    grid = seen.page.locator("section.tab:not([hidden]) section.grid").first
    assert grid.locator("th button", has_text="device total").is_visible() and not grid.get_by_text("CSV").is_visible()
    assert grid.locator("button.more").is_visible(), "how many rows are left out"
    overview = visit(demo, color_scheme="dark").page
    overview.emulate_media(media="print", color_scheme="dark")
    fill = overview.locator(".tables .chart text").first.evaluate("text => getComputedStyle(text).fill")
    assert fill == "rgb(0, 0, 0)"


@pytest.mark.parametrize(("time", "of"), [
    ("forward_total_ns", lambda row: row["device_total_ns"] - row["backward_total_ns"]),
    ("backward_total_ns", lambda row: row["backward_total_ns"])])
def test_modules_are_drawn_by_the_time_that_is_asked_for(
    visit: Opened, demo: Path, demo_store: nl.Store, time: str, of: Callable[[dict[str, Any]], int],
) -> None:
    """A module's total holds its backward kernels, too: forward is what remains without them."""
    spent: Counter[str] = Counter()
    for row in demo_store.view("module_summary", only_tool="kineto").to_pylist():
        spent[row["module"].removeprefix("nn.Module: ")] += of(row)
    seen = visit(demo, f"tab=modules&module_time={time}")
    drawn = seen.page.locator("#modules svg.chart [aria-label]").evaluate_all("all => all.map(one => one.ariaLabel)")
    said = dict(label.rsplit(": ", 1) for label in drawn)
    assert len(said) > 5 and said == {name: duration(spent[name]) for name in said}


def _shaped(folder: Path, gpu: str) -> Path:
    """Write the report of one product of 64 x 64 and 64 x 32 in single precision, whose operator has shapes."""
    path = kineto(folder / "run" / "a.json", [("volta_sgemm_64x64_nn", 1000.0, 10.0)])
    trace = json.loads(path.read_text())
    trace["deviceProperties"][0] |= {"name": gpu, "computeMajor": 7, "numSms": 80}
    call = next(event for event in trace["traceEvents"] if event.get("cat") == "cuda_runtime")
    trace["traceEvents"].append(call | {
        "cat": "cpu_op", "name": "aten::mm", "ts": call["ts"] - 1.0, "dur": 9.0,
        "args": {"External id": 1, "Input Dims": [[64, 64], [64, 32]], "Input type": ["float", "float"]}})
    path.write_text(json.dumps(trace))
    with nl.ingest(folder / "run", store=folder / "store", jobs=1) as store:
        return nl.report(store).save(folder / "r.html")


def test_without_ncu_the_roofs_are_those_of_the_datasheet(visit: Opened, tmp_path: Path) -> None:
    """Work from shapes, times from Kineto: the V100 of the datasheet does 15.7 TFLOP/s, and moves 900 GB/s."""
    seen = visit(_shaped(tmp_path, "Tesla V100-DGXS-32GB"), "tab=roofline")
    roofs = seen.page.locator("#roofline svg g.roof")
    assert roofs.locator("text").all_text_contents() == ["fp32, 15.70 TFLOP/s; dram, 900.0 GB/s; datasheet"]
    assert roofs.locator("polyline").get_attribute("stroke-dasharray")
    assert "dashed: the roofs of the datasheet of V100" in seen.page.locator("#roofline").inner_text()


def test_a_roofline_without_roofs_says_why(visit: Opened, tmp_path: Path) -> None:
    seen = visit(_shaped(tmp_path, "Graphics 9000"), "tab=roofline")
    assert seen.page.locator("#roofline svg g.roof").count() == 0
    assert "no roof: no datasheet for Graphics 9000" in seen.page.locator("#roofline").inner_text()
