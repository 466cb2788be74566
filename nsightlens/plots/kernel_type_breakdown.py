"""Rows of the view `kernel_type_breakdown` -> pies: what the busy time of each GPU, and of all together, consisted of."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsightlens.plots import frame
from nsightlens.plots.frame import Gpus, Row
from nsightlens.views import palette

CLASSES = {  # two or three at once: the mixture's own colour, beside what it is made of
    "compute": palette.BLUE, "communication": palette.ORANGE, "memory": palette.GREEN, "compute+communication": palette.PURPLE,
    "compute+memory": palette.SKY, "communication+memory": palette.AMBER, "compute+communication+memory": palette.YELLOW,
    "unknown": palette.GREY,
}
_DARK = ("compute", "communication", "memory", "unknown")
_COLUMNS = 4
_WRITTEN = 4.0  # per cent: smaller slices have their share in the legend's colours only


def kernel_type_breakdown(table: pa.Table, *, gpus: Gpus | None = None) -> Figure:
    """Return a pie over all GPUs and one per GPU and window of `table` (rows of the view `kernel_type_breakdown`).

    A pie is busy time; idle time stands below it as a share of the span. A row of pies per run and tool. `gpus`: product name
    per (run, tool), for the titles. Raises NsightlensError where there are no rows.
    """
    rows = frame.rows_of(table, "kernel_type_breakdown has no rows: no GPU work on a timeline (nsys or Kineto)")
    panels = frame.by_tool(rows)
    pies = {key: _pies(members) for key, members in panels.items()}
    columns = min(_COLUMNS, max(len(found) for found in pies.values()))
    lines = [math.ceil(len(found) / columns) for found in pies.values()]
    heights = [0.4 + 2.5 * number for number in lines]
    figure = Figure(figsize=(max(7.2, 2.4 * columns), 0.8 + sum(heights)), layout="constrained")
    titles = [frame.title("Kinds of GPU work", key, gpus) for key in pies]
    for part, number, found in zip(frame.parts(figure, titles, heights), lines, pies.values(), strict=True):
        grid = list(part.subplots(number, columns, squeeze=False).flat)
        for axes, (name, times) in zip(grid, found.items(), strict=False):
            _draw(axes, name, times)
        for axes in grid[len(found):]:
            axes.set_visible(False)
    used = {row["class"] for row in rows if row["total_ns"]}
    frame.legend(figure, {name.replace("+", " + "): colour for name, colour in CLASSES.items() if name in used})
    return frame.settle(figure)


def _pies(rows: list[Row]) -> dict[str, Counter[str]]:
    """Return {name: ns per class} of each pie, that of all GPUs first where there are several."""
    names = frame.labels(rows)
    found: dict[str, Counter[str]] = {}
    for row in rows:
        found.setdefault(names[frame.place(row)], Counter())[row["class"]] += row["total_ns"] or 0
    shown = dict(list(found.items())[: frame.MOST_PANELS])
    left_out = f" ({len(found) - len(shown)} not drawn alone)" if len(found) > len(shown) else ""
    return {f"all {len(found)} together{left_out}": sum(found.values(), Counter()), **shown} if len(found) > 1 else shown


def _draw(axes: Axes, name: str, times: Counter[str]) -> None:
    busy = {kind: times[kind] for kind in CLASSES if times[kind]}
    total = sum(busy.values())
    drawn: Any = axes.pie(list(busy.values()) or [1], colors=[CLASSES[kind] for kind in busy] or [palette.PALE], startangle=90,
             counterclock=False, pctdistance=0.68,
             autopct=lambda share: f"{share:.1f} %" if busy and share >= _WRITTEN else "",
             wedgeprops={"edgecolor": "white", "linewidth": 0.7}, textprops={"fontsize": 7.5})
    for kind, text in zip(busy, drawn[2], strict=False):
        text.set_color("white" if kind in _DARK else "0.1")
    axes.set_title(frame.clean(name), fontsize=9)
    factor, unit = frame.time_unit(total)
    idle = times["idle"]
    below = f"busy {total / factor:.4g} {unit}, idle {100 * idle / ((total + idle) or 1):.1f} %"
    axes.text(0, -1.22, below, ha="center", va="top", fontsize=7.5, color="0.3")
