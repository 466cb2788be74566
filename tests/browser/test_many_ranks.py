"""Many ranks in a browser: outliers first, and how many are alike."""

from __future__ import annotations

from pathlib import Path

import nsightlens as nl
from tests.browser.conftest import Opened
from tests.browser.test_alignment import exchange

RANKS, LATE, SHOWN = 70, 41, 64


def test_of_many_ranks_the_outliers_come_first(visit: Opened, tmp_path: Path) -> None:
    """Rank 41 never waits: the heat map and the table begin with it, and the page says how many ranks it leaves out."""
    waits = tuple(20.0 if rank == LATE else 400.0 + rank % 3 for rank in range(RANKS))
    with nl.ingest(exchange(tmp_path / "run", waits), store=tmp_path / "store") as store:
        path = nl.report(store).save(tmp_path / "r.html")
        stragglers = [row["rank"] for row in store.view("straggler").to_pylist() if row["verdict"] == "straggler"]
    seen = visit(path, "tab=ranks&measure=communication_ns")
    assert stragglers == [LATE] and seen.rows("Who the others wait for")[0][:2] == [str(LATE), "straggler"]
    heat = seen.page.locator("svg[aria-label^='communication by rank']")
    assert heat.locator("text").first.text_content() == f"rank {LATE}"
    assert heat.locator("rect[role=button], rect").count() >= SHOWN
    said = seen.page.locator("#ranks").inner_text()
    assert f"the {SHOWN} ranks furthest from the median, {RANKS - SHOWN} others are left out" in said
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert visit(path, "tab=timeline").page.evaluate("nsightlensTimeline.processes.length") == SHOWN
