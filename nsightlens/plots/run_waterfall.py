"""From the step of one run to that of another: what grew, what shrank."""

from __future__ import annotations

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsightlens.analyses.run_waterfall import called
from nsightlens.names.distinct import shortened
from nsightlens.names.kernel_names import is_launch, labels
from nsightlens.plots import frame
from nsightlens.plots.frame import Gpus, Picture, Row
from nsightlens.views import palette

LONGER, SHORTER, TOTAL = palette.ORANGE, palette.BLUE, palette.GREY
_MOST = 14
"""Items with a bar of their own; the others share one, with their exact sum."""
_LEAST = 0.005
"""Changes below this share of the largest would not be seen and have no bar of their own."""
_CUT = 0.3
"""Where all changes take less than this share of the step, the axis begins near them and not at 0."""
Bar = tuple[str, float, float, str, str]
"""Label, where it begins and ends (in the axis' unit), colour, note."""


@frame.drawn_from_rows
def run_waterfall(table: pa.Table, *, gpus: Gpus | None = None) -> Figure:
    """Return a panel per rank of `table` (rows of the view `run_waterfall`): a bar per item, from base's step to other's.

    The largest changes first; the items beyond them share one bar. Without steps: the change of each item's share, in points.
    `gpus`: product name per (run, tool), for the titles. Raises NsightlensError where there are no rows.
    """
    rows = frame.rows_of(table, "run_waterfall has no rows: two runs with a timeline of one tool are needed")
    panels = list(frame.grouped(rows, "rank").values())
    shown = panels[: frame.MOST_PANELS]
    drawn = [_bars(members) for members in shown]
    heights = [1.1 + 0.27 * len(bars) for bars, *_ in drawn]
    figure = Picture(figsize=(9.0, 0.4 + sum(heights)), layout="constrained")
    titles = [_title(members[0], gpus) for members in shown]
    for part, (bars, unit, start) in zip(frame.parts(figure, titles, heights), drawn, strict=True):
        _draw(part.subplots(), bars, unit, start)
    left_out = f"{len(panels) - len(shown)} more ranks are not drawn" if len(panels) > len(shown) else ""
    notes = [left_out, f"not compared, as in one run only: rank {rows[0]['excluded_ranks']}" if rows[0]["excluded_ranks"] else ""]
    frame.legend(figure, {"longer": LONGER, "shorter": SHORTER, "step": TOTAL} if rows[0]["change_ns"] is not None
                 else {"a larger share": LONGER, "a smaller share": SHORTER}, "; ".join(filter(None, notes)))
    return frame.settle(figure)


def _bars(rows: list[Row]) -> tuple[list[Bar], str, float]:
    """Return the bars from top to bottom, the axis' label, and where the axis begins."""
    stepped = rows[0]["change_ns"] is not None
    column = "difference_ns" if stepped else "difference_pct"
    drawn = max(1, min(_MOST, sum(abs(row[column]) > _LEAST * abs(rows[0][column]) for row in rows)))
    changes = [(called(row), row[column]) for row in rows[:drawn]]
    if len(rows) > drawn:
        changes.append((f"{len(rows) - drawn} more, together", sum(row[column] for row in rows[drawn:])))
    if not stepped:
        shares = [(text, 0.0, by, LONGER if by > 0 else SHORTER, f"{by:+.2f}") for text, by in changes]
        return shares, "Change of the share of the captured time (percentage points)", 0.0
    totals = rows[0]["base_total_ns"], rows[0]["other_total_ns"]
    factor, unit = frame.time_unit(max(totals))
    at = totals[0]
    bars: list[Bar] = [(rows[0]["base_run"], 0, at / factor, TOTAL, _figure(at, factor))]
    levels = [at]
    for text, by in changes:
        bars.append((text, at / factor, (at + by) / factor, LONGER if by > 0 else SHORTER, _figure(by, factor, "+")))
        at += by
        levels.append(at)
    bars.append((rows[0]["other_run"], 0, totals[1] / factor, TOTAL, _figure(totals[1], factor)))
    spread = max(levels) - min(levels)
    start = min(levels) - 0.6 * spread if 0 < spread < _CUT * max(levels) else 0
    return bars, f"Mean step ({unit})", max(0.0, start / factor)


def _figure(ns: int, factor: float, sign: str = "") -> str:
    value = ns / factor
    return f"{value:{sign},.{3 if abs(value) < 10 else 2 if abs(value) < 100 else 1}f}"


def _draw(axes: Axes, bars: list[Bar], unit: str, start: float) -> None:
    for place, (_, begin, end, colour, note) in enumerate(bars):
        low, high = sorted((begin or start, end))
        axes.barh(place, high - low, left=low, height=0.7, color=colour)
        left = end < 0
        axes.annotate(note, (low if left else high, place), xytext=(-3 if left else 3, 0), textcoords="offset points",
                      ha="right" if left else "left", va="center", fontsize=7.5, color="0.25")
        if bars[0][3] == TOTAL and place + 1 < len(bars):
            axes.plot([end, end], [place + 0.35, place + 0.65], color="0.5", linewidth=0.6)
    texts = [text for text, *_ in bars]
    shown = shortened(texts, frame.NAME_LENGTH) | labels(filter(is_launch, texts), frame.NAME_LENGTH)
    axes.set_yticks(range(len(bars)), [frame.clean(shown[text]) for text in texts], fontsize=8)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    ends = [start, *(end for _, _, end, *_ in bars)]
    room = 0.12 * ((max(ends) - min(ends)) or 1)
    axes.set_xlim(min(ends) - (room if min(ends) < 0 else 0), max(ends) + room)
    axes.set_xlabel(unit + (f"; the axis begins at {start:.4g}" if start else ""), fontsize=9)
    axes.tick_params(axis="x", labelsize=8)
    frame.tidy(axes, "x")


def _title(row: Row, gpus: Gpus | None) -> str:
    base, other = row["base_run"], row["other_run"]
    known = {gpu for (run, tool), gpu in (gpus or {}).items() if run in (base, other) and tool == row["tool"]}
    what = "Step time" if row["change_ns"] is not None else "Share of the captured time, no steps were recorded"
    processes = row["base_ranks"], row["other_ranks"]
    who = f"rank {row['rank']}" if row["rank"] is not None else "mean of {} and {} processes".format(*processes)
    who = "" if row["rank"] is None and processes == (1, 1) else who
    parts = [frame.short(frame.clean(base), 28) + " to " + frame.short(frame.clean(other), 28), row["tool"], who,
             frame.short(frame.clean(", ".join(sorted(known))), 40)]
    return f"{what}: " + ", ".join(filter(None, parts))
