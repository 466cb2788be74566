"""The lines under a header: which are rows, which are the log around them, and where the table ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.text import Block, Header, cells, find_header, header_of

_ROW_START = re.compile(rb'"?\d{1,18}"?,"?\d{1,18}"?,')
_GLUED_ROW = re.compile(rb'"\d{1,18}","\d{1,18}","')
_MOST_LINES_OF_A_ROW = 100
_MOST_LOG_LINES = 20_000


class Rows(Protocol):
    """What gathers the rows of one table."""

    def fast(self, data: bytes, start: int) -> int:
        """Take the rows from offset `start` on that need no close look; return the offset of the first other line."""

    def accept(self, row: Sequence[str], line: bytes) -> bool:
        """Take one row (its cells, and the line they came from); False where it is no row of this table."""


R = TypeVar("R", bound=Rows)


def scan(block: Block, start: int, rows: Rows, notes: Notes, log: list[bytes]) -> int:
    """Give `rows` the rows from `start` on; return the offset of the next header or of the end. Other lines go to `log`."""
    data = block.data
    while (start := rows.fast(data, start)) < len(data):
        stop = data.find(b"\n", start)
        line = data[start:stop] if stop >= 0 else data[start:]
        if header_of(line, 0):
            return start
        row = cells(line)
        if row is None or not rows.accept(row, line):
            stop = _look_closer(block, start, stop, line, rows, notes, log)
        start = stop + 1 if stop >= 0 else len(data)
    return len(data)


def _look_closer(block: Block, start: int, stop: int, line: bytes, rows: Rows, notes: Notes, log: list[bytes]) -> int:
    """Deal with a line that is no row by itself; return the offset of the newline that ends it (-1: the end)."""
    begins = _ROW_START.match(line) is not None
    if begins and (end := _row_of_several_lines(block.data, start, stop, rows)) is not None:
        return end
    glued = _GLUED_ROW.search(line, 1)
    if glued and not begins:
        rest = line[glued.start() :]
        row = cells(rest)
        if row is not None and rows.accept(row, rest):
            add_log(log, line[: glued.start()], notes)
            return stop
    detail = line[:80].decode("utf-8", errors="replace")
    if stop < 0 and line.startswith(b'"'):
        notes.add("truncated", detail, offset=None if block.offset is None else block.offset + start)
    elif begins:
        notes.add("rows_lost", detail)
    else:
        add_log(log, line, notes)
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


def tables(blocks: Iterable[Block], rows_of: Callable[[Header], R], notes: Notes, log: list[bytes]) -> list[R]:
    """Return the tables of a text, in order, each what `rows_of` its header has gathered; other lines go to `log`."""
    found: list[R] = []
    for block in blocks:
        start = 0
        while start < len(block.data):
            if found:
                start = scan(block, start, found[-1], notes, log)
            header, at = find_header(block.data, start)
            for line in block.data[start:at].split(b"\n"):
                add_log(log, line, notes)
            if header is not None:
                found.append(rows_of(header))
            start = header.end if header else len(block.data)
    return found


def add_log(log: list[bytes], line: bytes, notes: Notes) -> None:
    """Keep a line that is no row (the first ones only) and count it."""
    if not line.strip():
        return
    if len(log) < _MOST_LOG_LINES:
        log.append(line)
    notes.add("log_lines")
