"""What a point of the true roofline has beside itself: the spread of its launches, and where ncu's own duration puts it."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from nsightlens.plots.frame import clean
from nsightlens.plots.roofline_roofs import Row, quantity

STAR = ("*", 10.0)
"""Marker and size of points whose work is from shapes."""
_SHAPES = 44  # characters
_SMALL = 4.0
_PALE = 0.55
_APART = 1.03  # nearer than 3 %, an arrow would hide between its ends


def heights(rows: Sequence[Row]) -> list[float]:
    """Return all values on the axis of performance that stand beside the points: ends of bars, and ncu's points."""
    found = [y for row in rows for y in (*_spread(row), row.get("ncu_achieved_flop_per_s"))]
    return [y for y in found if y]


def draw(axes: Axes, row: Row, colour: str, marker: str) -> None:
    """Draw the bar of a point's spread, ncu's own point (small and pale), and a thin arrow from that to the point."""
    x, y, own = row["arithmetic_intensity"], row["achieved_flop_per_s"], row.get("ncu_achieved_flop_per_s")
    if spread := _spread(row):
        axes.errorbar([x], [y], yerr=[[max(0.0, y - spread[0])], [max(0.0, spread[1] - y)]], fmt="none", ecolor="0.15",
                      elinewidth=0.7, capsize=2.0, capthick=0.7, label="_spread", zorder=4.6)
    if not own:
        return
    axes.plot([x], [own], linestyle="none", marker=marker, markersize=_SMALL, color=colour, alpha=_PALE,
              markeredgewidth=0, label="_ncu", zorder=3.8)
    if max(own, y) > _APART * min(own, y):
        axes.annotate("", (x, y), xytext=(x, own), gid="from ncu", zorder=3.5,
                      arrowprops={"arrowstyle": "-|>,head_width=0.12,head_length=0.25", "color": colour, "linewidth": 0.7,
                                  "shrinkA": 2.0, "shrinkB": 3.5})


def is_from_shapes(row: Row) -> bool:
    """Return whether work and bytes are from the shapes of an operator, not from counters."""
    return row.get("work_source") == "shapes"


def shapes(row: Row) -> str:
    """Return the operator and the first of its shapes; empty where the work was counted."""
    text = clean(str(row["traffic_source"]).removeprefix("aten::").replace(", ", ",")) if is_from_shapes(row) else ""
    return text if len(text) <= _SHAPES else text[:_SHAPES] + "…"


def note(rows: Sequence[Row]) -> list[str]:
    """Return the sentences that say what the points, bars, pale marks and stars are, and the clock of the roofs."""
    tools = " or ".join(sorted({str(row["time_tool"]) for row in rows}))
    lines = []
    if counted := [row for row in rows if not is_from_shapes(row)]:
        grades = dict.fromkeys(str(row["time_grade"]) for row in counted)
        lines = ["Operations and bytes of one launch as ncu counted them, over the median duration of the launches in "
                 f"{tools} (bars: 5th to 95th percentile). Small pale marks with an arrow: the same over the duration under "
                 "ncu.",
                 f"Launches of ncu and of {tools} belong together by grade: {', '.join(grades)}."]
    if len(counted) < len(rows):
        lines.append("Stars: operations and least bytes from the shapes of the operator, where nothing was counted, over the "
                     f"median duration in {tools}: their intensity is an upper bound.")
    clocks: dict[str, list[float]] = {}
    for row in counted:
        own = row.get("given_peak_flop_per_s") and row.get("given_peak_bytes_per_s")
        if row["roof_clock_source"] and row["roof_clock_hz"] and not own:
            clocks.setdefault(str(row["roof_clock_source"]), []).append(row["roof_clock_hz"])
    if clocks:
        clauses = [f"{quantity(min(hz), max(hz), 'Hz')}, the {clean(name)}" for name, hz in clocks.items()]
        unknown = "" if all(name.startswith("sampled") for name in clocks) else " (the clock during the launches is unknown)"
        lines.append(f"Roofs of ncu's report at {'; '.join(clauses)}{unknown}.")
    return lines


def _spread(row: Row) -> tuple[float, ...]:
    """Return performance at the 95th and the 5th percentile of duration; empty for less than two launches."""
    slow, fast, work = row.get("p95_duration_ns"), row.get("p5_duration_ns"), row.get("work_flop")
    return (1e9 * work / slow, 1e9 * work / fast) if slow and fast and work and (row["launches"] or 0) > 1 else ()
