"""What the TensorBoard plugin showed, in the report: each figure of its pages, and the clicks that lead to it.

In the report of the bundled run, and in that of a ResNet-50 trace that came with the plugin: of one process and without calls of
Python functions, so that neither has pages of ranks and modules. Missed there, with the plugin, too, is how long an allocation
lasted: such old traces have no addresses.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import nsightlens as nl
from tests.browser.conftest import Opened
from tests.places import ROOT

RESNET = ROOT.parent / "shared" / "data" / "kineto" / (
    "pytorch__kineto__tb_plugin__resnet50_num_workers_0__worker0.1623143089861.pt.trace.json.gz")
Click = tuple[str, str]
"""What is clicked or chosen (tab, fold, or the label of a selection; else any button), and its text."""
FOLD = ("fold", "As the TensorBoard plugin and nsys count it")
FIGURES: dict[str, tuple[list[Click], str, list[str]]] = {
    "overview: GPU summary": ([FOLD], "GPUs", [
        "gpu", "utilization %", "sm efficiency %", "occupancy %", "tensor core %", "memory bytes", "compute capability"]),
    "overview: execution summary": ([FOLD], "Where the time went, by kind", ["category", "time %", "avg", "total"]),
    "overview: performance recommendation": ([FOLD], "Other tools. checks", ["rule", "value %", "limit %", "advice"]),
    "operators: by name": ([("tab", "Operators")], "Operators", [
        "name", "calls", "device self", "device total", "host self", "host total", "tensor core eligible"]),
    "operators: tensor cores": ([("tab", "Operators"), ("Rank", "0")], "Operators", [
        "tensor core self %", "tensor core total %"]),
    "operators: by input shape": ([("tab", "Operators"), ("Group by", "operator and shapes")], "Operators", ["shapes", "calls"]),
    "operators: kernels of one": ([("tab", "Operators"), ("button", "aten::cudnn_convolution")], "Kernels of aten::", ["name"]),
    "operators: call stacks of one": ([("tab", "Operators"), ("button", "aten::cudnn_convolution")], "Stacks of aten::", [
        "call site", "call stack", "calls", "device self", "device total", "host self", "host total"]),
    "kernels: by name": ([("tab", "Kernels"), ("Group by", "name and tensor cores")], "Kernels", [
        "name", "tensor cores", "calls", "total", "max", "min", "blocks per sm"]),
    "kernels: by name and operator": ([("tab", "Kernels"), ("Group by", "operator")], "Kernels", ["name", "op", "calls"]),
    "memory: statistics": ([("tab", "Memory")], "Memory by operator", ["name", "calls", "self increase bytes"]),
    "memory: events": ([("tab", "Memory")], "Allocations in this range", ["name", "bytes", "allocated at", "released at"]),
    "modules": ([("tab", "Modules")], "Modules", ["module", "calls"]),
    "distributed: computation and communication": ([("tab", "Ranks")], "Computation and communication of each step", [
        "rank", "step", "computation", "overlapping", "communication", "other", "synchronizing", "transfer"]),
    "distributed: operations": ([("tab", "Ranks")], "Collectives by operation", ["operation", "calls", "latency"]),
}
CHARTS: dict[str, tuple[str, str]] = {
    "overview: step time breakdown": ("Overview", "svg[aria-label='Where each step went']"),
    "memory: curve": ("Memory", "svg[aria-label='Memory over time']"),
    "trace": ("Timeline", "canvas.timeline"),
    "modules: time of each": ("Modules", "svg"),
}


OF_RESNET = {"operators: tensor cores": FIGURES["operators: tensor cores"][0][:1]}
"""Clicks that differ there: a trace of one process has no rank to choose."""
NOT_OF_RESNET = ("modules", "distributed")


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the ResNet-50 trace."""
    if not RESNET.exists():
        pytest.skip("needs the ResNet-50 trace of the plugin")
    folder = tmp_path_factory.mktemp("resnet")
    with nl.ingest(RESNET, store=folder / "store", jobs=1) as store:
        return nl.report(store).save(folder / "resnet.html")


@pytest.mark.parametrize("figure", FIGURES)
def test_each_table_is_found_in_three_clicks(visit: Opened, demo: Path, figure: str) -> None:
    clicks, table, columns = FIGURES[figure]
    _find(visit, demo, clicks, table, columns)


@pytest.mark.captures
@pytest.mark.parametrize("figure", [name for name in FIGURES if not name.startswith(NOT_OF_RESNET)])
def test_each_table_of_resnet_is_found_in_three_clicks(visit: Opened, resnet: Path, figure: str) -> None:
    clicks, table, columns = FIGURES[figure]
    _find(visit, resnet, OF_RESNET.get(figure, clicks), table, columns)


def _find(visit: Opened, report: Path, clicks: list[Click], table: str, columns: list[str]) -> None:
    """Click, and find a table under its heading, with rows and with these columns."""
    assert len(clicks) <= 3
    seen = visit(report, "tool=kineto")
    for kind, text in clicks:
        if kind == "fold":
            seen.page.get_by_text(text, exact=True).first.click()
            continue
        seen.page.evaluate("delete document.body.dataset.ready")
        if kind in ("tab", "button"):
            seen.page.get_by_role(kind, name=text, exact=True).first.click()
        else:
            chosen = seen.page.locator("label", has_text=kind).get_by_role("combobox").locator("visible=true")
            chosen.first.select_option(label=text)
        seen.page.wait_for_selector("body[data-ready]")
    grid = seen.page.locator("section.tab:not([hidden]) section.grid").filter(
        has=seen.page.locator(f"h3:text-matches('^{table}')")).first
    shown = [text.rstrip(" ▲▼") for text in grid.locator("th").all_inner_texts()]
    assert grid.locator("tbody tr").count() and set(columns) <= set(shown), shown


@pytest.mark.parametrize("figure", CHARTS)
def test_each_chart_is_found_in_one_click(visit: Opened, demo: Path, figure: str) -> None:
    _see(visit, demo, *CHARTS[figure])


@pytest.mark.captures
@pytest.mark.parametrize("figure", [name for name in CHARTS if not name.startswith(NOT_OF_RESNET)])
def test_each_chart_of_resnet_is_found_in_one_click(visit: Opened, resnet: Path, figure: str) -> None:
    _see(visit, resnet, *CHARTS[figure])


def _see(visit: Opened, report: Path, tab: str, chart: str) -> None:
    seen = visit(report, "tool=kineto")
    seen.page.get_by_role("tab", name=tab).click()
    seen.page.wait_for_selector(f"body[data-ready={tab.lower()}] section.tab:not([hidden]) {chart}")
