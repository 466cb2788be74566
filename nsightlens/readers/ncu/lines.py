"""The lines under a header: which are rows, which are the log around them, and where the table ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from nsightlens.readers.budget import OVER_BUDGET
from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.text import Block, HeaderLine, cells, find_header, header_of

_ROW_LIKE = 8
"""Quoted cells in a row of any table of ncu, and in nothing that an application prints."""
_ROW_START = re.compile(rb'"?\d{1,18}"?,"?\d{1,18}"?,')
_GLUED_ROW = re.compile(rb'"\d{1,18}","\d{1,18}","')
_MOST_LINES_OF_A_ROW = 100
_MOST_LOG_LINES = 20_000
_MOST_IDLE_LINES = 2_000_000
_LINE = re.compile(rb"[^\n]+")  # to be searched for: that passes over empty lines, however many


class Rows(Protocol):
    """What gathers the rows of one table."""

    def fast(self, data: bytes, start: int) -> int:
        """Take the rows from offset `start` on that need no close look; return the offset of the first other line."""

    def accept(self, row: Sequence[str], line: bytes) -> bool:
        """Take one row (its cells, and the line they came from); False where it is no row of this table."""


R = TypeVar("R", bound=Rows)


class _Endless(Exception):
    """The lines since the last row are more than any application prints."""


@dataclass(slots=True)
class _Log:
    """The lines that are no rows. `idle`: how many came since the last row."""

    lines: list[bytes]
    notes: Notes
    idle: int = 0

    def add(self, line: bytes) -> None:
        """Keep a line that is not blank (the first ones only) and count it. Raises _Endless."""
        self.idle += 1
        if self.idle > _MOST_IDLE_LINES:
            raise _Endless
        if not line.strip():
            return
        if len(self.lines) < _MOST_LOG_LINES:
            self.lines.append(line)
        self.notes.add("log_lines")


def scan(block: Block, start: int, rows: Rows, log: _Log) -> int:
    """Give `rows` the rows from `start` on; return the offset of the next header or of the end. Other lines go to `log`."""
    data = block.data
    while (after := rows.fast(data, start)) < len(data):
        log.idle = 0 if after > start else log.idle
        line = _LINE.search(data, after)
        if line is None:  # nothing but line ends
            return len(data)
        start, stop = line.start(), line.end() if line.end() < len(data) else -1
        if header_of(line[0], 0):
            return start
        row = cells(line[0])
        if row is not None and rows.accept(row, line[0]):
            log.idle = 0
        else:
            stop = _look_closer(block, start, stop, line[0], rows, log)
        start = stop + 1 if stop >= 0 else len(data)
    return len(data)


def _look_closer(block: Block, start: int, stop: int, line: bytes, rows: Rows, log: _Log) -> int:
    """Deal with a line that is no row by itself; return the offset of the newline that ends it (-1: the end)."""
    begins = _ROW_START.match(line) is not None
    if begins and (end := _row_of_several_lines(block.data, start, stop, rows)) is not None:
        return end
    glued = _GLUED_ROW.search(line, 1)
    if glued and not begins:
        rest = line[glued.start() :]
        row = cells(rest)
        if row is not None and rows.accept(row, rest):
            log.add(line[: glued.start()])
            return stop
    detail = line[:80].decode("utf-8", errors="replace")
    if stop < 0 and line.startswith(b'"'):
        log.notes.add("truncated", detail, offset=None if block.offset is None else block.offset + start)
    elif begins or line.count(b'","') >= _ROW_LIKE:
        log.notes.add("rows_lost", detail)
    else:
        log.add(line)
    return stop


def _row_of_several_lines(data: bytes, start: int, stop: int, rows: Rows) -> int | None:
    """Return where the row ends that begins at `start` and holds line ends in its quotes, or None."""
    for _ in range(_MOST_LINES_OF_A_ROW):
        if stop < 0:
            return None
        end = data.find(b"\n", stop + 1)
        more = data[stop + 1 : end if end >= 0 else len(data)]
        if _ROW_START.match(more) or header_of(more, 0):
            return None
        whole = data[start : end if end >= 0 else len(data)]
        row = cells(whole)
        if row is not None:
            return end if rows.accept(row, whole) else None
        stop = end
    return None


def tables(blocks: Iterable[Block], rows_of: Callable[[HeaderLine], R], notes: Notes, lines: list[bytes]) -> list[R]:
    """Return the tables of a text, in order, each what `rows_of` its header has gathered; the first other lines go to `lines`."""
    found: list[R] = []
    log = _Log(lines, notes)
    try:
        for block in blocks:
            start = 0
            while start < len(block.data):
                if found:
                    start = scan(block, start, found[-1], log)
                header, at = find_header(block.data, start)
                for line in _LINE.finditer(block.data, start, at):
                    log.add(line[0])
                if header is not None:
                    found.append(rows_of(header))
                start = header.end if header else len(block.data)
    except _Endless:
        notes.add(OVER_BUDGET, f"{_MOST_IDLE_LINES:,} lines that are none")
    return found
