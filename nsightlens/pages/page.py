"""What a page for people is made of: headings, tables whose columns give way, and bars."""

from __future__ import annotations

import math
import re
import statistics
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TypeVar

import click

from nsightlens.pages.hints import hint, shown
from nsightlens.pages.tables import Column, output_width
from nsightlens.terminal.colour import painted
from nsightlens.terminal.command import Command
from nsightlens.terminal.output import echo
from nsightlens.terminal.printable import printable
from nsightlens.views.figures import MISSING, number, share

_Row = TypeVar("_Row")
NOT_RECORDED = "not recorded"
NAME = 34
"""Characters of a name that people still recognise: before it is cut further, figures go."""
_GAP = "  "
_INDENT = "  "
_NARROWEST, _WIDEST = 40, 160
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
_BINS = 16
_UNIT = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|[KMGT]i?B(?:/s)?|[GT]FLOP/s)(?!\w))")
_KEPT: ContextVar[list[str] | None] = ContextVar("kept", default=None)


def put(text: str = "") -> None:
    """Print lines of a page, or keep them (`kept`)."""
    held = _KEPT.get()
    if held is None:
        echo(text, styled=True)
    else:
        held.append(click.unstyle(text))


@contextmanager
def kept() -> Iterator[list[str]]:
    """Keep what the block puts, without colours, instead of printing it."""
    held: list[str] = []
    before = _KEPT.set(held)
    try:
        yield held
    finally:
        _KEPT.reset(before)


def page_width() -> int:
    """Return the columns that a page takes: those of the output, from 40 to 160."""
    return max(_NARROWEST, min(output_width(), _WIDEST))


def known_sum(values: Iterable[int | None]) -> int | None:
    """Return the sum of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def some(values: Iterable[str | None], most: int = 2) -> str:
    """Return the distinct values, the first two by name."""
    found = [value for value in dict.fromkeys(values) if value]
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "") or MISSING


def _wrapped(text: str, width: int) -> list[str]:
    """Return the text in lines, not broken at hyphens, as a path in a command can be copied, nor behind a figure."""
    return [line.replace("\0", " ") for line in textwrap.wrap(_UNIT.sub("\0", text), width, break_on_hyphens=False)]


def unmatched(kernels: int, part_ns: int, total_ns: int, purpose: str) -> str:
    """Return how much of the communication, of so many ns in all, could not be matched across the ranks. purpose: for what."""
    if not kernels:
        return "All communication kernels were matched across the ranks."
    of_time = share(100 * part_ns / total_ns if total_ns else None)
    return f"{number(kernels)} communication kernels, {of_time} of communication time, could not be matched {purpose}."


def heading(text: str, note: str = "") -> None:
    """Print the title of a section, with a note behind it, or below it where the line is full."""
    note = hint(printable(note))
    room = page_width() - len(text) - 3
    put()
    if note and len(note) > room:
        put(click.style(printable(text), bold=True))
        put(click.style("\n".join(_wrapped(note, page_width())), dim=True))
    else:
        put(click.style(printable(text), bold=True) + click.style(f" · {note}" if note else "", dim=True))


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
    put(click.style((_INDENT + _GAP.join(header)).rstrip(), dim=True))
    for row in range(len(columns[0].cells)):
        cells = [painted(c.name, c.cells[row], c.placed(c.cells[row])) for c in columns]
        put((_INDENT + _GAP.join(cells)).rstrip())


def spare(columns: Sequence[Column]) -> int:
    """Return the characters that a further column may take before one of these is cut below its least."""
    return page_width() - len(_INDENT) - sum(c.least() + len(_GAP) for c in columns)


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
        lines([f"{count:,} more{': ' if over else ''}{over}: {shown(Command('show', (view,)))}"], "…")


def paragraphs(texts: Iterable[str]) -> None:
    """Print texts, each from the page's edge and wrapped to it."""
    for text in texts:
        put("\n".join(_wrapped(hint(printable(text)), page_width())))


def lines(texts: Iterable[str], mark: str = "-") -> None:
    """Print texts as a list, wrapped to the page."""
    for text in texts:
        wrapped = _wrapped(hint(printable(text)), page_width() - len(_INDENT) - len(mark) - 1) or [""]
        put(f"{_INDENT}{mark} {wrapped[0]}")
        for rest in wrapped[1:]:
            put(f"{_INDENT}{' ' * len(mark)} {rest}")
