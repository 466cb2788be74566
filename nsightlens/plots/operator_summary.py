"""A bar per operator, by the time it took itself."""

from __future__ import annotations

import pyarrow as pa
from matplotlib.figure import Figure

from nsightlens.plots import frame
from nsightlens.plots.frame import Gpus, Picture, Row
from nsightlens.views import palette

_MOST = 20
_LEAST = 0.0005
"""Share of the time below which an operator has no bar: it would be 0.0 %."""


@frame.drawn_from_rows
def operator_summary(table: pa.Table, *, gpus: Gpus | None = None) -> Figure:
    """Return a panel per run and tool of `table` (rows of the view `operator_summary`): the 20 operators with most GPU time.

    Summed over processes and shapes, less than 0.05 % left out; by host time where no GPU time is known. `gpus`: product name
    per (run, tool), for the titles. Raises NsightlensError where there are no rows.
    """
    rows = frame.rows_of(table, "operator_summary has no rows; it needs operators: a PyTorch-profiler trace, or emit_nvtx ranges")
    panels = {key: _summed(members) for key, members in frame.by_tool(rows).items()}
    heights = [0.75 + 0.24 * len(bars) for _, bars, _, _ in panels.values()]
    figure = Picture(figsize=(8.6, 0.6 + sum(heights)), layout="constrained")
    titles = [frame.title("Top operators", key, gpus) for key in panels]
    for part, (where, bars, left_out, total) in zip(frame.parts(figure, titles, heights), panels.values(), strict=True):
        axes = part.subplots()
        factor, unit = frame.time_unit(max(ns for _, ns, _ in bars))
        shares = [f"{100 * ns / total:.1f} %, " if total else "" for _, ns, _ in bars]
        frame.ranked(axes, [name for name, _, _ in bars], [ns / factor for _, ns, _ in bars],
                     [palette.BLUE if where == "GPU" else palette.AMBER] * len(bars),
                     [f"{share}{calls:,}×" for share, (_, _, calls) in zip(shares, bars, strict=True)])
        more = f"; {left_out:,} more take less" if left_out else ""
        axes.set_xlabel(f"{where} time of the operator itself ({unit}){more}", fontsize=9)
    frame.legend(figure, {}, "summed over calls and processes; without the operators inside")
    return frame.settle(figure)


def _summed(rows: list[Row]) -> tuple[str, list[tuple[str, int, int]], int, int]:
    """Return where the time was spent ('GPU' or 'Host'), (name, ns, calls) of the longest, how many more, and the ns of all."""
    where = "GPU" if any(row["device_self_ns"] is not None for row in rows) else "Host"
    column = "device_self_ns" if where == "GPU" else "host_self_ns"
    sums: dict[str, tuple[int, int]] = {}
    for row in rows:
        ns, calls = sums.get(row["name"], (0, 0))
        sums[row["name"]] = ns + (row[column] or 0), calls + (row["calls"] or 0)
    total = sum(ns for ns, _ in sums.values())
    spent = {name: figures for name, figures in sums.items() if figures[0] and figures[0] >= _LEAST * total} or sums
    longest = sorted(spent.items(), key=lambda item: (-item[1][0], item[0]))[:_MOST]
    return where, [(name, ns, calls) for name, (ns, calls) in longest], len(sums) - len(longest), total
