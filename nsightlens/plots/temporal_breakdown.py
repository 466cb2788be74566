"""A bar per GPU: compute, non-compute and idle time."""

from __future__ import annotations

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsightlens.plots import frame
from nsightlens.plots.frame import Gpus, Picture, Row
from nsightlens.views import palette

PARTS = {"compute": palette.BLUE, "non-compute": palette.ORANGE, "unknown (graphs)": palette.GREY, "idle": palette.PALE}
_COLUMNS = {"compute": "compute_ns", "non-compute": "non_compute_ns", "unknown (graphs)": "unknown_ns", "idle": "idle_ns"}
_WIDE_ENOUGH = 0.07  # of the longest bar: a share is written into the part


@frame.drawn_from_rows
def temporal_breakdown(table: pa.Table, *, gpus: Gpus | None = None) -> Figure:
    """Return a panel per run and tool of `table` (rows of the view `temporal_breakdown`), a bar per GPU and window.

    `gpus`: product name per (run, tool), for the titles. Raises NsightlensError where there are no rows.
    """
    panels = frame.by_tool(frame.rows_of(table, "temporal_breakdown has no rows: no GPU work on a timeline (nsys or Kineto)"))
    heights = [0.9 + 0.34 * len(members) for members in panels.values()]
    figure = Picture(figsize=(7.6, 0.6 + sum(heights)), layout="constrained")
    titles = [frame.title("Temporal breakdown", key, gpus) for key in panels]
    for part, members in zip(frame.parts(figure, titles, heights), panels.values(), strict=True):
        _draw(part.subplots(), members)
    used = {name: colour for name, colour in PARTS.items()
            if any(row[_COLUMNS[name]] for members in panels.values() for row in members)}
    frame.legend(figure, used, "compute: a kernel that does not communicate was running; "
                 "non-compute: only communication or memory operations were")
    return frame.settle(figure)


def _draw(axes: Axes, rows: list[Row]) -> None:
    longest = max(row["span_ns"] or 0 for row in rows)
    factor, unit = frame.time_unit(longest)
    names = frame.labels(rows)
    parts = {name: [(row[column] or 0) / factor for row in rows] for name, column in _COLUMNS.items()}
    frame.stacked(axes, [names[frame.place(row)] for row in rows], parts, PARTS, horizontal=True)
    for number, row in enumerate(rows):
        left = 0.0
        for column in _COLUMNS.values():
            value = row[column] or 0
            if longest and value / longest >= _WIDE_ENOUGH:
                axes.text((left + value / 2) / factor, number, f"{100 * value / row['span_ns']:.1f} %", ha="center",
                          va="center", fontsize=8, color="white" if column in ("compute_ns", "non_compute_ns") else "0.25")
            left += value
    axes.set_xlabel(f"Time ({unit})", fontsize=9)
    axes.tick_params(labelsize=8)
    frame.tidy(axes, "x")
