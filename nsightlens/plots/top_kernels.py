"""A bar per kernel, by time, in the colour of its family."""

from __future__ import annotations

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsightlens.names.kernel_names import labels
from nsightlens.plots import frame
from nsightlens.plots.frame import Gpus, Picture, Row
from nsightlens.views import palette

_MOST = 20


@frame.drawn_from_rows
def top_kernels(table: pa.Table, *, gpus: Gpus | None = None) -> Figure:
    """Return a panel per run and tool of `table` (rows of the view `top_kernels`), longest kernel first, at most 20.

    `gpus`: product name per (run, tool), for the titles. Raises NsightlensError where there are no rows.
    """
    rows = frame.rows_of(table, "top_kernels has no rows: no kernels were recorded")
    panels = {key: members[:_MOST] for key, members in frame.by_tool(rows).items()}
    heights = [0.75 + 0.24 * len(members) for members in panels.values()]
    figure = Picture(figsize=(8.6, 0.6 + sum(heights)), layout="constrained")
    titles = [frame.title("Top kernels", key, gpus) for key in panels]
    for part, members in zip(frame.parts(figure, titles, heights), panels.values(), strict=True):
        _draw(part.subplots(), members)
    used = {row["family"] for members in panels.values() for row in members}
    frame.legend(figure, {name: colour for name, colour in palette.FAMILIES.items() if name in used},
                 "durations summed over all launches and ranks; concurrent kernels each count in full")
    return frame.settle(figure)


def _draw(axes: Axes, rows: list[Row]) -> None:
    factor, unit = frame.time_unit(max(row["total_ns"] or 0 for row in rows))
    shares = ["" if row["time_pct"] is None else f"{row['time_pct']:.1f} %, " for row in rows]
    names = labels({str(row["name"]) for row in rows}, frame.NAME_LENGTH)
    frame.ranked(
        axes, [names[str(row["name"])] for row in rows], [(row["total_ns"] or 0) / factor for row in rows],
        [palette.FAMILIES.get(row["family"], palette.FAMILIES["other"]) for row in rows],
        [f"{share}{row['instances']:,}×" for share, row in zip(shares, rows, strict=True)])
    axes.set_xlabel(f"Total time ({unit})", fontsize=9)
