"""A roofline chart: log-log, roofs named, one series per configuration and precision."""

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
from matplotlib.ticker import FuncFormatter, NullFormatter

from nsightlens.errors import NsightlensError
from nsightlens.names.kernel_names import labels as names_of
from nsightlens.plots import roofline_labels as placing
from nsightlens.plots import roofline_roofs as roof_lines
from nsightlens.plots import roofline_times as times
from nsightlens.plots.frame import Picture, clean, drawn_from_rows, resize, settle, short
from nsightlens.plots.roofline_roofs import LEVELS, Row, Source, levels_of, precision_name
from nsightlens.views.palette import COLOURS

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LEVEL_MARKERS = {"dram": ("o", 9.0), "l2": ("s", 7.0), "l1": ("^", 5.0)}  # sizes nest, where a level filters nothing
_SIZE = 7.0
_LARGER = 5.0  # a mark behind others at its place than these
_SAME_PLACE = (0.013, 0.019)  # of the panel's width and height: nearer points hide each other
_NUMBERED_FROM = 7
_TWO_COLUMNS = 58  # characters that fit into half of a panel's width
_LENGTH, _SHORTER = 60, 32  # characters of a kernel's name in the legend; shorter where shapes stand beside it
_MOST_CAUTIONS = 2
_PANEL, _ENTRY = 7.2, 0.13  # inches: a panel without a size that is asked for, an entry of a legend in a small one
_WIDTH = 135  # characters of the note that fit into a panel's width

Key = tuple[Any, Any]


@drawn_from_rows
def roofline(
    table: pa.Table, *, roofs: Source = "ncu", size: tuple[float, float] | None = None, title: str | None = None,
    notes: bool = False,
) -> Picture:
    """Return the chart of the plottable rows of `table`: y = work / duration, x = work / bytes.

    `table`: rows of the view `roofline`, whose durations are those under ncu, or of `true_roofline`, whose durations are
    undisturbed (store.view("true_roofline", time="nsys") or "kineto"): then a bar shows the spread of the launches, and a thin
    arrow comes from where ncu's own duration puts the kernel (small and pale).
    `roofs`: 'ncu' takes the peaks at the clock that ncu measured, where the report has them, else the datasheet's;
    'datasheet' the other way round. One panel per GPU. size: inches; 3.5 x 2.8 is a column of a paper. title: '' for none.
    notes: whether what the figure's .notes say (which times, which bytes, which roofs) is drawn below it. Where the size has no
    room for a legend, the numbers of the points are explained in .notes.
    Raises NsightlensError where no row can be plotted.
    """
    rows = table.to_pylist()
    plottable, left_out = _one_definition_per_level([row for row in rows if row["plottable"]])
    if not plottable:
        reasons = Counter(str(row["not_plottable_reason"]) for row in rows).most_common(3)
        raise NsightlensError("no kernel can be plotted: " + ("; ".join(reason for reason, _ in reasons) or (
            "there are no rows; where ncu counted nothing, true_roofline takes work from operator shapes")))
    panels: dict[str, list[Row]] = {}
    for row in plottable:
        panels.setdefault(_title(row), []).append(row)
    panels = {title: members for title, members in panels.items() if _has_roofs(members)}
    if not panels:
        raise NsightlensError("no roof is known for any of these kernels: " + "; ".join(
            dict.fromkeys(roof_lines.why_unknown(row) for row in plottable)))
    roofless = len(plottable) - sum(map(len, panels.values()))
    plottable = [row for members in panels.values() for row in members]
    width = size[0] / len(panels) if size else _PANEL
    labels = series_labels(plottable, min(1.0, 1.3 * width / _PANEL))
    columns = 2 if len(labels) >= _NUMBERED_FROM and max(map(len, labels.values())) <= _TWO_COLUMNS * len(panels) else 1
    figure = Picture(figsize=(_PANEL * len(panels), 4.7 + 0.16 * (len(labels) / columns + 3 * notes)), layout="constrained")
    numbers = {key: number for number, key in enumerate(labels)}
    for axes, (name, members) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        axes.set_title(name if title is None else title, loc="left", fontsize=10)
        _draw_panel(axes, members, numbers, roofs)
    behind = "\nA larger mark lies behind others at its place." if _covered(figure) else ""
    figure.notes = _note(rows, panels.values(), left_out, roofless) + behind
    stars = {_key(row) for row in plottable if times.is_from_shapes(row)}
    hollow = {_key(row) for members in panels.values() for row in members if _unknown_roofs(row, members)}
    if size and _ENTRY * len(labels) / columns > size[1] / 2 and len(labels) >= _NUMBERED_FROM:
        figure.notes += "".join(f"\n{number}  {label}" for number, label in enumerate(labels.values(), 1))
    else:
        _legend(figure, labels, len(levels_of(plottable)) > 1, (stars, hollow), figure.notes if notes else "", columns)
    if size:
        resize(figure, size)
    settle(figure)
    for axes, members in zip(figure.axes, panels.values(), strict=True):
        placing.settle(axes, members)
        if len(labels) >= _NUMBERED_FROM:
            series = [(number, [row for row in members if _key(row) == key]) for key, number in numbers.items()]
            placing.write_numbers(axes, series)
    return figure


def _has_roofs(rows: list[Row]) -> bool:
    """Return whether any roof of these rows is known."""
    return bool(roof_lines.memory_roofs(rows, "ncu") or roof_lines.compute_roofs(rows, "ncu"))


def _unknown_roofs(row: Row, members: list[Row]) -> list[str]:
    """Return the names of the roofs of a row, compute and memory, that none of the rows beside it in its panel knows."""
    known = {roof.name for roof in roof_lines.compute_roofs(members, "ncu") + roof_lines.memory_roofs(members, "ncu")}
    return [name for name in (precision_name(row["precision"]), LEVELS[row["level"]]) if name not in known]


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
    factor, prefix = (1e12, "T") if max(ys) >= 1e12 else (1e9, "G")
    unit = "OP" if any(row["precision"].startswith(("int", "tensor_int", "tensor_uint")) for row in rows) else "FLOP"
    axes.set_xlabel(f"Arithmetic intensity ({unit}/byte)")
    axes.set_ylabel(f"Performance ({prefix}{unit}/s)")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / factor:g}"))
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
            style: dict[str, Any] = {"color": colour, "markeredgecolor": "white", "markeredgewidth": 0.7}
            if _unknown_roofs(row, rows):
                style = {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 1.3}
            axes.plot([row["arithmetic_intensity"]], [row["achieved_flop_per_s"]], linestyle="none", marker=marker,
                      markersize=size + _LARGER * under, zorder=3.4 - under / 100 if under else 4, label="_point",
                      gid=f"point {number + 1} {row['level']}", **style)
            drawn.append((key, row))
    if len(levels) > 1:
        axes.legend(handles=[_handle(*_LEVEL_MARKERS[level], "0.4", f"bytes at {LEVELS[level]}") for level in levels],
                    loc="lower right", fontsize=7.5, framealpha=0.9)


def _marker(number: int) -> str:
    """Return a marker such that no colour comes twice with the same one within 42 series."""
    return MARKERS[(number % len(COLOURS) + number // len(COLOURS)) % len(MARKERS)]


def _hidden_under(axes: Axes, row: Row, drawn: list[tuple[Key, Row]], key: Key) -> int:
    """Return how many points of other series stand where this one would: it lies behind them, and is larger."""
    here = _places(axes, row)
    return len({other for other, point in drawn if other != key and math.dist(here, _places(axes, point)) < 1})


def _covered(figure: Figure) -> bool:
    """Return whether a point was drawn behind others."""
    return any(line.get_zorder() < 4 for axes in figure.axes for line in axes.lines if line.get_label() == "_point")


def _places(axes: Axes, row: Row) -> tuple[float, float]:
    """Return where a point stands in its panel, in distances at which points hide each other."""
    x, y = axes.transLimits.transform(axes.transScale.transform((row["arithmetic_intensity"], row["achieved_flop_per_s"])))
    return float(x) / _SAME_PLACE[0], float(y) / _SAME_PLACE[1]


def _legend(figure: Figure, labels: dict[Key, str], several_levels: bool, marked: tuple[set[Key], set[Key]], note: str,
            columns: int) -> None:
    """Write the legend. marked: the series whose work is from shapes, and those drawn hollow."""
    stars, hollow = marked
    handles = []
    for number, (key, text) in enumerate(labels.items()):
        numbered = f"{number + 1}  {text}" if len(labels) >= _NUMBERED_FROM else text
        marker, size = times.STAR if key in stars else ("o" if several_levels else _marker(number), _SIZE)
        handles.append(_handle(marker, size, COLOURS[number % len(COLOURS)], numbered))
        if key in hollow:
            handles[-1].set(markerfacecolor="none", markeredgecolor=COLOURS[number % len(COLOURS)], markeredgewidth=1.3)
    legend = figure.legend(handles=handles, loc="outside lower left", ncols=columns, fontsize=7.5, frameon=False,
                           alignment="left", handletextpad=0.3, columnspacing=1.2, title=note or None, title_fontsize=6.5)
    legend.get_title().set_color("0.35")


def _handle(marker: str, size: float, colour: str, text: str) -> Line2D:
    return Line2D([], [], linestyle="none", marker=marker, markersize=size, color=colour, markeredgecolor="white",
                  markeredgewidth=0.7, label=text)


def series_labels(rows: Iterable[Row], room: float = 1.0) -> dict[Key, str]:
    """Return a label per series (configuration and precision): short name, grid, precision, and what distinguishes equal ones.

    room: for names, of the room that a panel of full width has.
    """
    first: dict[Key, Row] = {}
    for row in rows:
        first.setdefault(_key(row), row)
    several = [name for name in ("run", "rank") if len({row[name] for row in first.values()}) > 1]
    names = {length: names_of({row["name"] for row in first.values()}, round(room * length)) for length in (_LENGTH, _SHORTER)}
    labels = {}
    for key, row in first.items():
        name = names[_SHORTER if times.is_from_shapes(row) else _LENGTH][row["name"]]
        parts = [clean(name), _shape(row, "grid"), precision_name(row["precision"])]
        parts += ["from shapes"] if times.is_from_shapes(row) else []
        parts += [f"{name} {short(clean(str(row[name])), 30)}" for name in several if row[name] is not None]
        labels[key] = ", ".join(parts)
    for more in (times.shapes, lambda row: f"block {_shape(row, 'block')}", lambda row: f"clocks {row['clock_control']}",
                 lambda row: f"configuration {row['configuration_id']}"):
        counts = Counter(labels.values())
        labels = {key: f"{text}, {word}" if counts[text] > 1 and (word := more(first[key])) else text
                  for key, text in labels.items()}
    return labels


def _shape(row: Row, what: str) -> str:
    return "×".join("?" if row[f"{what}_{axis}"] is None else str(row[f"{what}_{axis}"]) for axis in "xyz")


def _note(rows: list[Row], panels: Iterable[list[Row]], left_out: int, roofless: int) -> str:
    plottable = [row for members in panels for row in members]
    counted = [row for row in plottable if not times.is_from_shapes(row)]
    definitions = {row["level"]: row["level_definition"] for row in counted}
    lines = ["Operations and bytes of one launch over its duration under ncu."]
    if any(row.get("duration_ns", 0) is None for row in plottable):
        lines = ["Operations and bytes per second as ncu gives them, over the duration of a launch where it is known."]
    if "time_tool" in plottable[0]:
        lines = times.note(plottable)
    if counted:
        lines[0] += f" Bytes counted: {'; '.join(f'{LEVELS[level]}, {definitions[level]}' for level in levels_of(counted))}."
    if given := dict.fromkeys(str(row["short_name"]) for row in plottable if row.get("work_definition") == "given"):
        lines.append(f"Operations of {', '.join(given)}: as given.")
    hollow: dict[str, dict[str, None]] = {}
    for members in panels:
        for row in members:
            hollow.setdefault(roof_lines.why_unknown(row), {}).update(dict.fromkeys(_unknown_roofs(row, members)))
    lines += [f"Hollow: no roof is known for {', '.join(names)} ({why})." for why, names in hollow.items() if names]
    lines += [f"Caution: {text}." for text in dict.fromkeys(row.get("warning") for row in counted) if text][:_MOST_CAUTIONS]
    absent = len({row["configuration_id"] for row in rows} - {row["configuration_id"] for row in plottable})
    facts = [
        f"{absent} of {len({row['configuration_id'] for row in rows})} kernels could not be plotted" if absent else "",
        f"{left_out} points left out: their level counts other bytes" if left_out else "",
        f"{roofless} points left out: no roof is known for their GPU" if roofless else "",
    ]
    text = "; ".join(filter(None, facts))
    lines += [text[0].upper() + text[1:] + "."] if text else []
    return "\n".join(part for line in lines for part in textwrap.wrap(clean(line), _WIDTH))
