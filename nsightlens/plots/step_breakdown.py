"""Stacked bars: where each step of each process went."""

from __future__ import annotations

import math

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsightlens.plots import frame
from nsightlens.plots.frame import Gpus, Picture, Row
from nsightlens.views.palette import CATEGORIES

_NAMES = {"data_loader": "data loader", "cpu_exec": "CPU exec"}
_MOST_STEPS = 200
_SEPARATE = 60
"""Bars that may have gaps between them: more would be a pattern of stripes."""
_LABELS = 60
"""Characters that fit below a panel."""
_ALIKE = 10


@frame.drawn_from_rows
def step_breakdown(table: pa.Table, *, gpus: Gpus | None = None) -> Figure:
    """Return a panel per process of `table` (rows of the view `step_breakdown`), a bar per step, stacked by category.

    Of more than 200 steps each bar is the mean of several consecutive ones, and the axis says of how many.
    Panels have one unit and scale, unless the longest steps of two runs are ten times apart: then each run has its own.
    Processes with a single row each share one panel, a bar per process.
    `gpus`: product name per (run, tool), for the titles. Raises NsightlensError where there are no rows.
    """
    rows = frame.rows_of(table, "no steps, operators or GPU work in the rows of step_breakdown")
    panels = _panels(rows)
    shown = panels[: frame.MOST_PANELS]
    columns = 1 if len(shown) == 1 else 2 if len(shown) <= 4 else 4
    height = math.ceil(len(shown) / columns)
    figure = Picture(figsize=(max(7.2, 3.4 * columns), 1.2 + 3.0 * height), layout="constrained")
    runs = frame.by_tool(row for *_, members in shown for row in members)
    longest = {key: max(row["step_ns"] or 0 for row in members) for key, members in runs.items()}
    alike = max(longest.values()) <= _ALIKE * min(longest.values())
    grid = list(figure.subplots(height, columns, squeeze=False, sharey=alike).flat)
    first: dict[tuple[str, str], Axes] = {}
    for axes, (title, names, members) in zip(grid, shown, strict=False):
        run = members[0]["run"], members[0]["tool"]
        factor, unit = frame.time_unit(max(longest.values()) if alike else longest[run])
        _draw(axes, names, members, factor)
        axes.set_title(title, loc="left", fontsize=9)
        if not alike:
            axes.set_ylabel(unit, fontsize=9)
            if first.setdefault(run, axes) is not axes:
                axes.sharey(first[run])
                axes.autoscale(axis="y")
    for axes in grid[len(shown):]:
        axes.set_visible(False)
    figure.supylabel(f"Time ({unit})" if alike else "Time", fontsize=10)
    figure.suptitle(_title(rows, gpus), fontsize=10, x=0.01, ha="left")
    used = {_NAMES.get(name, name): colour for name, colour in CATEGORIES.items() if any(row[f"{name}_ns"] for row in rows)}
    left_out = f"{len(panels) - len(shown)} more processes are not drawn" if len(panels) > len(shown) else ""
    frame.legend(figure, used, left_out)
    return frame.settle(figure)


def _panels(rows: list[Row]) -> list[tuple[str, list[str], list[Row]]]:
    """Return (title, a name per bar, rows) of each panel."""
    panels = []
    for key, members in frame.by_tool(rows).items():
        names = frame.labels(members)
        processes: dict[tuple[object, ...], list[Row]] = {}
        for row in members:
            processes.setdefault(frame.place(row), []).append(row)
        run_and_tool = ", ".join(map(str, key)) if len(frame.by_tool(rows)) > 1 else ""
        if all(len(steps) == 1 for steps in processes.values()):
            panels.append((run_and_tool, [names[frame.place(row)] for row in members], members))
            continue
        for here, steps in processes.items():
            title = ", ".join(filter(None, (frame.short(frame.clean(run_and_tool), 30), names[here])))
            panels.append((title, [str(i if row["step"] is None else row["step"]) for i, row in enumerate(steps)], steps))
    return panels


def _draw(axes: Axes, names: list[str], rows: list[Row], factor: float) -> None:
    merged = math.ceil(len(rows) / _MOST_STEPS)
    bars, names = [rows[at : at + merged] for at in range(0, len(rows), merged)], names[::merged]
    parts = {category: [sum(row[f"{category}_ns"] or 0 for row in bar) / (len(bar) * factor) for bar in bars]
             for category in CATEGORIES}
    one_each = len(frame.labels(rows)) == len(rows)
    is_ranked = one_each and len(names) > 1 and len({row["rank"] for row in rows} - {None}) == len(rows)
    if is_ranked:
        names = [str(bar[0]["rank"]) for bar in bars]
    frame.stacked(axes, names, parts, CATEGORIES, width=0.8 if len(bars) <= _SEPARATE else 1.0)
    ticks = 12 if one_each else min(12, _LABELS // (2 + max(map(len, names))))
    if len(names) > ticks:
        every = math.ceil(len(names) / ticks)
        axes.set_xticks(range(0, len(names), every), names[::every])
    one = "Whole capture" if rows[0]["step_id"] is None else "One step each"
    if is_ranked:
        one = f"Rank ({one[0].lower()}{one[1:]})"
    several = f"Step (each bar: the mean of {merged:,})" if merged > 1 else "Step"
    axes.set_xlabel(one if one_each else several, fontsize=9)
    axes.tick_params(labelsize=8)
    frame.tidy(axes)


def _title(rows: list[Row], gpus: Gpus | None) -> str:
    keys = list(frame.by_tool(rows))
    what = "Step breakdown" if any(row["step_id"] is not None for row in rows) else "Time breakdown (no steps were recorded)"
    return frame.title(what, keys[0], gpus) if len(keys) == 1 else f"{what}, per process"
