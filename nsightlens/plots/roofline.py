"""Rows of roofline or true_roofline -> a roofline chart: log-log, roofs named, one series per configuration and precision."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FuncFormatter, NullFormatter

from nsightlens.errors import NsightlensError
from nsightlens.plots import roofline_roofs as roof_lines
from nsightlens.plots import roofline_times as times
from nsightlens.plots.frame import COLOURS, clean, settle, short
from nsightlens.plots.roofline_roofs import LEVELS, Row, Source, levels_of, precision_name

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LEVEL_MARKERS = {"dram": ("o", 9.0), "l2": ("s", 7.0), "l1": ("^", 5.0)}  # sizes nest, where a level filters nothing
_SIZE = 7.0
_RING = 5.0  # how much larger a ring is than what it surrounds
_SAME_PLACE = (0.013, 0.019)  # of the panel's width and height: nearer points hide each other
_CLEAR = 6.0  # points between a number and a roof
_NUMBERED_FROM = 7
_TWO_COLUMNS = 58  # characters that fit into half of a panel's width
_SIDES = ((9, 3), (9, -9), (-9, 5), (-9, -11), (0, 8), (0, -14), (17, -3), (-17, -3), (0, 17), (0, -23))  # in points
_LENGTH, _SHORTER = 60, 32  # characters of a kernel's name in the legend; shorter where shapes stand beside it
_WIDTH = 135  # characters of the note that fit into a panel's width

Key = tuple[Any, Any]


def roofline(table: pa.Table, *, roofs: Source = "ncu") -> Figure:
    """Return the chart of the plottable rows of `table`: y = work / duration, x = work / bytes.

    `table`: rows of the view `roofline`, or of `true_roofline`: then a bar shows the spread of the launches, and a thin arrow
    comes from where ncu's own duration puts the kernel (small and hollow).
    `roofs`: 'ncu' takes the peaks at the clock that ncu measured, where the report has them, else the datasheet's;
    'datasheet' the other way round. One panel per GPU. Raises NsightlensError where no row can be plotted.
    """
    rows = table.to_pylist()
    plottable, left_out = _one_definition_per_level([row for row in rows if row["plottable"]])
    if not plottable:
        reasons = Counter(str(row["not_plottable_reason"]) for row in rows).most_common(3)
        raise NsightlensError("no kernel can be plotted: " + ("; ".join(reason for reason, _ in reasons) or "there are no rows"))
    panels: dict[str, list[Row]] = {}
    for row in plottable:
        panels.setdefault(_title(row), []).append(row)
    labels = series_labels(plottable)
    columns = 2 if len(labels) >= _NUMBERED_FROM and max(map(len, labels.values())) <= _TWO_COLUMNS * len(panels) else 1
    figure = Figure(figsize=(7.2 * len(panels), 4.7 + 0.16 * (len(labels) / columns + 3)), layout="constrained")
    numbers = {key: number for number, key in enumerate(labels)}
    for axes, (title, members) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        axes.set_title(title, loc="left", fontsize=10)
        _draw_panel(axes, members, numbers, roofs)
    note = _note(rows, plottable, left_out, roofs)
    note += ("\nA hollow ring stands around others at its place." if _rings(figure) else "")
    stars = {_key(row) for row in plottable if times.is_from_shapes(row)}
    _legend(figure, labels, len(levels_of(plottable)) > 1, stars, note, columns)
    settle(figure)
    for axes, members in zip(figure.axes, panels.values(), strict=True):
        roof_lines.settle_labels(axes, [(row["arithmetic_intensity"], row["achieved_flop_per_s"]) for row in members])
        if len(labels) >= _NUMBERED_FROM:
            _write_numbers(axes, members, numbers)
    return figure


def _key(row: Row) -> Key:
    return row["configuration_id"], row["precision"]


def _title(row: Row) -> str:
    cc = f"compute capability {row['compute_capability']}" if row["compute_capability"] else ""
    if row["gpu"]:
        name = short(str(row["gpu"]))
    elif row["datasheet_gpu"]:
        name = f"{row['datasheet_gpu']} (as given)"
    else:
        name = "GPU not named in the report"
    simulated = "simulated capture" if row["simulated"] and "simulated" not in name.lower() else ""
    return "Roofline: " + clean(", ".join(filter(None, (name, cc, simulated))))


def _one_definition_per_level(rows: list[Row]) -> tuple[list[Row], int]:
    """Return the rows whose level has its commonest definition, and how many were left out: definitions never mix."""
    counted = [row for row in rows if not times.is_from_shapes(row)]  # the others are drawn as what they are
    common = {level: Counter(row["level_definition"] for row in counted if row["level"] == level).most_common(1)[0][0]
              for level in levels_of(counted)}
    kept = [row for row in rows if times.is_from_shapes(row) or row["level_definition"] == common[row["level"]]]
    return kept, len(rows) - len(kept)


def _draw_panel(axes: Axes, rows: list[Row], numbers: dict[Key, int], preferred: Source) -> None:
    memory, compute = roof_lines.memory_roofs(rows, preferred), roof_lines.compute_roofs(rows, preferred)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ridges = [flat.greatest / slope.greatest for flat in compute for slope in memory]
    xs = [row["arithmetic_intensity"] for row in rows] + ridges
    ys = [row["achieved_flop_per_s"] for row in rows] + [roof.greatest for roof in compute] + times.heights(rows)
    axes.set_xlim(min(min(xs) / 4, max(xs) / 50), max(max(xs) * 12, max(ridges, default=0) * 40))
    axes.set_ylim(min(min(ys) / 4, max(ys) / 200), max(ys) * 3)
    roof_lines.draw(axes, memory, compute)
    _draw_points(axes, rows, numbers)
    axes.set_xlabel("Arithmetic intensity (operations per byte)")
    axes.set_ylabel("Performance (operations per second)")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


def _draw_points(axes: Axes, rows: list[Row], numbers: dict[Key, int]) -> None:
    levels = levels_of(rows)
    drawn: list[tuple[Key, Row]] = []
    for key in dict.fromkeys(_key(row) for row in rows):
        number = numbers[key]
        colour = COLOURS[number % len(COLOURS)]
        points = [row for level in LEVELS for row in rows if _key(row) == key and row["level"] == level]
        if len(points) > 1:
            axes.plot([row["arithmetic_intensity"] for row in points], [row["achieved_flop_per_s"] for row in points],
                      color=colour, linewidth=0.8, alpha=0.7, label="_levels", zorder=3)
        for row in points:
            marker, size = _LEVEL_MARKERS[row["level"]] if len(levels) > 1 else (_marker(number), _SIZE)
            marker, size = times.STAR if times.is_from_shapes(row) else (marker, size)
            under = _hidden_under(axes, row, drawn, key)
            times.draw(axes, row, colour, marker)
            style: dict[str, Any] = {"color": colour, "markeredgecolor": "white", "markeredgewidth": 0.7, "zorder": 4}
            if under:
                style = {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 1.3, "zorder": 4.5}
            axes.plot([row["arithmetic_intensity"]], [row["achieved_flop_per_s"]], linestyle="none", marker=marker,
                      markersize=size + _RING * under, gid=f"point {number + 1} {row['level']}", label="_point", **style)
            drawn.append((key, row))
    if len(levels) > 1:
        axes.legend(handles=[_handle(*_LEVEL_MARKERS[level], "0.4", f"bytes at {LEVELS[level]}") for level in levels],
                    loc="lower right", fontsize=7.5, framealpha=0.9)


def _marker(number: int) -> str:
    """Return a marker such that no colour comes twice with the same one within 42 series."""
    return MARKERS[(number % len(COLOURS) + number // len(COLOURS)) % len(MARKERS)]


def _hidden_under(axes: Axes, row: Row, drawn: list[tuple[Key, Row]], key: Key) -> int:
    """Return how many points of other series stand where this one would: it becomes a ring around them."""
    here = _places(axes, row)
    return len({other for other, point in drawn if other != key and math.dist(here, _places(axes, point)) < 1})


def _rings(figure: Figure) -> bool:
    """Return whether a point was drawn as a ring."""
    return any(line.get_markerfacecolor() == "none" for axes in figure.axes for line in axes.lines
               if line.get_label() == "_point")


def _places(axes: Axes, row: Row) -> tuple[float, float]:
    """Return where a point stands in its panel, in distances at which points hide each other."""
    x, y = axes.transLimits.transform(axes.transScale.transform((row["arithmetic_intensity"], row["achieved_flop_per_s"])))
    return float(x) / _SAME_PLACE[0], float(y) / _SAME_PLACE[1]


def _write_numbers(axes: Axes, rows: list[Row], numbers: dict[Key, int]) -> None:
    """Write the number of each series beside one of its points, where it covers the least; needs a figure laid out."""
    scale = 72 / axes.figure.dpi
    boxes = [text.get_window_extent() for text in axes.texts]
    boxes += [legend.get_window_extent()] if (legend := axes.get_legend()) else []
    covered = [(box.x0 * scale - 6, box.y0 * scale - 4, box.x1 * scale + 6, box.y1 * scale + 4) for box in boxes]
    beside = [row | {"achieved_flop_per_s": row["ncu_achieved_flop_per_s"]} for row in rows if row.get("ncu_achieved_flop_per_s")]
    covered += [(x * scale - 9, y * scale - 7, x * scale + 9, y * scale + 7) for x, y in _pixels(axes, rows + beside)]
    lines = [axes.transData.transform(line.get_xydata()) * scale for line in axes.lines
             if str(line.get_label()).startswith(("_roof", "_levels"))]
    for key, number in numbers.items():
        points = [row for row in rows if _key(row) == key]
        if not points:
            continue
        places = [(x * scale, y * scale, side, row) for row, (x, y) in zip(points, _pixels(axes, points), strict=True)
                  for side in _SIDES]
        x, y, side, row = min(places, key=lambda place: _cost(place[0] + place[2][0], place[1] + place[2][1] + 3, covered, lines))
        covered.append((x + side[0] - 9, y + side[1] - 4, x + side[0] + 9, y + side[1] + 10))
        axes.annotate(str(number + 1), (row["arithmetic_intensity"], row["achieved_flop_per_s"]), xytext=side,
                      textcoords="offset points", ha="center", fontsize=7, color=COLOURS[number % len(COLOURS)],
                      weight="bold", gid="number", zorder=5)


def _pixels(axes: Axes, rows: list[Row]) -> list[tuple[float, float]]:
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


def _legend(figure: Figure, labels: dict[Key, str], several_levels: bool, stars: set[Key], note: str, columns: int) -> None:
    handles = []
    for number, (key, text) in enumerate(labels.items()):
        numbered = f"{number + 1}  {text}" if len(labels) >= _NUMBERED_FROM else text
        marker, size = times.STAR if key in stars else ("o" if several_levels else _marker(number), _SIZE)
        handles.append(_handle(marker, size, COLOURS[number % len(COLOURS)], numbered))
    legend = figure.legend(handles=handles, loc="outside lower left", ncols=columns, fontsize=7.5, frameon=False,
                           alignment="left", handletextpad=0.3, columnspacing=1.2, title=note, title_fontsize=6.5)
    legend.get_title().set_color("0.35")


def _handle(marker: str, size: float, colour: str, text: str) -> Line2D:
    return Line2D([], [], linestyle="none", marker=marker, markersize=size, color=colour, markeredgecolor="white",
                  markeredgewidth=0.7, label=text)


def series_labels(rows: Iterable[Row]) -> dict[Key, str]:
    """Return a label per series (configuration and precision): short name, grid, precision, and what distinguishes equal ones."""
    first: dict[Key, Row] = {}
    for row in rows:
        first.setdefault(_key(row), row)
    several = [name for name in ("run", "rank") if len({row[name] for row in first.values()}) > 1]
    labels = {}
    for key, row in first.items():
        length = _SHORTER if times.is_from_shapes(row) else _LENGTH
        parts = [short(clean(row["short_name"] or row["name"]), length), _shape(row, "grid"), precision_name(row["precision"])]
        parts += ["from shapes"] if times.is_from_shapes(row) else []
        parts += [f"{name} {short(clean(str(row[name])), 30)}" for name in several if row[name] is not None]
        labels[key] = ", ".join(parts)
    for more in (times.shapes, _template, lambda row: f"block {_shape(row, 'block')}",
                 lambda row: f"clocks {row['clock_control']}"):
        counts = Counter(labels.values())
        labels = {key: f"{text}, {word}" if counts[text] > 1 and (word := more(first[key])) else text
                  for key, text in labels.items()}
    return labels


def _template(row: Row) -> str:
    """Return the template arguments, shortened: where kernels of one base name differ."""
    return short(clean(str(row["name"]).partition("<")[2] or str(row["name"])), 40)


def _shape(row: Row, what: str) -> str:
    return "×".join("?" if row[f"{what}_{axis}"] is None else str(row[f"{what}_{axis}"]) for axis in "xyz")


def _note(rows: list[Row], plottable: list[Row], left_out: int, preferred: Source) -> str:
    counted = [row for row in plottable if not times.is_from_shapes(row)]
    definitions = {row["level"]: row["level_definition"] for row in counted}
    lines = ["Operations and bytes of one launch over its duration under ncu."]
    if "time_tool" in plottable[0]:
        lines = times.note(plottable)
    if counted:
        lines[0] += f" Bytes counted: {'; '.join(f'{LEVELS[level]}, {definitions[level]}' for level in levels_of(counted))}."
    known = {roof.name for roof in roof_lines.compute_roofs(plottable, preferred) + roof_lines.memory_roofs(plottable, preferred)}
    wanted = [precision_name(row["precision"]) for row in plottable] + [LEVELS[level] for level in levels_of(plottable)]
    roofless = [name for name in dict.fromkeys(wanted) if name not in known]
    absent = len({row["configuration_id"] for row in rows} - {row["configuration_id"] for row in plottable})
    facts = [
        f"no roof is known for {', '.join(roofless)}" if roofless else "",
        f"{absent} of {len({row['configuration_id'] for row in rows})} kernels could not be plotted" if absent else "",
        f"{left_out} points left out, whose level counts other bytes" if left_out else "",
    ]
    text = "; ".join(filter(None, facts))
    lines += [text[0].upper() + text[1:] + "."] if text else []
    return "\n".join(part for line in lines for part in textwrap.wrap(clean(line), _WIDTH))
