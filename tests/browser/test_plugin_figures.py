"""What the TensorBoard plugin showed, in the report: each figure of its pages, and the clicks that lead to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Opened

Click = tuple[str, str]
"""What is clicked or chosen (tab, or the label of a selection; else any button), and its text."""
FIGURES: dict[str, tuple[list[Click], str, list[str]]] = {
    "overview: GPU summary": ([], "GPUs", [
        "gpu", "utilization %", "sm efficiency %", "occupancy %", "tensor core %", "memory bytes", "compute capability"]),
    "overview: execution summary": ([], "Where the time went, by kind", ["category", "time %", "avg", "total"]),
    "overview: performance recommendation": ([], "Rules of the TensorBoard plugin", ["rule", "value %", "limit %", "advice"]),
    "operators: by name": ([("tab", "Operators")], "Operators", [
        "name", "calls", "device self", "device total", "host self", "host total", "tensor core eligible"]),
    "operators: tensor cores": ([("tab", "Operators"), ("Rank", "0")], "Operators", [
        "tensor core self %", "tensor core total %"]),
    "operators: by input shape": ([("tab", "Operators"), ("Group by", "operator and shapes")], "Operators", ["shapes", "calls"]),
    "operators: kernels of one": ([("tab", "Operators"), ("button", "aten::cudnn_convolution")], "Kernels of aten::", ["name"]),
    "operators: call stacks of one": ([("tab", "Operators"), ("button", "aten::conv2d")], "Stacks of aten::conv2d", [
        "call site", "call stack", "calls", "device total"]),
    "kernels: by name": ([("tab", "Kernels"), ("Group by", "name and tensor cores")], "Kernels", [
        "name", "tensor cores", "calls", "total", "max", "min", "blocks per sm"]),
    "kernels: by name and operator": ([("tab", "Kernels"), ("Group by", "operator")], "Kernels", ["name", "op", "calls"]),
    "memory: statistics": ([("tab", "Memory")], "Memory by operator", ["name", "calls", "self increase bytes"]),
    "memory: events": ([("tab", "Memory")], "Allocations and releases there", ["at", "bytes"]),
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


@pytest.mark.parametrize("figure", FIGURES)
def test_each_table_is_found_in_three_clicks(visit: Opened, demo: Path, figure: str) -> None:
    clicks, table, columns = FIGURES[figure]
    assert len(clicks) <= 3
    seen = visit(demo, "tool=kineto")
    for kind, text in clicks:
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
    tab, chart = CHARTS[figure]
    seen = visit(demo, "tool=kineto")
    seen.page.get_by_role("tab", name=tab).click()
    seen.page.wait_for_selector(f"body[data-ready={tab.lower()}] section.tab:not([hidden]) {chart}")
