"""The roofs of a roofline chart: found in the rows of the view `roofline`, and drawn with their names and ridge points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.axes import Axes

Source = Literal["given", "ncu", "datasheet"]
Row = dict[str, Any]

_COLUMNS: dict[Source, tuple[str, str | None]] = {
    "given": ("given_peak", None), "ncu": ("peak", "roof_clock_hz"), "datasheet": ("datasheet_peak", "datasheet_clock_hz")}
"""Of each source: how the names of its peaks begin, and the column of their clock where it is known."""
LEVELS = {"dram": "DRAM", "l2": "L2", "l1": "L1"}
SLOPE, FLAT, RIDGE = "slope", "flat", "ridge"  # marks of the labels of memory roofs, compute roofs and where they meet
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SAME = 1.01  # roofs within one per cent are drawn as one line


@dataclass(frozen=True, slots=True)
class Roof:
    """One roof: its name, least and greatest value over the rows, their unit, their clocks in Hz, and who states them."""

    name: str
    least: float
    greatest: float
    unit: str
    clocks: tuple[float, ...]
    source: Source

    @property
    def label(self) -> str:
        """Return what is written at the roof: 'DRAM 1.76 TB/s', 'BF16 tensor 312 TFLOP/s @ 1.41 GHz (datasheet)'."""
        text = f"{self.name} {quantity(self.least, self.greatest, self.unit)}"
        if self.clocks:
            text += f" @ {quantity(self.clocks[0], self.clocks[-1], 'Hz')}"
        return text + ("" if self.source == "ncu" else f" ({self.source})")


def memory_roofs(rows: Sequence[Row], preferred: Source) -> list[Roof]:
    """Return the memory roofs of the levels among `rows`, slowest first; levels whose peak no source knows have none."""
    found = [_roof([row for row in rows if row["level"] == level], LEVELS[level], "bytes", "B/s", preferred)
             for level in levels_of(rows)]
    return sorted((roof for roof in found if roof), key=lambda roof: roof.greatest)


def compute_roofs(rows: Sequence[Row], preferred: Source) -> list[Roof]:
    """Return the compute roofs of the precisions among `rows`, lowest first."""
    found = []
    for name in dict.fromkeys(precision_name(row["precision"]) for row in rows):
        unit = "OP/s" if name.startswith("INT") else "FLOP/s"
        found.append(_roof([row for row in rows if precision_name(row["precision"]) == name], name, "flop", unit, preferred))
    return sorted((roof for roof in found if roof), key=lambda roof: roof.greatest)


def levels_of(rows: Iterable[Row]) -> list[str]:
    """Return the memory levels among the rows, outermost first."""
    present = {row["level"] for row in rows}
    return [level for level in LEVELS if level in present]


def precision_name(precision: str) -> str:
    """Return a precision as a chart names it: 'FP32', 'BF16 tensor', 'FP16 tensor (FP16 sum)', 'INT8 tensor, sparse'."""
    if not precision.startswith("tensor_"):
        return precision.upper()
    path = precision.removeprefix("tensor_")
    source, _, target = path.removesuffix("_sparsity_on").partition("_dst_")
    text = source.replace("_", "/").upper() + " tensor"
    if target and target != "fp32":
        text += f" ({target.upper()} sum)"
    return text + (", sparse" if path.endswith("_sparsity_on") else "")


def quantity(least: float, greatest: float, unit: str) -> str:
    """Return a value, or the range of two, with three digits and a decimal prefix: '1.76 TB/s', '2.01–2.41 GHz'."""
    scale, prefix = next((pair for pair in _PREFIXES if greatest >= pair[0]), (1.0, ""))
    low, high = _digits(least / scale), _digits(greatest / scale)
    return f"{high} {prefix}{unit}" if low == high else f"{low}–{high} {prefix}{unit}"


def _digits(value: float) -> str:
    return f"{value:#.3g}".rstrip(".")


def _roof(rows: Sequence[Row], name: str, kind: str, unit: str, preferred: Source) -> Roof | None:
    other: Source = "datasheet" if preferred == "ncu" else "ncu"
    order: tuple[Source, ...] = ("given", preferred, other)
    for source in order:
        peak, clock = f"{_COLUMNS[source][0]}_{kind}_per_s", _COLUMNS[source][1]
        values = [float(row[peak]) for row in rows if row.get(peak)]
        if values:
            clocks = {float(row[clock]) for row in rows if kind == "flop" and clock and row[clock]}
            return Roof(name, min(values), max(values), unit, tuple(sorted(clocks)), source)
    return None


def draw(axes: Axes, memory: Sequence[Roof], compute: Sequence[Roof]) -> None:
    """Draw the roofs into axes whose limits are set: slopes up to the highest compute roof, flats from the fastest memory."""
    left, right = axes.get_xlim()
    top = compute[-1].greatest if compute else math.inf
    for roof in memory:
        xs = [left, min(top / roof.greatest, right)]
        _line(axes, roof, xs, [roof.least * x for x in xs], [roof.greatest * x for x in xs])
        start = max(left, axes.get_ylim()[0] / roof.greatest) * 1.15
        axes.annotate(roof.label, (start, roof.greatest * start), xytext=(0, 3), textcoords="offset points", fontsize=8,
                      rotation_mode="anchor", gid=SLOPE)
    for roof in compute:
        xs = [roof.greatest / memory[-1].greatest if memory else left, right]
        _line(axes, roof, xs, [roof.least] * 2, [roof.greatest] * 2)
        axes.annotate(roof.label, (right, roof.greatest), xytext=(-4, 4), textcoords="offset points", fontsize=8, ha="right",
                      gid=FLAT, bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5})
    for slope in memory:
        for flat in compute:
            _ridge(axes, flat.greatest / slope.greatest, flat.greatest)


def why_unknown(row: Row) -> str:
    """Return why a row has no roof, and how to get one."""
    if row["datasheet_gpu"]:
        return f"neither ncu's report nor the datasheet of {row['datasheet_gpu']} has it"
    if row["gpu"]:
        return f"no datasheet for {row['gpu']}: --gpu NAME --force-gpu takes another's"
    return "the report does not name its GPU: --gpu NAME"


def _line(axes: Axes, roof: Roof, xs: list[float], low: list[float], high: list[float]) -> None:
    style = "-" if roof.source == "ncu" else (0, (5, 2))
    axes.plot(xs, high, color="black", linewidth=1.3, linestyle=style, label=f"_roof {roof.name}", zorder=2)
    if roof.greatest > _SAME * roof.least:
        axes.fill_between(xs, low, high, color="0.55", alpha=0.35, linewidth=0, zorder=1)


def _ridge(axes: Axes, x: float, y: float) -> None:
    if x >= axes.get_xlim()[1]:
        return
    axes.plot([x], [y], marker="o", markersize=3, color="black", linestyle="none",
              label="_ridge", zorder=3)
    axes.annotate(f"{x:.3g}", (x, y), xytext=(4, -9), textcoords="offset points", fontsize=7, color="0.3", gid=RIDGE)
