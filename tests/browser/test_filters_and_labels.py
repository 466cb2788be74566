"""What a reader stumbles over: words for nothing, filters that do nothing, rows without an owner, a lost focus, cut paper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.views.figures import duration
from tests.browser.conftest import Opened
from tests.captures import kineto

CELLS = "rows => rows.map(row => [...row.cells].map(cell => cell.innerText))"


def test_no_click_on_the_timeline_says_null(visit: Opened, demo: Path) -> None:
    seen = visit(demo, "tab=timeline&step=2&tool=nsys")
    seen.page.evaluate("""() => {
        window.said = [];
        const {lanes, canvas} = nsightlensTimeline, box = canvas.getBoundingClientRect();
        for (const lane of lanes.items) for (let x = 120; lane.kind === "lane" && x < box.width; x += 23) {
            nsightlensTimeline.click(x, lane.y + 30);
            said.push(document.querySelector("aside.details").innerText);
        }
    }""")
    said = seen.page.evaluate("said")
    assert len(said) > 300 and not [text for text in said if "null" in text or "undefined" in text]


def test_a_slice_has_its_times_in_units_that_people_read(visit: Opened, demo: Path) -> None:
    seen = visit(demo, "tab=timeline&step=2&rank=0&tool=nsys&find=nccl")
    seen.page.locator("ol.hits button").first.click()
    assert " ms (" in seen.page.locator("aside.details").inner_text()


@pytest.mark.parametrize(("state", "said"), [
    ("tab=host&rank=1&steps=3", "of all ranks and steps: that filter does not apply here"),
    ("tab=kernels&rank=1&steps=3", "of all steps: that filter does not apply here"),
    ("tab=operators&steps=3", "of all steps: that filter does not apply here"),
    ("tab=overview&steps=3", "of all steps: that filter does not apply here"),
    ("tab=overview&rank=1", "Verdict and findings are of all ranks"),
    ("tab=data&steps=3", "of all steps: that filter does not apply here")])
def test_a_filter_that_does_not_apply_is_named(visit: Opened, demo: Path, state: str, said: str) -> None:
    panel = visit(demo, state).page.locator("section.tab:not([hidden])")
    assert said in panel.inner_text()
    assert said not in visit(demo, state.partition("&")[0]).page.locator("section.tab:not([hidden])").inner_text()


def test_each_tab_names_the_time_that_its_figures_are_of(visit: Opened, demo: Path) -> None:
    """The tree is of steady steps; tables of the whole capture say so."""
    for tab in ("operators", "kernels", "modules", "roofline", "host"):
        said = visit(demo, f"tab={tab}").page.locator(f"section#{tab}").inner_text()
        assert said.startswith("Of the whole capture. The tree on the Overview is of 6 steady steps, 648.1 ms"), tab


def test_two_recordings_without_a_rank_are_told_apart(visit: Opened, tmp_path: Path) -> None:
    for name, length in (("night", 10.0), ("day", 30.0)):
        path = kineto(tmp_path / "run" / f"worker0.{name}.json", [("gemm", 1000.0, length), ("add", 1100.0, 5.0)])
        trace = json.loads(path.read_text())
        trace.pop("distributedInfo", None)
        path.write_text(json.dumps(trace))
    with nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1) as store:
        report = nl.report(store).save(tmp_path / "r.html")
    heads = visit(report).page.locator(".tree thead th").all_inner_texts()
    assert {"night", "day"} <= set(heads)
    rows = visit(report, "tab=kernels&kernels=kernel_by_rank").rows("Kernels")
    assert len(rows) == 4 and all({"night", "day"} & set(row) for row in rows)


def test_kernels_have_their_labels_and_their_names_behind_them(visit: Opened, demo: Path) -> None:
    seen = visit(demo, "tab=kernels")
    cells = seen.page.locator("#kernels tbody td:first-child")
    names = cells.evaluate_all("all => all.map(cell => [cell.innerText, cell.title])")
    assert not [label for label, _ in names if label.startswith("void ")]
    assert [full for _, full in names if full.startswith("void ")]


def test_shares_of_operators_sum_to_all(visit: Opened, demo: Path) -> None:
    for state, place in (("tab=operators", 4), ("tab=operators&group=shapes", 5)):
        shares = visit(demo, state).page.locator(f"#operators tbody tr td:nth-child({place})")
        texts = [text for text in shares.all_inner_texts() if text.endswith("%")]
        assert texts and abs(sum(float(text.removesuffix(" %")) for text in texts) - 100) < 2


def test_whoever_uses_the_keyboard_keeps_the_focus(visit: Opened, demo: Path) -> None:
    seen = visit(demo)
    seen.page.get_by_role("tab", name="Kernels").click()
    seen.page.wait_for_selector("body[data-ready=kernels]")
    assert seen.page.evaluate("document.activeElement.id") == "tab-kernels"
    for label in ("Rank", "Group by"):
        control = seen.page.get_by_label(label, exact=True)
        control.focus()
        seen.page.evaluate("delete document.body.dataset.ready")
        control.select_option(index=1)
        seen.page.wait_for_selector("body[data-ready=kernels]")
        seen.until(f"document.activeElement.ariaLabel === '{label}'")


def test_a_comparison_opens_what_it_was_made_for(visit: Opened, tmp_path: Path) -> None:
    for name, length in (("a", 10.0), ("b", 20.0)):
        kineto(tmp_path / name / "a.json", [("gemm", 1000.0, length)])
    with nl.ingest([tmp_path / "a", tmp_path / "b"], store=tmp_path / "store") as store:
        path = nl.report(store, run="b", base="a").save(tmp_path / "r.html")
    seen = visit(path)
    assert seen.page.get_by_role("tab", selected=True).inner_text() == "Compare"


def test_paper_holds_the_whole_timeline(visit: Opened, demo: Path) -> None:
    seen = visit(demo, "tab=timeline&step=2&tool=nsys", viewport={"width": 1280, "height": 500})
    seen.page.emulate_media(media="print")
    seen.page.set_viewport_size({"width": 720, "height": 1000})
    box = "document.querySelector('canvas.timeline').getBoundingClientRect()"
    seen.until(f"{box}.right <= innerWidth && {box}.height > 600")
    assert seen.page.evaluate("nsightlensTimeline.height > nsightlensTimeline.lanes.height")


def test_an_area_of_the_timeline_is_summed(visit: Opened, demo: Path, demo_store: nl.Store) -> None:
    """All lanes of the whole step: as many slices of each family, and as long, as the view has."""
    seen = visit(demo, "tab=timeline&step=2&rank=0&tool=nsys")
    seen.page.evaluate("nsightlensTimeline.element.scrollIntoView()")
    box = seen.page.locator("canvas.timeline").bounding_box()
    seen.page.keyboard.down("Shift")
    seen.page.mouse.move(box["x"] + 40, box["y"] + 22)
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + box["width"], box["y"] + box["height"] - 2, steps=4)
    seen.page.mouse.up()
    lines = seen.page.locator("aside.details tbody tr").evaluate_all(CELLS)
    kinds = lines[: next(place for place, line in enumerate(lines) if line[0] == "longest")]
    rows = [row for row in demo_store.view("step_timeline", which_step=2, only_rank=0, only_tool="nsys").to_pylist()
            if row["kind"] == "kernel" and row["family"] == "collective"]
    assert ["collective", f"{len(rows):,}", duration(sum(row["duration_ns"] for row in rows))] in kinds
    assert "busy for" in seen.page.locator("aside.details").inner_text()
    seen.page.locator("canvas.timeline").focus()
    seen.page.keyboard.press(" ")
    assert seen.page.locator("aside.details tbody tr").count() == len(lines)
