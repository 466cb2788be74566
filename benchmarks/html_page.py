"""How large a report is, how soon it can be used, and how smoothly its timeline moves: `python -m benchmarks.html_page`.

Writes benchmarks/html_page.md. Needs the extra `browser` and chromium; without a browser only sizes are measured.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import nsightlens as nl

ROOT = Path(__file__).resolve().parent.parent
NAMES = [f"void at::native::kernel_{number}<float, {number}>(float*, int)" for number in range(60)]
_PAN = """() => new Promise((done) => {
  const timeline = nsightlensTimeline, draw = timeline.drawNow, begin = performance.now();
  let drawn = 0;
  timeline.drawNow = function () { draw.call(this); drawn++; };
  const step = (number) => {
    if (number === 120) return done(1000 * drawn / (performance.now() - begin));
    timeline.pan((number < 60 ? 1 : -1) * timeline.lanes.length / 200);
    requestAnimationFrame(() => step(number + 1));
  };
  step(0);
})"""
"""Moves the timeline in each of 120 frames; drawings per second, for a frame in which nothing was drawn says nothing."""


_ABOUT = """# The report's page

Written by `python -m benchmarks.html_page` on 2 shared cores, Chromium without a window or a GPU: each report is written once
and visited three times, of which the best is shown. All but the bundled run are made, with random times and names. Bars: the
bundled run 2 MB and open in 0.5 s, 8 ranks 5 MB and 1 s, 50,000 slices 30 drawings per second, 64 ranks 10 MB. Half of a step
is in view while its timeline moves; a browser draws at most 60 times per second.

"""


def write_run(folder: Path, ranks: int, kernels: int, steps: int = 0) -> Path:
    """Write a Kineto trace per rank: launches one after the other, in as many steps; return the folder.

    Gaps, durations and the order of names are random, as in real traces: what is regular would deflate to nothing.
    """
    folder.mkdir(parents=True)
    for rank in range(ranks):
        chance = random.Random(rank)
        events: list[dict[str, object]] = []
        starts, start = [], 1000.0
        for number in range(kernels):
            length = round(1 + chance.expovariate(0.1), 3)
            starts.append(start)
            shared = {"pid": 77 + rank, "tid": 77 + rank, "ph": "X"}
            events.append(shared | {"cat": "cuda_runtime", "name": "cudaLaunchKernel",
                                    "ts": round(start - 5 - chance.random(), 3), "dur": round(1 + chance.random(), 3),
                                    "args": {"correlation": number + 1}})
            events.append({"ph": "X", "cat": "kernel", "name": NAMES[int(len(NAMES) * chance.random() ** 3)], "pid": 0,
                           "tid": 7 + number % 3,
                           "ts": start, "dur": length, "args": {"device": 0, "stream": 7 + number % 3, "correlation": number + 1,
                                                                "grid": [8, 1, 1], "block": [128, 1, 1]}})
            start = round(start + max(length, 3.0) + chance.expovariate(0.5), 3)
        edges = [starts[kernels * step // steps] - 10 for step in range(steps)] + [start]
        events += [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 77 + rank, "tid": 77 + rank,
                    "ts": round(edges[step], 3), "dur": round(edges[step + 1] - edges[step] - 1, 3)} for step in range(steps)]
        trace = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
                 "traceEvents": events, "baseTimeNanoseconds": 0}
        (folder / f"rank{rank}.json").write_text(json.dumps(trace))
    return folder


def measure(browser: Any, name: str, runs: Path, folder: Path) -> list[str]:
    """Return a line of the table."""
    with nl.ingest(runs, store=folder / "store") as store:
        begin = time.perf_counter()
        page = nl.report(store)
        wrote = time.perf_counter() - begin
    path = page.save(folder / "report.html")
    slices = "left out: " + "; ".join(text.split(":")[0] for text in page.left_out) if page.left_out else "all of it"
    cells = [name, f"{path.stat().st_size / 1e6:.2f} MB", f"{wrote:.1f} s", slices]
    return cells + (best_of_three(browser, path) if browser else ["–"] * 3)


def best_of_three(browser: Any, path: Path) -> list[str]:
    """Return the cells of the best of three visits: what else runs on the machine only slows one down."""
    opened, drawn, per_second = zip(*(in_browser(browser, path) for _ in range(3)), strict=True)
    return [f"{min(opened):.2f} s", f"{min(drawn):.2f} s", f"{max(per_second):.0f}"]


def in_browser(browser: Any, path: Path) -> tuple[float, float, float]:
    """Return seconds until the overview and until the timeline are drawn, and drawings per second while it moves."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    begin = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-ready=overview]")
    opened = time.perf_counter() - begin
    begin = time.perf_counter()
    page.get_by_role("tab", name="Timeline").click()
    page.wait_for_selector("body[data-ready=timeline]")
    drawn = time.perf_counter() - begin
    page.evaluate("nsightlensTimeline.show(0, nsightlensTimeline.lanes.length / 2)")
    per_second = page.evaluate(_PAN)
    page.close()
    return opened, drawn, per_second


def inputs(folder: Path) -> dict[str, Path]:
    """Return the runs that are measured, by name."""
    return {"the bundled run": ROOT / "fixtures" / "simulated_resnet18_ddp",
            "8 ranks x 5,500 kernels": write_run(folder / "eight", 8, 5_500, 4),
            "one step of 50,000 slices": write_run(folder / "slices", 1, 25_000),
            "64 ranks x 5,500 kernels": write_run(folder / "many", 64, 5_500, 4)}


def main() -> None:
    """Measure, and write the table."""
    head = ["run", "file", "written in", "holds", "opens in", "timeline in", "drawings per second"]
    lines = [head, ["---"] * len(head)]
    with tempfile.TemporaryDirectory() as work:
        started, stop = _browser()
        for name, runs in inputs(Path(work)).items():
            lines.append(measure(started, name, runs, Path(tempfile.mkdtemp(dir=work))))
        stop()
    (ROOT / "benchmarks" / "html_page.md").write_text(_ABOUT + "".join(f"| {' | '.join(line)} |\n" for line in lines))


def _browser() -> tuple[Any, Any]:
    """Return a browser and what stops it; None where there is none."""
    path = shutil.which("chromium")
    if path is None:
        return None, lambda: None
    from playwright.sync_api import sync_playwright

    playwright = sync_playwright().start()
    browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])

    def stop() -> None:
        browser.close()
        playwright.stop()

    return browser, stop


if __name__ == "__main__":
    main()
