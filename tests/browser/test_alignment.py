"""Timelines below each other in a browser: ranks on one clock, and a step of two runs."""

from __future__ import annotations

from pathlib import Path

import nsightlens as nl
from tests.browser.conftest import Opened
from tests.captures import kineto

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
STARTS = "nsightlensTimeline.processes.map(({ step, table }) => [step.rank, step.late, table.value('start_ns', 0)])"


def exchange(folder: Path, waits: tuple[float, ...]) -> Path:
    """Write ranks that leave ten collectives together, each of which lasts as long (us) as the rank waited."""
    for rank, wait in enumerate(waits):
        work = [(REDUCE, 1000.0 * call - wait, wait) for call in range(1, 11)]
        kineto(folder / f"{rank}.json", work, rank=rank, pid=70 + rank, world_size=len(waits))
    return folder


def test_ranks_are_aligned_by_step_or_by_clock(visit: Opened, tmp_path: Path) -> None:
    """Rank 1 begins 300 us after rank 0: on one clock its collectives end with those of rank 0."""
    with nl.ingest(exchange(tmp_path / "run", (400.0, 100.0)), store=tmp_path / "store", jobs=1) as store:
        path = nl.report(store).save(tmp_path / "r.html")
        (error,) = [row["uncertainty_ns"] for row in store.view("rank_clock").to_pylist() if row["uncertainty_ns"] is not None]
    seen = visit(path, "tab=timeline")
    by_step = seen.page.evaluate(STARTS)
    assert [late for _, late, _ in by_step] == [0, 0] and by_step[0][2] == by_step[1][2]
    seen.page.get_by_label("Align").select_option("clock")
    seen.until("nsightlensTimeline.processes[1].step.late > 0")
    assert seen.page.evaluate(STARTS) == [[0, 0, by_step[0][2]], [1, 300_000, by_step[0][2] + 300_000]]
    assert f"± {error / 1000:.3f} µs" in seen.page.locator("#timeline").inner_text()
    assert "align=clock" in seen.page.url
    seen.page.get_by_label("Find").fill("nccl")
    seen.page.locator("ol.hits button").first.click()
    assert "(5,000 ns) after the step's start" in seen.page.locator("aside.details").inner_text(), "from its own step's start"


def test_one_rank_has_nothing_to_align(visit: Opened, tmp_path: Path) -> None:
    with nl.ingest(exchange(tmp_path / "run", (400.0, 100.0)), store=tmp_path / "store", jobs=1) as store:
        path = nl.report(store).save(tmp_path / "r.html")
    assert visit(path, "tab=timeline&rank=1").page.get_by_label("Align").count() == 0


def test_a_step_of_two_runs_is_shown_from_its_start(visit: Opened, tmp_path: Path) -> None:
    for run, waits in (("base", (400.0, 100.0)), ("other", (200.0, 150.0))):
        store = nl.ingest(exchange(tmp_path / run, waits), store=tmp_path / "store", run=run, jobs=1)
    path = nl.report(store, run="other", base="base").save(tmp_path / "r.html")
    seen = visit(path, "tab=compare")
    shown = "nsightlensTimeline.processes.map(({ step }) => [step.run, step.rank, step.late])"
    assert seen.page.evaluate(shown) == [["base", 0, 0], ["other", 0, 0]]
    seen.page.locator("#compare").get_by_label("Step", exact=True).select_option(label="rank 1, whole capture")
    seen.until("nsightlensTimeline.processes[0].step.rank === 1")
    assert seen.page.evaluate(shown) == [["base", 1, 0], ["other", 1, 0]]
