"""Where the texts of a roofline chart stand: names of roofs, numbers of ridges and of series, clear of points and of each other.

All of it needs a figure that is laid out. Positions are in pixels unless they say otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from nsightlens.plots.roofline_roofs import FLAT, RIDGE, SLOPE, Row
from nsightlens.views.palette import COLOURS

Boxes = list[Bbox]
Xy = tuple[float, float]

_POINT = 7.0  # half of a mark and its edge, in points
_CLEAR = 6.0  # points between a number and a roof
_SIDES = ((9, 3), (9, -9), (-9, 5), (-9, -11), (0, 8), (0, -14), (17, -3), (-17, -3), (0, 17), (0, -23))  # in points
_ALONG = tuple(i / 16 for i in range(17))  # of a roof's visible part, from where its name is best
_RIDGES: tuple[tuple[Xy, Literal["left", "center", "right"]], ...] = (  # in points off the ridge
    ((4, -9), "left"), ((4, -7.5), "left"), ((-4, 3), "right"), ((-7, -4), "right"), ((-8, -6), "right"), ((4, 4), "left"),
    ((0, 8), "center"), ((0, -14), "center"),
    ((12, -14), "left"), ((-12, 10), "right"))


class _Anchor(NamedTuple):
    """A place for a text: where it is anchored (data), how far off that (points), and its alignment."""

    at: Xy
    off: Xy
    align: Literal["left", "center", "right"]
    above: Literal["bottom", "top"]


def settle(axes: Axes, rows: Sequence[Row]) -> None:
    """Put the names of roofs and the numbers of ridges where they cover neither points nor each other.

    A number for which there is no such place is not shown: its ridge is where the roofs meet all the same.
    """
    taken = _points(axes, rows)
    if legend := axes.get_legend():
        taken.append(legend.get_window_extent())
    for kind in (FLAT, SLOPE, RIDGE):
        for text in axes.texts:
            if isinstance(text, Annotation) and text.get_gid() == kind:
                taken += _settled(axes, text, taken)


def _settled(axes: Axes, text: Annotation, taken: Boxes) -> Boxes:
    """Move a text to the first place where it covers nothing, else the least; return what it covers now."""
    kind = text.get_gid()
    angle = _angle(axes) if kind == SLOPE else 0.0
    places = {FLAT: _on_flat, SLOPE: _on_slope, RIDGE: _at_ridge}[str(kind)](axes, text)
    best: tuple[int, _Anchor, Boxes] | None = None
    for place in places:
        boxes = _boxes(axes, text, place, angle)
        outside = sum(not axes.bbox.contains(*corner) for box in (boxes[0], boxes[-1]) for corner in (box.min, box.max))
        cost = outside + sum(box.overlaps(other) for box in boxes for other in taken)
        if best is None or cost < best[0]:
            best = cost, place, boxes
        if cost == 0:
            break
    if best is None or (best[0] and kind == RIDGE):
        text.set_visible(False)
        return []
    _put(text, best[1])
    text.set_rotation(angle)
    return best[2]


def _put(text: Annotation, place: _Anchor) -> None:
    text.xy = place.at
    text.set_position(place.off)
    text.set_horizontalalignment(place.align)
    text.set_verticalalignment(place.above if text.get_gid() != RIDGE else "baseline")


def _boxes(axes: Axes, text: Annotation, place: _Anchor, angle: float) -> Boxes:
    """Return what a text would cover: one box, or a row of small ones where it is turned."""
    _put(text, place)
    text.set_rotation(0)
    box = text.get_window_extent()
    if not angle:
        return [box.padded(1.5)]
    x, y = axes.transData.transform(place.at)
    scale = axes.figure.dpi / 72
    rise, run = math.sin(math.radians(angle)), math.cos(math.radians(angle))
    start = (x + place.off[0] * scale, y + place.off[1] * scale)
    offset = box.height / 2 if place.above == "bottom" else -box.height / 2
    steps = max(2, round(box.width / (box.height or 1)) + 1)
    centres = [(start[0] + run * box.width * i / (steps - 1) - rise * offset, start[1] + rise * box.width * i / (steps - 1)
                + run * offset) for i in range(steps)]
    half = box.height / 2 + 1.5
    return [Bbox.from_extents(cx - half, cy - half, cx + half, cy + half) for cx, cy in centres]


def _angle(axes: Axes) -> float:
    """Return the angle of a memory roof, in degrees."""
    (x0, y0), (x1, y1) = axes.transData.transform([(1.0, 1.0), (10.0, 10.0)])
    return math.degrees(math.atan2(y1 - y0, x1 - x0))


def _between(low: float, high: float, share: float) -> float:
    return float(low * (high / low) ** share)


def _on_flat(axes: Axes, text: Annotation) -> Iterator[_Anchor]:
    """Yield places along a compute roof, from its right end: above it, and below."""
    y = text.xy[1]
    right = axes.get_xlim()[1]
    ends = [np.asarray(line.get_xydata()) for line in axes.lines if str(line.get_label()).startswith("_roof ")]
    left = min(float(line[0, 0]) for line in ends if line[0, 1] == line[-1, 1] == y)
    for share in _ALONG:
        at = (_between(right, left, share), y)
        yield _Anchor(at, (-4.0, 3.0), "right", "bottom")
        yield _Anchor(at, (-4.0, -4.0), "right", "top")


def _on_slope(axes: Axes, text: Annotation) -> Iterator[_Anchor]:
    """Yield places along a memory roof, from its lower end: above it, and below."""
    rate = text.xy[1] / text.xy[0]
    low = max(axes.get_xlim()[0], axes.get_ylim()[0] / rate) * 1.15
    high = min(axes.get_xlim()[1], axes.get_ylim()[1] / rate)
    for share in _ALONG[:13]:
        x = _between(low, high, share)
        yield _Anchor((x, rate * x), (0.0, 3.0), "left", "bottom")
        yield _Anchor((x, rate * x), (0.0, -3.0), "left", "top")


def _at_ridge(axes: Axes, text: Annotation) -> Iterator[_Anchor]:
    for off, align in _RIDGES:
        yield _Anchor((float(text.xy[0]), float(text.xy[1])), off, align, "bottom")


def _points(axes: Axes, rows: Sequence[Row]) -> Boxes:
    """Return the places of all marks: the points, and ncu's own beside them."""
    half = _POINT * axes.figure.dpi / 72
    return [Bbox.from_extents(x - half, y - half, x + half, y + half) for x, y in _pixels(axes, [*rows, *_own(rows)])]


def _own(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with the performance under ncu in place of the undisturbed one."""
    return [row | {"achieved_flop_per_s": row["ncu_achieved_flop_per_s"]} for row in rows if row.get("ncu_achieved_flop_per_s")]


def write_numbers(axes: Axes, series: Sequence[tuple[int, list[Row]]]) -> None:
    """Write the number of each series beside one of its points, where it covers the least."""
    scale = 72 / axes.figure.dpi
    rows = [row for _, members in series for row in members]
    boxes = [text.get_window_extent() for text in axes.texts if text.get_visible()]
    boxes += [legend.get_window_extent()] if (legend := axes.get_legend()) else []
    covered = [(box.x0 * scale - 6, box.y0 * scale - 4, box.x1 * scale + 6, box.y1 * scale + 4) for box in boxes]
    covered += [(x * scale - 9, y * scale - 7, x * scale + 9, y * scale + 7) for x, y in _pixels(axes, [*rows, *_own(rows)])]
    lines = [axes.transData.transform(line.get_xydata()) * scale for line in axes.lines
             if str(line.get_label()).startswith(("_roof", "_levels"))]
    for number, points in series:
        if not points:
            continue
        places = [(x * scale, y * scale, side, row) for row, (x, y) in zip(points, _pixels(axes, points), strict=True)
                  for side in _SIDES]
        x, y, side, row = min(places, key=lambda place: _cost(place[0] + place[2][0], place[1] + place[2][1] + 3, covered, lines))
        covered.append((x + side[0] - 9, y + side[1] - 4, x + side[0] + 9, y + side[1] + 10))
        axes.annotate(str(number + 1), (row["arithmetic_intensity"], row["achieved_flop_per_s"]), xytext=side,
                      textcoords="offset points", ha="center", fontsize=7, color=COLOURS[number % len(COLOURS)],
                      weight="bold", gid="number", zorder=5)


def _pixels(axes: Axes, rows: Sequence[Row]) -> list[Xy]:
    points = axes.transData.transform([(row["arithmetic_intensity"], row["achieved_flop_per_s"]) for row in rows])
    return [(float(x), float(y)) for x, y in points]


def _cost(x: float, y: float, covered: list[tuple[float, float, float, float]], lines: list[Any]) -> int:
    """Return how much a number at (x, y), in points, would cover: texts and points count more than roofs."""
    boxes = sum(x0 < x < x1 and y0 < y < y1 for x0, y0, x1, y1 in covered)
    return 3 * boxes + sum(_distance(x, y, line) < _CLEAR for line in lines)


def _distance(x: float, y: float, line: Any) -> float:
    """Return the distance of a point to the straight line between the ends of `line`."""
    (x0, y0), (x1, y1) = line[0], line[-1]
    length = math.dist((x0, y0), (x1, y1)) or 1.0
    share = min(1.0, max(0.0, ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length**2))
    return math.dist((x, y), (x0 + share * (x1 - x0), y0 + share * (y1 - y0)))
