"""What a page for people is made of: headings, tables whose columns give way, bars, and figures in units that people read."""

from __future__ import annotations

import math
import shutil
import statistics
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import click

from nsightlens.cli.tables import MISSING, Column
from nsightlens.names import printable

_Row = TypeVar("_Row")
NOT_RECORDED = "not recorded"
_GAP = "  "
_INDENT = "  "
_WIDEST = 160
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
_BINS = 16
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


def page_width() -> int:
    """Return the columns that a page may take: the terminal's (or COLUMNS), at most 160."""
    return max(40, min(shutil.get_terminal_size((100, 24)).columns, _WIDEST))


def duration(ns: float | None) -> str:
    """Return a time with four digits and its unit: '131.4 ms'."""
    if ns is None:
        return MISSING
    factor, unit = next((pair for pair in _TIMES if abs(ns) >= pair[0] * 0.99995), _TIMES[-1])
    return f"{_digits(ns / factor)} {unit}" if factor > 1 else f"{ns:.4g} ns"


def known_sum(values: Iterable[int | None]) -> int | None:
    """Return the sum of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def size(count: float | None) -> str:
    """Return an amount of bytes with three digits or more and its unit: '6.174 GiB'."""
    if count is None:
        return MISSING
    factor, unit = next((pair for pair in _SIZES if abs(count) >= pair[0]), _SIZES[-1])
    return f"{_digits(count / factor)} {unit}" if factor > 1 else f"{count:.0f} B"


def share(pct: float | None) -> str:
    """Return a percentage to one decimal."""
    return MISSING if pct is None else f"{pct:.1f} %"


def number(count: int | None) -> str:
    """Return a count with its thousands apart."""
    return MISSING if count is None else f"{count:,}"


def spans(values: Iterable[str], most: int = 8) -> str:
    """Return numbers as people write them: '0', '0-7', '0, 2-5'."""
    found: list[list[int]] = []
    for value in sorted({int(value) for value in values}):
        if found and value == found[-1][1] + 1:
            found[-1][1] = value
        else:
            found.append([value, value])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in found]
    return ", ".join(texts[:most]) + (", …" if len(texts) > most else "") or MISSING


def _digits(value: float) -> str:
    places = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1 if abs(value) < 1000 else 0
    return f"{value:,.{places}f}"


def some(values: Iterable[str | None], most: int = 2) -> str:
    """Return the distinct values, the first two by name."""
    found = [value for value in dict.fromkeys(values) if value]
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "") or MISSING


def heading(text: str, note: str = "") -> None:
    """Print the title of a section, with a note behind it, or below it where the line is full."""
    note = printable(note)
    room = page_width() - len(text) - 3
    click.echo()
    if note and len(note) > room:
        click.echo(click.style(printable(text), bold=True))
        click.echo(click.style("\n".join(textwrap.wrap(note, page_width())), dim=True))
    else:
        click.echo(click.style(printable(text), bold=True) + click.style(f" · {note}" if note else "", dim=True))


def grid(columns: Sequence[Column]) -> None:
    """Print a table that fits the page: columns of the least weight go first, then the flexible ones are cut."""
    columns = [replace(c) for c in columns if any(cell != MISSING for cell in c.cells) or c.weight > 2]
    room = page_width() - len(_INDENT)
    while len(columns) > 1 and sum(c.least() for c in columns) + len(_GAP) * (len(columns) - 1) > room:
        columns.remove(min(reversed(columns), key=lambda c: c.weight))
    for column in columns:
        column.width = column.least()
    spare = room - sum(c.width for c in columns) - len(_GAP) * (len(columns) - 1)
    for column in sorted((c for c in columns if c.flexible), key=lambda c: -c.weight):
        grown = min(column.natural() - column.width, max(0, spare))
        column.width += grown
        spare -= grown
    for column in columns:
        column.fit()
    header = [c.placed(c.name) for c in columns]
    click.echo(click.style((_INDENT + _GAP.join(header)).rstrip(), dim=True))
    for row in range(len(columns[0].cells)):
        click.echo((_INDENT + _GAP.join(c.placed(c.cells[row]) for c in columns)).rstrip())


def bar(part: float, width: int) -> str:
    """Return a bar of `part` (0 to 1) of `width` characters, to an eighth of a character."""
    eighths = round(max(0.0, min(1.0, part)) * width * 8)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def mixed_bar(parts: Iterable[tuple[str, float]], width: int) -> str:
    """Return a bar made of (character, share 0 to 1) pieces; rounding never makes it longer or shorter than their sum."""
    drawn, total = "", 0.0
    for character, part in parts:
        total += part
        drawn += character * (round(total * width) - len(drawn))
    return drawn


def outliers(rows: Sequence[_Row], figure: Callable[[_Row], float | None], most: int) -> Sequence[_Row]:
    """Return the rows to show: all in their order, or of more than `most` those whose figure is furthest from the median."""
    known = [value for row in rows if (value := figure(row)) is not None]
    if len(rows) <= most or not known:
        return rows[:most]
    middle = statistics.median(known)
    return sorted(rows, key=lambda row: math.inf if (value := figure(row)) is None else -abs(value - middle))[:most]


def spread(values: Iterable[float | None], text: Callable[[float], str]) -> str:
    """Return least, most and median of values around their histogram: '3.1 % ▁·▂█▅ 9.0 %, median 8.2 %'. A dot: none there."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return MISSING
    low, high = known[0], known[-1]
    if low == high:
        return f"all {text(low)}"
    counts = [0] * _BINS
    for value in known:
        counts[min(int((value - low) / (high - low) * _BINS), _BINS - 1)] += 1
    drawn = "".join(_LEVELS[(count * len(_LEVELS) - 1) // max(counts)] if count else "·" for count in counts)
    return f"{text(low)} {drawn} {text(high)}, median {text(statistics.median(known))}"


def more(count: int, view: str, over: str = "") -> None:
    """Say how many rows a section leaves out, how they spread, and what shows them."""
    if count > 0:
        lines([f"{count:,} more{': ' if over else ''}{over}: nsightlens show {view}"], "…")


def lines(texts: Iterable[str], mark: str = "-") -> None:
    """Print texts as a list, wrapped to the page."""
    for text in texts:
        wrapped = textwrap.wrap(printable(text), page_width() - len(_INDENT) - len(mark) - 1) or [""]
        click.echo(f"{_INDENT}{mark} {wrapped[0]}")
        for rest in wrapped[1:]:
            click.echo(f"{_INDENT}{' ' * len(mark)} {rest}")
