"""A part of a page as a value: title, table and lines, whatever it is written as. Views give the figures, renderers the form."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from nsightlens.pages.tables import Column
from nsightlens.terminal.command import Command
from nsightlens.terminal.text import parts
from nsightlens.views.figures import MISSING, number, share

if TYPE_CHECKING:
    from nsightlens.terminal.text import Text

_Row = TypeVar("_Row")
NOT_RECORDED = "not recorded"
NAME = 34
"""Characters of a name that people still recognise: before it is cut further, figures go."""
_LEVELS = "▁▂▃▄▅▆▇█"
_BINS = 16
LISTED, LEFT_OUT, PARAGRAPH = "-", "…", ""


@dataclass(frozen=True, slots=True)
class Bars:
    """A column of bars, as long as the page has room for.

    rows: of each bar its pieces: what it is drawn with, and its share of the longest, 0 to 1; below 0 to the left of a line.
    weight: as for a Column. least, most: characters of the longest bar; beside: characters that the other columns take.
    """

    rows: tuple[tuple[tuple[str, float], ...], ...]
    weight: int
    least: int
    most: int
    beside: int
    is_signed: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line below a table. mark: what it begins with; PARAGRAPH: nothing, at the page's edge."""

    text: Text
    mark: str = LISTED


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page. columns: its table, with a cell for each row. lines: what is said below it."""

    title: str = ""
    note: Text = ""
    columns: tuple[Column | Bars, ...] = ()
    lines: tuple[Line, ...] = ()

    @property
    def commands(self) -> tuple[Command, ...]:
        """Return the commands that it names."""
        return tuple(part for text in (self.note, *(line.text for line in self.lines)) for part in parts(text)
                     if isinstance(part, Command))


@dataclass(frozen=True, slots=True)
class Absent:
    """A part that a page does not have. text: what it is, and what it would need."""

    text: Text


def texts_absent(composed: Iterable[Iterable[Section | Absent]]) -> list[Text]:
    """Return what is not recorded of what a page is composed of."""
    return [section.text for sections in composed for section in sections if isinstance(section, Absent)]


def listed(texts: Iterable[Text], mark: str = LISTED) -> tuple[Line, ...]:
    """Return texts as lines."""
    return tuple(Line(text, mark) for text in texts)


def more(count: int, view: str, over: str = "") -> tuple[Line, ...]:
    """Return how many rows a section leaves out, how they spread, and what shows them; nothing where it shows all."""
    spread_as = f"{over}: " if over else ""
    return (Line((f"{count:,} more: {spread_as}", Command("show", (view,))), LEFT_OUT),) if count > 0 else ()


def known_sum(values: Iterable[int | None]) -> int | None:
    """Return the sum of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def some(values: Iterable[str | None], most: int = 2) -> str:
    """Return the distinct values, the first two by name."""
    distinct = [value for value in dict.fromkeys(values) if value]
    return ", ".join(distinct[:most]) + (f" and {len(distinct) - most} more" if len(distinct) > most else "") or MISSING


def unmatched(kernels: int, part_ns: int, total_ns: int, purpose: str) -> str:
    """Return how much of the communication, of so many ns in all, could not be matched across the ranks. purpose: for what."""
    if not kernels:
        return "All communication kernels were matched across the ranks."
    of_time = share(100 * part_ns / total_ns if total_ns else None)
    return f"{number(kernels)} communication kernels, {of_time} of communication time, could not be matched {purpose}."


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
