"""Sections as text that fits a terminal: headings, tables whose columns give way, bars and lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

import click

from nsightlens.pages.section import PARAGRAPH, Bars, Line, Section
from nsightlens.pages.tables import Column, output_width
from nsightlens.terminal.colour import painted
from nsightlens.terminal.command import Command
from nsightlens.terminal.printable import printable
from nsightlens.terminal.text import written
from nsightlens.terminal.wrapping import printable_text, wrapped
from nsightlens.views.figures import MISSING

if TYPE_CHECKING:
    from nsightlens.terminal.text import Text

_GAP = "  "
_INDENT = "  "
_NARROWEST, _WIDEST = 40, 160
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def page_width() -> int:
    """Return the columns that a page takes: those of the output, from 40 to 160."""
    return max(_NARROWEST, min(output_width(), _WIDEST))


@dataclass(frozen=True, slots=True)
class Renderer:
    """Writes sections as text with styles. width: columns of the page. command: how its reader gives a command."""

    command: Callable[[Command], str] = Command.shell
    width: int = field(default_factory=page_width)

    def drawn(self, sections: Iterable[Section]) -> list[str]:
        """Return the lines of sections, an empty one before each that has a title."""
        return [line for section in sections for line in chain(
            self._heading(section), self._grid(section.columns), *map(self._line, section.lines))]

    def ruled(self, title: str) -> str:
        """Return the line that a page of its own begins with."""
        return click.style(f"{printable(title)} ".ljust(self.width, "═"), bold=True)

    def _heading(self, section: Section) -> Iterator[str]:
        """Yield the title, with a note behind it, or below it where the line is full."""
        if not section.title:
            return
        title, note = click.style(printable(section.title), bold=True), written(printable_text(section.note), self.command)
        yield ""
        if note and len(note) > self.width - len(section.title) - 3:
            yield title
            yield click.style("\n".join(self._wrapped(section.note, self.width)), dim=True)
        else:
            yield title + click.style(f" · {note}" if note else "", dim=True)

    def _line(self, line: Line) -> Iterator[str]:
        if line.mark == PARAGRAPH:
            yield "\n".join(self._wrapped(line.text, self.width))
            return
        first, *others = self._wrapped(line.text, self.width - len(_INDENT) - len(line.mark) - 1) or [""]
        yield f"{_INDENT}{line.mark} {first}"
        yield from (f"{_INDENT}{' ' * len(line.mark)} {other}" for other in others)

    def _wrapped(self, text: Text, width: int) -> list[str]:
        return wrapped(printable_text(text), width, command=self.command)

    def _grid(self, cells: Sequence[Column | Bars]) -> Iterator[str]:
        """Yield a table that fits the page: columns of the least weight go first, then the flexible ones are cut."""
        if not cells:
            return
        drawn = self._bars_drawn(cells)
        columns = [replace(c) for c in drawn if any(cell != MISSING for cell in c.cells) or c.weight > 2]
        room = self.width - len(_INDENT)
        while len(columns) > 1 and sum(c.least() for c in columns) + len(_GAP) * (len(columns) - 1) > room:
            columns.remove(min(reversed(columns), key=lambda c: c.weight))
        _widen(columns, room - len(_GAP) * (len(columns) - 1))
        header = [c.placed(c.name) for c in columns]
        yield click.style((_INDENT + _GAP.join(header)).rstrip(), dim=True)
        for row in range(len(columns[0].cells)):
            yield (_INDENT + _GAP.join(painted(c.name, c.cells[row], c.placed(c.cells[row])) for c in columns)).rstrip()

    def _bars_drawn(self, cells: Sequence[Column | Bars]) -> list[Column]:
        """Return the columns, those of bars with their bars: signed ones take what the others leave, of half a page at most."""
        others = [column for column in cells if isinstance(column, Column)]
        left = self.width - len(_INDENT) - sum(column.least() + len(_GAP) for column in others)
        return [column if isinstance(column, Column) else Column("", _drawn(column, left, self.width), column.weight, text=True)
                for column in cells]


def _drawn(bars: Bars, left: int, width: int) -> list[str]:
    """Return each bar. left: characters that the least of the other columns leaves; width: of the page."""
    if bars.is_signed:
        half = min(bars.most, (left - 1) // 2)
        return [_signed_bar(pieces[0][1], half) if pieces and half >= bars.least else "" for pieces in bars.rows]
    longest = max(bars.least, min(bars.most, width - bars.beside))
    return [bar(pieces[0][1], longest) if len(pieces) == 1 else mixed_bar(pieces, longest) for pieces in bars.rows]


def _widen(columns: Sequence[Column], room: int) -> None:
    """Give columns their width and cut their cells to it: the weightiest of the flexible ones first take what is left."""
    for column in columns:
        column.width = column.least()
    spare = room - sum(c.width for c in columns)
    for column in sorted((c for c in columns if c.flexible), key=lambda c: -c.weight):
        grown = min(column.natural() - column.width, max(0, spare))
        column.width += grown
        spare -= grown
    for column in columns:
        column.fit()


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


def _signed_bar(part: float, half: int) -> str:
    """Return a bar of at most `half` characters to the left (below 0) or right of a line."""
    return f"{'█' * round(-part * half):>{half}}│" if part < 0 else f"{'':{half}}│{bar(part, half)}"
