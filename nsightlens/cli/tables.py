"""A table as text for people: one line a row, no number ever cut, as many columns as the terminal has room for."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from nsightlens.names import shortened
from nsightlens.views.figures import MISSING

GAP = "   "
ROWS = 200
_NAME_WIDTH = 72
_NARROW_NAME = 20
_PROSE = ("message", "reason", "problem")
_KEYS = ("run", "tool", "rank", "path", "view", "name", "kernel", "code", "grid", "block", "level", "precision", "severity")
_SETTINGS = ("grid", "block", "level", "precision")
_IDS = ("_id", "window_index")
_PLAIN = ("_id", "epoch_ns", "modified_ns", "address", "pid", "step")


@dataclass(slots=True)
class Column:
    """One printed column: its header, its cells, and how it may be made narrower.

    weight: on a page, the least go first where room is short. text: set to the left. flexible: may be cut, to `shortest`.
    """

    name: str
    cells: list[str]
    weight: int = 1
    text: bool = False
    flexible: bool = False
    shortest: int = 18
    width: int = 0

    def natural(self) -> int:
        """Return the width that shows everything."""
        return max([len(self.name), *(len(cell) for cell in self.cells)])

    def least(self) -> int:
        """Return the width below which the column says nothing: numbers and short texts cannot shrink."""
        return min(self.natural(), self.shortest) if self.flexible else self.natural()

    def fit(self) -> None:
        """Shorten the cells to the column's width; cells that differ stay different."""
        shown = shortened(self.cells, self.width)
        self.cells = [shown[cell] for cell in self.cells]

    def placed(self, text: str) -> str:
        """Return a text at the column's width."""
        return text.ljust(self.width) if self.text else text.rjust(self.width)


def terminal_width() -> int | None:
    """Return the columns of the terminal on standard output, or None where there is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def render(names: Sequence[str], rows: Sequence[Sequence[object]], is_text: Sequence[bool], *, wide: bool = False,
           width: int | None = None) -> str:
    """Return the rows under their names. `width`: what they must fit in (None: no limit); `wide`: nothing is shortened.

    Where they do not fit, keys that say the same in every row go into a line above, names are cut in their middle, and
    columns are left out: ids first, then figures from the right; a last line says what is missing and how to see it.
    """
    shown = rows if width is None or wide else rows[:ROWS]
    columns = [_column(name, [row[i] for row in shown], is_text[i], wide) for i, name in enumerate(names)]
    above: list[str] = []
    if width is not None and not wide:
        columns, above = _lift(columns, width)
        columns = _fit(columns, width)
    for column in columns:
        column.width = column.width or column.natural()
        if column.name not in _PROSE:
            column.fit()
    lines = [GAP.join(c.placed(c.name) for c in columns).rstrip(), "─" * _total(columns)]
    for i in range(len(shown)):
        lines.extend(_row(columns, i))
    if not rows:
        lines.append("(no rows)")
    left_out = len(names) - len(columns) - len(above)
    return "\n".join([*above, *lines, *_missing(left_out, len(names), len(rows) - len(shown))]) + "\n"


def _column(name: str, values: list[object], is_text: bool, wide: bool) -> Column:
    decimals = _decimals(values)
    if decimals is None and name.endswith("_pct"):
        decimals = 2
    commas = not name.endswith(_PLAIN)
    cells = [_cell(value, decimals, commas) for value in values]
    if is_text:
        longest = max(map(len, cells), default=0)
        shown = shortened(cells, longest if wide or name in _PROSE else min(longest, _NAME_WIDTH))
        cells = [shown[cell] for cell in cells]
    return Column(name, cells, text=is_text, flexible=is_text, shortest=_NARROW_NAME)


def _lift(columns: list[Column], width: int) -> tuple[list[Column], list[str]]:
    """Take the key columns that say the same in every row out of a table that is too wide."""
    if _total(columns) <= width:
        return columns, []
    same = [c for c in columns if (c.text or c.name in _KEYS or c.name.endswith(_IDS)) and c.name not in _PROSE
            and len(c.cells) > 1 and len(set(c.cells)) == 1]
    return [c for c in columns if c not in same], [f"{c.name}: {c.cells[0]}" for c in same]


def _total(columns: list[Column]) -> int:
    return sum(c.width or c.natural() for c in columns) + len(GAP) * (len(columns) - 1)


def _fit(columns: list[Column], width: int) -> list[Column]:
    """Return the columns that fit, with their widths: first names shrink, then columns go from the right, keys last."""
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
        dispensable = _dispensable(kept)
        if dispensable is None:
            kept[0].width = width
            return kept
        kept.remove(dispensable)
    return kept


def _dispensable(kept: list[Column]) -> Column | None:
    """Return the column to drop next: ids that distinguish no rows, figures from the right, keys that distinguish no rows before
    the last figures, then the other keys; None at the last."""
    ids = [c for c in kept if c.name.endswith(_IDS)]
    free = [c for c in ids if _distinguishes_nothing(c, kept)]
    keys = [c for c in kept[1:] if c.name in _SETTINGS and _distinguishes_nothing(c, kept)]
    figures = [c for c in kept if c.name not in (*_KEYS, *_PROSE) and c not in ids]
    plain = [c for c in figures[1:] if not c.name.endswith("_pct")]  # shares are short and say most
    for candidates in (free, plain, keys, figures[1:], ids, figures, kept[1:]):
        if candidates:
            return candidates[-1]
    return None


def _distinguishes_nothing(column: Column, kept: list[Column]) -> bool:
    """Return whether as many rows are distinct without the column."""
    return _distinct(kept) == _distinct([other for other in kept if other is not column])


def _distinct(columns: list[Column]) -> int:
    """Return how many rows the keys and ids among the columns distinguish."""
    return len(set(zip(*(c.cells for c in columns if c.name in _KEYS or c.name.endswith(_IDS)), strict=True)))


def _row(columns: list[Column], index: int) -> list[str]:
    """Return the lines of one row: one, unless a message has to be wrapped."""
    wrapped = {c.name: textwrap.wrap(c.cells[index], c.width) or [""] for c in columns if c.name in _PROSE}
    lines = []
    for line in range(max([1, *(len(w) for w in wrapped.values())])):
        cells = [(wrapped[c.name][line : line + 1] or [""])[0] if c.name in wrapped else c.cells[index] if line == 0 else ""
                 for c in columns]
        lines.append(GAP.join(c.placed(cell) for cell, c in zip(cells, columns, strict=True)).rstrip())
    return lines


def _missing(columns: int, of: int, rows: int) -> list[str]:
    missing = ([f"{columns} of {of} columns"] if columns > 0 else []) + ([f"{rows:,} rows"] if rows > 0 else [])
    return [f"({' and '.join(missing)} more: --wide, or --format csv)"] if missing else []


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
