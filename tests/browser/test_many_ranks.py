"""Many ranks in a browser: a square of cells and a matrix, not a row for each."""

from __future__ import annotations

from pathlib import Path

import nsightlens as nl
from tests.browser.conftest import Opened
from tests.browser.test_alignment import exchange

RANKS, LATE, SHOWN = 70, 41, 64


def test_many_ranks_are_a_square_and_a_matrix(visit: Opened, tmp_path: Path) -> None:
    """Rank 41 never waits: of one step all ranks are a square, in order, and the tree has a column for those that differ most."""
    waits = tuple(20.0 if rank == LATE else 400.0 + rank % 3 for rank in range(RANKS))
    with nl.ingest(exchange(tmp_path / "run", waits), store=tmp_path / "store") as store:
        path = nl.report(store).save(tmp_path / "r.html")
        stragglers = [row["rank"] for row in store.view("straggler").to_pylist() if row["verdict"] == "straggler"]
    seen = visit(path, "tab=ranks&measure=communication_ns")
    assert stragglers == [LATE] and seen.rows("Who the others wait for")[0][:2] == [str(LATE), "straggler"]
    cells = seen.page.locator("svg[aria-label^='communication by rank'] rect")
    said = cells.evaluate_all("all => all.map(cell => [cell.ariaLabel.split(':')[0], cell.getAttribute('fill')])")
    assert [name for name, _ in said] == [f"rank {rank}" for rank in range(RANKS)]
    assert [name for name, fill in said if fill == "rgb(222,235,247)"] == [f"rank {LATE}"], "the pale cell waits least"
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tree = visit(path).page.locator(".tree")
    columns = tree.locator("thead th.bar").evaluate_all("all => all.map(head => head.title)")[1:]
    assert len(columns) == SHOWN and f"rank {LATE}" in columns
    assert f"the {SHOWN} of {RANKS} that differ most" in tree.inner_text()
    assert visit(path, "tab=timeline").page.evaluate("nsightlensTimeline.processes.length") == SHOWN
