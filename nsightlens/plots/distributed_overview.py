"""Bars per process: computing and communicating, waiting and moving data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsightlens.plots import frame
from nsightlens.plots.frame import Gpus, Picture, Row
from nsightlens.views import palette

STEP = {"computation": palette.BLUE, "both at once": palette.PURPLE, "communication": palette.ORANGE, "other": palette.PALE}
COLLECTIVES = {"waiting for others": palette.AMBER, "data transfer": palette.GREEN}
_COLUMNS = {"computation": "computation_ns", "both at once": "overlapping_ns", "communication": "communication_ns",
            "other": "other_ns", "waiting for others": "synchronizing_ns", "data transfer": "transfer_ns"}
_MOST = 8  # runs and tools
_LABELLED = 32  # processes whose names fit below their bars


@frame.drawn_from_rows
def distributed_overview(table: pa.Table, *, gpus: Gpus | None = None) -> Figure:
    """Return two panels per run and tool of `table` (rows of the view `distributed_overview`), a bar per process.

    Left, where a step went; right, how long collectives waited for other processes and how long they moved data; both as means
    over the steps. At most eight runs and tools are drawn; the legend says how many there are more. `gpus`: product name per
    (run, tool), for the titles. Raises NsightlensError where there are no rows.
    """
    rows = frame.rows_of(table, "distributed_overview has no rows: no steps, operators or GPU work on a timeline")
    found = frame.by_tool(rows)
    panels = dict(list(found.items())[:_MOST])
    widest = max(len(frame.labels(members)) for members in panels.values())
    figure = Picture(figsize=(max(8.6, min(20.0, 0.5 * widest + 5)), 0.5 + 3.1 * len(panels)), layout="constrained")
    titles = [frame.title("Distributed overview", key, gpus) for key in panels]
    used: dict[str, str] = {}
    for part, members in zip(frame.parts(figure, titles, [1.0] * len(panels)), panels.values(), strict=True):
        left, right = part.subplots(1, 2)
        is_ranked = all(row["rank"] is not None for row in members)
        names = frame.labels(members, "" if is_ranked else "rank ")
        grouped: dict[tuple[Any, ...], list[Row]] = {here: [] for here in names}
        for row in members:
            grouped[frame.place(row)].append(row)
        used |= _draw(left, names, grouped, STEP, "Mean per step")
        matched = {here: known for here, steps in grouped.items()
                   if (known := [row for row in steps if row["synchronizing_ns"] is not None])}
        if matched:
            used |= _draw(right, names, matched, COLLECTIVES, "In collectives, mean per step")
        else:
            right.set_axis_off()
            right.text(0.5, 0.5, "Waiting and transfer: not known\n(collectives of several processes are needed)", ha="center",
                       va="center", fontsize=9, color="0.35", transform=right.transAxes)
    left_out = f"{len(found) - len(panels)} more runs and tools are not drawn: choose with --run or --tool"
    frame.legend(figure, used, left_out if len(found) > len(panels) else "")
    return frame.settle(figure)


def _draw(axes: Axes, names: Mapping[tuple[Any, ...], str], grouped: Mapping[tuple[Any, ...], list[Row]],
          parts: Mapping[str, str], what: str) -> dict[str, str]:
    """Draw a bar per process and return the legend's entries."""
    means = {name: [sum(row[_COLUMNS[name]] or 0 for row in steps) / len(steps) for steps in grouped.values()] for name in parts}
    factor, unit = frame.time_unit(max(map(sum, zip(*means.values(), strict=True)), default=0))
    ranked = all(here[0] is not None for here in grouped)
    labels = [names[here] for here in grouped]
    frame.stacked(axes, labels, {name: [value / factor for value in values] for name, values in means.items()}, parts)
    if len(labels) > _LABELLED:
        every = -(-len(labels) // _LABELLED)
        axes.set_xticks(range(0, len(labels), every), labels[::every])
    axes.set_xlabel("Rank" if ranked else "Process", fontsize=9)
    axes.set_ylabel(f"{what} ({unit})", fontsize=9)
    axes.tick_params(labelsize=8)
    frame.tidy(axes)
    return {name: colour for name, colour in parts.items() if any(means[name])}
