"""A table as text for people: one line a row, no number ever cut, as many columns as the terminal has room for."""

from __future__ import annotations

import math
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nsightlens.names.distinct import shortened
from nsightlens.names.kernel_names import is_launch, labels
from nsightlens.terminal.colour import painted
from nsightlens.terminal.printable import LAYOUT, printable
from nsightlens.terminal.wrapping import printable_text, wrapped
from nsightlens.views.figures import MISSING, counted, duration, is_date, moment, rate, size

if TYPE_CHECKING:
    from nsightlens.terminal.text import Text

GAP = "   "
ROWS, WIDTH = 200, 120
_UNITS = ("_ns", "_bytes")
_RATES = {"bytes_per_s": "B", "flop_per_s": "FLOP"}
_NAME_WIDTH = 72
_NARROW_NAME = 20
_WORTH_A_LINE = 3
_NAMED = 12
_KERNELS = ("name", "kernel")
"""Columns of long names that are asked for: before one is cut below a third of the width, a figure goes."""
_OF_KERNELS = ("kernel_key", "family")
"""A table of no view with one of these columns is of kernels."""
_KINDS = ("kind", "kernel_type", "category")
_KERNEL_KINDS = ("kernel", "compute", "communication")
"""Where a column says of which kind each row is: those of kernels."""
_PROSE = ("message", "reason", "problem", "advice", "what", "why", "against", "why_not", "more")
_VERDICTS = {"verdict": 24}
"""Columns that are decisive, and up to which width they are not cut."""
_KEYS = ("run", "tool", "rank", "path", "view", "rule", "who", "name", "kernel", "code", "grid", "block", "level", "precision",
         "severity")
_TELLING = ("run", "tool", "rank", "level", "precision")
"""Keys of whose rows it is, and of which of several points of a kernel: rows that differ in them alone would look the same."""
_SETTINGS = ("grid", "block", "level", "precision")
_IDS = ("_id", "window_index")
_PLAIN = ("_id", "epoch_ns", "modified_ns", "address", "pid", "thread", "step")
_MOMENTS = ("start_ns", "end_ns", "at_ns", "epoch_ns", "modified_ns", "first_ns")
"""Points in time: beside others, every digit counts."""


@dataclass(slots=True)
class Column:
    """One printed column: its header, its cells, and how it may be made narrower.

    weight: on a page, the least go first where room is short. text: set to the left. flexible: may be cut, to `shortest`.
    kernels: for cells that are names of kernels, these in full: a name is shown as a label, at every width; None for other cells.
    """

    name: str
    cells: list[str]
    weight: int = 1
    text: bool = False
    flexible: bool = False
    shortest: int = 18
    width: int = 0
    shown_as: str = ""
    folded: bool = False
    kernels: Sequence[str | None] = ()

    def __post_init__(self) -> None:
        """Show names of kernels as labels from the beginning: a column is as wide as they are."""
        self.label(_NAME_WIDTH)

    def heads(self) -> list[str]:
        """Return the lines of its header: one, or, folded, two of about the same length."""
        name = self.shown_as or self.name
        breaks = [place for place, letter in enumerate(name) if letter == "_"] if self.folded else []
        if not breaks or len(name) <= max(map(len, self.cells), default=0) + _WORTH_A_LINE:
            return [name]
        at = min(breaks, key=lambda place: (max(place, len(name) - place), place))
        return [name[:at], name[at:]]

    def natural(self) -> int:
        """Return the width that shows everything."""
        return max(map(len, [*self.heads(), *self.cells]))

    def least(self) -> int:
        """Return the width below which the column says nothing: numbers and short texts cannot shrink."""
        return min(self.natural(), self.shortest) if self.flexible else self.natural()

    def fit(self) -> None:
        """Shorten the cells to the column's width; cells that differ stay different."""
        self.label(self.width)
        shown = shortened(self.cells, self.width)
        self.cells = [shown[cell] for cell in self.cells]

    def label(self, longest: int) -> None:
        """Put labels of at most `longest` characters in the place of names of kernels."""
        if self.kernels:
            found = labels({name for name in self.kernels if name is not None}, longest)
            self.cells = [cell if name is None else found[name] for name, cell in zip(self.kernels, self.cells, strict=True)]

    def placed(self, text: str) -> str:
        """Return a text at the column's width."""
        return text.ljust(self.width) if self.text else text.rjust(self.width)


@dataclass(frozen=True, slots=True)
class Style:
    """How a table is printed. width: what it must fit in (None: no limit). wide: nothing is shortened or left out.

    units: times and sizes have the unit that people read them in, and columns of times no suffix. first: the columns that are
    left out last. rows: how many are shown. of: how many there are in all, those that were never here included. colour: words
    that ask for attention have one, and nothing else in the table can steer a terminal. sums: columns that are the sum of others.
    rest: how to see what is left out. kernels: the columns that hold names of kernels, where it is known. notes: lines for below
    the table. texts: cells of prose with commands in them -> the sentences that they are.
    """

    width: int | None = None
    wide: bool = False
    units: bool = False
    first: Sequence[str] = ()
    rows: int = ROWS
    of: int = 0
    colour: bool = False
    sums: Sequence[tuple[str, Sequence[str]]] = ()
    rest: str = "--wide, or --format csv"
    notes: Sequence[str] = ()
    kernels: Sequence[str] = ()
    texts: Mapping[str, Text] = field(default_factory=dict)


def ids_last(names: Sequence[str]) -> list[str]:
    """Return the columns as people read them: those that only tell rows apart at the end."""
    return sorted(names, key=lambda name: name.endswith(_IDS))


def output_width() -> int:
    """Return the columns that any output may take: COLUMNS, else the terminal's, else 120."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH


def render(names: Sequence[str], rows: Sequence[Sequence[object]], is_text: Sequence[bool], style: Style = Style()) -> str:
    """Return the rows under their names.

    Where they do not fit, keys that say the same in every row go into a line above, names are cut in their middle, and
    columns are left out: ids first, then figures from the right; a last line says what is missing and how to see it.
    """
    width = None if style.wide else style.width
    shown = rows if width is None else rows[: style.rows]
    columns = [_column(name, [row[i] for row in shown], is_text[i], style) for i, name in enumerate(names)]
    if style.colour:
        names = [printable(name, LAYOUT) for name in names]
        for name, column in zip(names, columns, strict=True):
            column.name, column.cells = name, [printable(cell, LAYOUT) for cell in column.cells]
        texts = {printable(cell, LAYOUT): printable_text(text, LAYOUT) for cell, text in style.texts.items()}
        style = replace(style, texts=texts)
    if not style.wide:
        _label_kernels(names, shown, columns, style)
    if style.units:
        _read_in_units(names, columns)
    every, above = columns, list[Column]()
    if width is not None:
        for column in columns:
            least = _VERDICTS.get(column.name, _NARROW_NAME)
            column.shortest = max(least, width // 3) if column.name in _KERNELS else least
        columns, above = _lift(columns, width)
        columns = _with_rest(columns, dict(zip(names, zip(*shown, strict=True), strict=True)) if shown else {}, width, style)
    left_out = [c for c in every if c.name not in {kept.name for kept in (*columns, *above)}]
    for column in columns:
        column.width = column.width or column.natural()
        if column.name not in _PROSE:
            column.fit()
    lines = [*_header(columns), "─" * _total(columns)]
    for i in range(len(shown)):
        lines.extend(_row(columns, i, style))
    if not rows:
        lines.append("(no rows)")
    alike = _alike(above, width or WIDTH)
    missing = _missing(left_out, max(len(rows), style.of) - len(shown), style.rest)
    below = [line for text in (*missing, *(f"({note})" for note in style.notes))
             for line in wrapped(text, width or WIDTH, indent=" ")]
    return "\n".join([*alike, *lines, *below]) + "\n"


def _label_kernels(names: Sequence[str], rows: Sequence[Sequence[object]], columns: Sequence[Column], style: Style) -> None:
    """Let names of kernels be labels: those of columns that hold them, and items that have a launch configuration behind them."""
    of_kernels = {*_KERNELS, "kernel_key"} if set(names) & {*_OF_KERNELS} else set()
    kind = next((names.index(name) for name in _KINDS if name in names), None)
    here = [kind is None or row[kind] in _KERNEL_KINDS for row in rows]
    for at, column in enumerate(columns):
        if not column.text:
            continue
        known = names[at] in (style.kernels or of_kernels)
        values = [row[at] for row in rows]
        column.kernels = [value if isinstance(value, str) and ((known and is_kernel) or is_launch(value)) else None
                          for value, is_kernel in zip(values, here, strict=True)]
        if any(column.kernels):
            column.label(_NAME_WIDTH)


def _with_rest(columns: list[Column], values: Mapping[str, Sequence[Any]], width: int, style: Style) -> list[Column]:
    """Return the columns that fit; where parts of a total have no room, the column `rest` has their sum: parts add up."""
    kept = _fit(columns, width, style.first)
    for total, parts in style.sums:
        left_out: list[str] = []
        while values and total in (there := {c.name for c in kept}) and len(there.intersection(parts)) > 1:
            more = [part for part in parts if part not in there and part not in left_out]
            if not more:
                break
            left_out += more
            if len(left_out) == 1:
                kept = _fit(columns, width, (*left_out, *style.first))
                continue
            sums = [None if None in row else sum(row) for row in zip(*(values[part] for part in left_out), strict=True)]
            if not any(value is not None for value in sums):
                break
            others = [c for c in columns if c.name not in left_out]
            at = 1 + max(place for place, c in enumerate(others) if c.name in parts)
            rest = _column(f"rest_{total.rpartition('_')[2]}", sums, is_text=False, style=style)
            rest.shown_as = "rest"
            kept = _fit([*others[:at], rest, *others[at:]], width, (rest.name, *style.first))
    return kept


def _column(name: str, values: list[object], is_text: bool, style: Style) -> Column:
    if style.units and name.endswith(_UNITS) and not name.endswith(_MOMENTS):
        read = duration if name.endswith("_ns") else size
        return Column(name, [read(v) if isinstance(v, (int, float)) else MISSING for v in values])
    if style.units and name.endswith(_MOMENTS) and any(map(is_date, values)) and all(v is None or is_date(v) for v in values):
        return Column(name, [moment(v) if isinstance(v, int) else MISSING for v in values])
    per_second = next((unit for ending, unit in _RATES.items() if name.endswith(ending)), "") if style.units else ""
    if per_second:
        return Column(name, [rate(v, per_second) if isinstance(v, (int, float)) else MISSING for v in values])
    decimals = _decimals(values)
    if decimals is None and name.endswith("_pct"):
        decimals = 2
    commas = not name.endswith(_PLAIN)
    cells = [_cell(value, decimals, commas) for value in values]
    if is_text:
        longest = max(map(len, cells), default=0)
        shown = shortened(cells, longest if style.wide or name in _PROSE else min(longest, _NAME_WIDTH))
        cells = [shown[cell] for cell in cells]
    return Column(name, cells, text=is_text, flexible=is_text, shortest=_NARROW_NAME)


def _read_in_units(names: Sequence[str], columns: Sequence[Column]) -> None:
    """Let headers go without the unit that their cells have: total_ns is total, step_ns beside step is step time, and
    achieved_flop_per_s is achieved, or achieved_flop beside achieved_bytes_per_s."""
    short = {name: _without_unit(name) for name in names}
    for name, column in zip(names, columns, strict=True):
        taken = [*names, *(other for key, other in short.items() if key != name)]
        if name.endswith("_ns") and not name.endswith(_MOMENTS):
            column.shown_as = f"{short[name]} time" if short[name] in names else short[name]
        elif short[name] != name and not name.endswith("_ns"):
            column.shown_as = name.removesuffix("_per_s") if short[name] in taken else short[name]


def _without_unit(name: str) -> str:
    rate_of = next((ending for ending in _RATES if name.endswith(f"_{ending}")), None)
    return name.removesuffix(f"_{rate_of}") if rate_of else name.removesuffix("_ns")


def _lift(columns: list[Column], width: int) -> tuple[list[Column], list[Column]]:
    """Take the key columns that say the same in every row out of a table that is too wide, and those that say nothing.

    Return what stays, and what every row has in common: ids are of no use there.
    """
    if _total(columns) <= width:
        return columns, []
    keys = [c for c in columns if (c.text or c.name in _KEYS or c.name.endswith(_IDS)) and c.name not in _PROSE]
    same = [c for c in keys if len(c.cells) > 1 and len(set(c.cells)) == 1]
    same += [c for c in columns if c not in keys and _has_no_value(c)]
    return [c for c in columns if c not in same], [c for c in same if c.cells[0] != MISSING and not c.name.endswith(_IDS)]


def _has_no_value(column: Column) -> bool:
    return set(column.cells) == {MISSING}


def _total(columns: list[Column]) -> int:
    return sum(c.width or c.natural() for c in columns) + len(GAP) * (len(columns) - 1)


def _fit(columns: list[Column], width: int, first: Sequence[str]) -> list[Column]:
    """Return the columns that fit, with their widths; long headers take two lines where more columns fit then."""
    kept = _kept(columns, width, first)
    if len(kept) == len(columns):
        return kept
    for column in columns:
        column.folded = True
    more = _kept(columns, width, first)
    if len(more) > len(kept):
        return more
    for column in columns:
        column.folded = False
    return _kept(columns, width, first)


def _kept(columns: list[Column], width: int, first: Sequence[str]) -> list[Column]:
    """Return the columns that fit, with their widths: first names shrink, then columns go from the right, keys last, and after
    them those that are asked for first, the last of these first."""
    kept = list(columns)
    while kept:
        for column in kept:
            column.width = column.least()
        spare = width - _total(kept)
        if spare >= 0:
            for column in sorted((c for c in kept if c.text), key=lambda c: c.natural()):
                grown = min(column.natural(), column.width + spare)
                spare -= grown - column.width
                column.width = grown
            return kept
        dispensable = _dispensable(kept, first)
        if dispensable is None:
            kept[0].width = width
            return kept
        kept.remove(dispensable)
    return kept


def _dispensable(kept: list[Column], first: Sequence[str]) -> Column | None:
    """Return the column to drop next: ids that distinguish no rows, figures that are the same in all rows, or as in a column
    before them, other figures from the right, keys that distinguish no rows before the last figures, then the other keys; None
    at the last. Keys that are needed to tell rows apart stay with the columns that are asked for first."""
    ids = [c for c in kept if c.name.endswith(_IDS)]
    free = [c for c in ids if _distinguishes_nothing(c, kept)]
    keys = [c for c in kept[1:] if c.name in _SETTINGS and _distinguishes_nothing(c, kept)]
    figures = [c for c in kept if c.name not in (*_KEYS, *_PROSE) and c not in ids]
    plain = [c for c in figures[1:] if not c.name.endswith("_pct")]  # shares are short and say most
    alike = [c for c in figures[1:] if len(c.cells) > 1 and len(set(c.cells)) == 1 and not c.name.endswith("_pct")]
    copies = [c for c in figures[1:] if any(c.cells == other.cells for other in figures[: figures.index(c)])]
    choices = (free, alike, copies, plain, keys, figures[1:], ids, figures, kept[1:])
    telling = [c for c in kept if first and c.name in _TELLING and not _distinguishes_nothing(c, kept)]
    asked = [c for c in kept if c.name in first or c in telling]
    others = ([column for column in candidates if column not in asked] for candidates in (*choices, kept))
    wanted = sorted((c for c in asked if c not in telling and c not in alike), key=lambda column: first.index(column.name))
    return next((candidates[-1] for candidates in (*others, alike, wanted, *choices) if candidates and len(kept) > 1), None)


def _distinguishes_nothing(column: Column, kept: list[Column]) -> bool:
    """Return whether as many rows are distinct without the column."""
    return _distinct(kept) == _distinct([other for other in kept if other is not column])


def _distinct(columns: list[Column]) -> int:
    """Return how many rows the keys and ids among the columns distinguish."""
    return len(set(zip(*(c.cells for c in columns if c.name in _KEYS or c.name.endswith(_IDS)), strict=True)))


def _header(columns: list[Column]) -> list[str]:
    """Return the lines of the header, the last of each column on the last line."""
    heads = [column.heads() for column in columns]
    depth = max(map(len, heads), default=1)
    filled = [[""] * (depth - len(head)) + head for head in heads]
    return [GAP.join(c.placed(head[line]) for c, head in zip(columns, filled, strict=True)).rstrip() for line in range(depth)]


def _alike(columns: list[Column], width: int) -> list[str]:
    """Return what every row has in common; a name stays beside its value, unless they need lines of their own."""
    said = [f"{c.name} {c.cells[0]}" for c in columns]
    text = " · ".join(one.replace(" ", "\0") if len(one) <= width else one for one in said)
    return [line.replace("\0", " ") for line in textwrap.wrap(text, width, break_on_hyphens=False)]


def _row(columns: list[Column], index: int, style: Style) -> list[str]:
    """Return the lines of one row: one, unless a message has to be wrapped."""
    prose = {c.name: _cell_lines(c.cells[index], c.width, style) for c in columns if c.name in _PROSE}
    lines = []
    for line in range(max([1, *map(len, prose.values())])):
        cells = [(prose[c.name][line : line + 1] or [""])[0] if c.name in prose else c.cells[index] if line == 0 else ""
                 for c in columns]
        placed = [(c, cell, c.placed(cell)) for cell, c in zip(cells, columns, strict=True)]
        lines.append(GAP.join(painted(c.name, cell, text) if style.colour else text for c, cell, text in placed).rstrip())
    return lines


def _cell_lines(cell: str, width: int, style: Style) -> list[str]:
    """Return a cell of prose in lines; a command in it is whole, and so may reach beyond the column."""
    return wrapped(style.texts.get(cell, cell), width) or [""]


def _missing(columns: Sequence[Column], rows: int, rest: str) -> list[str]:
    """Return what is not shown, by name, and how to see it; columns without a value in any row, as there is nothing to see."""
    empty = [column.name for column in columns if _has_no_value(column)]
    cut = [column.name for column in columns if column.name not in empty]
    parts = [f"{counted(len(cut), 'column')} ({_some(cut)})"] if cut else []
    parts += [counted(rows, "row")] if rows > 0 else []
    said = [f"({' and '.join(parts)} more: {rest})"] if parts else []
    return said + ([f"(empty: {_some(empty)})"] if empty else [])


def _some(names: Sequence[str]) -> str:
    return ", ".join([*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])])


def _decimals(values: list[object]) -> int | None:
    """Return the decimals that show every float of a column as it is, up to 2; None where they need more."""
    floats = [v for v in values if isinstance(v, float) and math.isfinite(v)]
    return next((places for places in range(1, 3) if all(round(v, places) == v for v in floats)), None)


def _cell(value: object, decimals: int | None, commas: bool) -> str:
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if commas else str(value)
    if isinstance(value, float):
        if decimals is not None:
            return f"{value:,.{decimals}f}"
        return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)
