"""A bar per GPU, all on one scale: what ran alone, what at once, and idle time."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsightlens.plots import frame
from nsightlens.plots.frame import Gpus, Picture, Row
from nsightlens.views import palette

CLASSES = {  # two or three at once: the mixture's own colour, beside what it is made of
    "compute": palette.BLUE, "communication": palette.ORANGE, "memory": palette.SKY, "compute+communication": palette.PURPLE,
    "compute+memory": palette.GREEN, "communication+memory": palette.AMBER, "compute+communication+memory": palette.YELLOW,
    "unknown": palette.GREY, "idle": palette.PALE,
}
_DARK = ("compute", "communication", "memory", "unknown")
_WIDE_ENOUGH = 0.07  # of the longest bar: a share is written into the part


@frame.drawn_from_rows
def kernel_type_breakdown(table: pa.Table, *, gpus: Gpus | None = None) -> Figure:
    """Return a panel per run and tool of `table` (rows of the view `kernel_type_breakdown`), a bar per GPU and window.

    All have one scale. `gpus`: product name per (run, tool), for the titles. Raises NsightlensError where there are no rows.
    """
    rows = frame.rows_of(table, "kernel_type_breakdown has no rows: no GPU work on a timeline (nsys or Kineto)")
    panels = {key: _bars(members) for key, members in frame.by_tool(rows).items()}
    heights = [0.9 + 0.34 * len(bars) for bars in panels.values()]
    figure = Picture(figsize=(7.6, 0.6 + sum(heights)), layout="constrained")
    titles = [frame.title("Kinds of GPU work", key, gpus) for key in panels]
    longest = max(times.total() for bars in panels.values() for times in bars.values())
    for part, bars in zip(frame.parts(figure, titles, heights), panels.values(), strict=True):
        _draw(part.subplots(), bars, longest)
    used = {row["class"] for row in rows if row["total_ns"]}
    frame.legend(figure, {name.replace("+", " + "): colour for name, colour in CLASSES.items() if name in used})
    return frame.settle(figure)


def _bars(rows: list[Row]) -> dict[str, Counter[str]]:
    """Return {name: ns per class} of each bar."""
    names = frame.labels(rows)
    found: dict[str, Counter[str]] = {}
    for row in rows:
        found.setdefault(names[frame.place(row)], Counter())[row["class"]] += row["total_ns"] or 0
    shown = dict(list(found.items())[: frame.MOST_PANELS])
    left_out = len(found) - len(shown)
    return shown | ({f"{left_out} more, their mean": _mean(list(found.values())[len(shown):])} if left_out else {})


def _mean(times: list[Counter[str]]) -> Counter[str]:
    return Counter({kind: round(sum(each[kind] for each in times) / len(times)) for kind in CLASSES})


def _draw(axes: Axes, bars: dict[str, Counter[str]], longest: int) -> None:
    factor, unit = frame.time_unit(longest)
    parts = {kind: [times[kind] / factor for times in bars.values()] for kind in CLASSES}
    frame.stacked(axes, list(bars), parts, CLASSES, horizontal=True)
    for number, times in enumerate(bars.values()):
        left = 0.0
        for kind in CLASSES:
            if longest and times[kind] / longest >= _WIDE_ENOUGH:
                axes.text((left + times[kind] / 2) / factor, number, f"{100 * times[kind] / times.total():.1f} %", ha="center",
                          va="center", fontsize=8, color="white" if kind in _DARK else "0.25")
            left += times[kind]
    axes.set_xlim(0, max(longest, 1) / factor)
    axes.set_xlabel(f"Time ({unit})", fontsize=9)
    axes.tick_params(labelsize=8)
    frame.tidy(axes, "x")
