"""For `nsightlens summary` of ncu runs without a timeline: rows and section of the speed of light, a sentence on limits."""

from __future__ import annotations

from collections import defaultdict

from nsightlens.pages.query import TIMELINE, Page, Row
from nsightlens.pages.section import NAME, Line, Section, listed, more
from nsightlens.pages.tables import Column
from nsightlens.terminal.command import Command
from nsightlens.views.figures import MISSING, counted, duration, number, share

_FEW = 8
_SAID = {
    "latency": "latency: below 60 % of the peak of both, so that it mostly waits",
    "small grid": "small grid: its blocks do not fill the GPU once, and no unit is at 60 % of its peak",
    "small blocks": "small blocks: a warp has 32 threads, a block fewer",
    None: f"{MISSING}: the throughput of SMs or memory was not collected (ncu --section SpeedOfLight)",
}
"""What is meant by limits that people may not know."""


def measured(asked: Page) -> list[Row]:
    """Return the rows of speed_of_light of a run that has no timeline, the most time first."""
    if any(row["tool"] in TIMELINE for row in asked.ask("profile_overview")):
        return []
    return asked.ask("speed_of_light")


def limits(rows: list[Row]) -> list[str]:
    """Return a sentence on what limits the kernels that ncu measured, as shares of their time; none where it is not known."""
    times: dict[str | None, int] = defaultdict(int)
    for row in rows:
        times[row["limited_by"]] += row["total_ns"] or 0
    whole = sum(times.values())
    if not whole or set(times) == {None} or len(rows) == 1:
        return []
    parts = [f"{name or 'not known'} {share(100 * ns / whole)}" for name, ns in sorted(times.items(), key=lambda item: -item[1])]
    return [f"{counted(len(rows), 'launch configuration')} took {duration(whole)} under ncu; limits: {', '.join(parts)}."]


def speed_of_light(asked: Page) -> list[Section]:
    """Return how much of the SMs and the memory system each kernel used at most, and what holds it back."""
    rows = measured(asked)
    if not rows:
        return []
    shown = rows[:_FEW]
    names = [row["name"] for row in shown]
    columns = (
        Column("kernel", names, 9, True, True, shortest=NAME, kernels=names),
        Column("launches", [number(row["launches"]) for row in shown], 1),
        Column("time", [duration(row["total_ns"]) for row in shown], 6),
        Column("limited by", [row["limited_by"] or MISSING for row in shown], 8, text=True),
        Column("busiest unit", [row["unit"] or MISSING for row in shown], 7, text=True),
        Column("at", [share(row["unit_pct"]) for row in shown], 7),
        *(Column(head, [share(row[column]) for row in shown], weight) for head, column, weight in (
            ("SMs", "sm_pct", 5), ("memory", "memory_pct", 5), ("DRAM", "dram_pct", 4), ("occupancy", "occupancy_pct", 3))
          if any(row[column] is not None for row in shown)),
    )
    there = {row["limited_by"] for row in shown}
    meant = listed(said for limit, said in _SAID.items() if limit in there)
    left_out, work = more(len(rows) - len(shown), "speed_of_light"), Line(("FLOP/s and bytes: ", Command("roofline")))
    return [Section("Speed of light", asked.note("speed_of_light", "ncu, % of the peak, under replay"), columns,
                    (*left_out, *meant, work))]
