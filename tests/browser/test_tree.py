"""The judged tree on the Overview: its parts sum to the window, and a click opens what is behind them."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path

import nsightlens as nl
from tests.browser.conftest import Opened, Visit


def parts(seen: Visit) -> list[dict[str, str]]:
    """Return the rows of the tree as the page hands them out."""
    with seen.page.expect_download() as waiting:
        seen.page.get_by_role("button", name="Download Where the time went as CSV").click()
    return list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text())))


def test_branches_and_leaves_sum_to_the_window_of_each_rank(visit: Opened, demo: Path, demo_store: nl.Store) -> None:
    windows = {f"rank {row['rank']}": row["total_ns"] for row in demo_store.view("time_tree", only_tool="nsys").to_pylist()
               if row["node"] == "window"}
    rows = [row for row in parts(visit(demo)) if row["share_pct"]]
    sums: Counter[tuple[str, str]] = Counter()
    for row in rows:
        path = row["part"].split(" › ")
        for column in ("total_ns", *windows):
            sums[" › ".join(path[:-1]), column] += int(row[column])
    whole = {"total_ns": sum(windows.values()), **windows}
    assert len(windows) == 2 and {column: sums["", column] for column in whole} == whole
    inner = {row["part"]: row for row in rows}
    assert all(int(inner[path][column]) == ns for (path, column), ns in sums.items() if path) and len(sums) > 9


def test_a_branch_opens_its_leaves_and_a_leaf_what_is_behind_it(visit: Opened, demo: Path) -> None:
    seen = visit(demo)
    tree = seen.page.locator(".tree")
    before = tree.locator("tbody tr").count()
    seen.page.get_by_role("button", name="▸ idle").focus()
    seen.page.keyboard.press("Enter")
    seen.until(f"document.querySelectorAll('.tree tbody tr').length > {before}")
    fold = seen.page.get_by_role("button", name="▾ idle")
    assert fold.get_attribute("aria-expanded") == "true" and fold.evaluate("fold => fold === document.activeElement")
    seen.page.get_by_role("button", name="kernel of ncclDevKernel_AllReduce").click()
    seen.page.wait_for_selector("body[data-ready=kernels] #detail")
    assert "kernel=ncclDevKernel_AllReduce" in seen.page.url


def test_a_cell_of_a_rank_opens_it_for_that_rank(visit: Opened, demo: Path) -> None:
    seen = visit(demo)
    seen.page.locator(".tree tr.depth1", has_text="exposed copies").locator("td.bar").nth(2).click()
    seen.page.wait_for_selector("body[data-ready=host]")
    assert "rank=1" in seen.page.url


def test_the_tree_is_of_the_rank_that_is_asked_for(visit: Opened, demo: Path, demo_store: nl.Store) -> None:
    rows = parts(visit(demo, "rank=1"))
    own = {row["node"]: row["total_ns"] for row in demo_store.view("time_tree", only_tool="nsys", only_rank=1).to_pylist()
           if row["depth"] == 1 and row["total_ns"] and row["share_pct"] is not None}
    assert {row["part"]: int(row["total_ns"]) for row in rows if row["part"] in own} == own


