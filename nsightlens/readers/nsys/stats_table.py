"""A table that `nsys stats` printed, row by row: its cells as text, and as numbers what columns hold numbers."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from nsightlens.errors import ReadError
from nsightlens.readers.batches import Batch, diagnostic
from nsightlens.readers.gzip_lines import Lines
from nsightlens.readers.nsys.stats_cells import Locale, StatsHeader, StatsReport, header, locale_of
from nsightlens.terminal.quoting import shell_line

if TYPE_CHECKING:
    from nsightlens.terminal.text import Text

SAMPLE = 10_000
_HEADER_WITHIN = 200
_INT64 = 1 << 63
NOTHING = ("", "None", "-")
"""What nsys prints in a cell that has no value."""


class StatsTable:
    """The table in a file. What is wrong with its rows is counted while they are read.

    steps: the coarsest last digit of times (ns) and of sizes (bytes) so far. Raises ReadError where the file cannot be opened
    or holds no such table.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tally: Counter[str] = Counter()
        self.steps = {"times": 0.0, "sizes": 0.0}
        self._lines = Lines(path)
        self._is_whole = True
        lines = self._lines.text_lines(encoding)
        head = next((found for line in islice(lines, _HEADER_WITHIN) if (found := header(line))), None)
        if head is None:
            raise ReadError(path, "no table of nsys stats in it", what_to_do("cuda_gpu_trace"), "no_launches")
        self._head: StatsHeader = head
        cells = self._cells(lines)
        sample = list(islice(cells, SAMPLE))
        self._locale: Locale = locale_of(sample, head)
        self._sample = sample
        self._rows = chain(sample, cells)

    @property
    def report(self) -> StatsReport:
        """Return which report it is."""
        return self._head.report

    @property
    def is_cut(self) -> bool:
        """Return whether it ends, as far as it was read, within a line or within its compressed data."""
        return self._lines.is_cut or not self._is_whole

    def rows(self) -> Iterator[dict[str, str]]:
        """Yield the cells of each row by column. What nsys prints where it has nothing is an empty text, but for a name."""
        for cells in self._rows:
            yield {name: "" if cells[at] in NOTHING and name != "Name" else cells[at] for name, at in self._head.place.items()}

    def sampled(self, name: str) -> list[str]:
        """Return a column of the first rows."""
        return [cells[self._head.place[name]] for cells in self._sample]

    def time(self, row: dict[str, str], name: str, low: int, high: int) -> int | None:
        """Return a time in ns from low to high; None, and counted, for anything else."""
        found = self._locale.number(row[name], self._head.factor[name])
        if found is None or not low <= found.value <= high:
            self.tally["bad_values"] += 1
            return None
        self.steps["times"] = max(self.steps["times"], found.step)
        return found.value

    def integer(self, row: dict[str, str], name: str, limit: int = _INT64) -> int | None:
        """Return an integer below limit; None for an empty cell and, counted, for anything else."""
        text = row.get(name, "")
        if not text:
            return None
        found = self._locale.number(text, 1)
        if found is None or not -limit <= found.value < limit or found.step not in (0, 1):
            self.tally["bad_values"] += 1
            return None
        return found.value

    def size(self, row: dict[str, str], name: str, *, exact: bool) -> int | None:
        """Return a size in bytes; NULL where it is printed too coarsely to be known at all, or, if `exact`, to the byte."""
        if not row.get(name) or name not in self._head.factor:
            return None
        found = self._locale.number(row[name], self._head.factor[name])
        if found is None or not 0 <= found.value < _INT64:
            self.tally["bad_values"] += 1
            return None
        if found.step > 1:
            self.steps["sizes"] = max(self.steps["sizes"], found.step)
        return None if found.step > 1 and (exact or not found.value) else found.value

    def diagnostics(self) -> Iterator[Batch]:
        """Yield what is to be said of the rows that were read."""
        for code, message in (
                ("rows_damaged", "lines that do not match the header, or have no time; they are left out"),
                ("bad_values", "cells with no number, or an impossible one; they are NULL"),
                ("more_tables", "other tables follow in the file; they are not read: print each to a file of its own")):
            if self.tally[code]:
                yield diagnostic("warning", code, message, self.tally[code])
        if self._locale.is_assumed:
            yield diagnostic("warning", "decimal_assumed", f"the decimal separator is ambiguous: taken to be "
                             f"{self._locale.decimal!r}; print times in ns (nsys stats --timeunit nsec)")
        for what, unit in (("times", "ns"), ("sizes", "bytes")):
            if self.steps[what] > 1:
                yield diagnostic("warning", f"{what}_rounded", f"{what} are printed to {self.steps[what]:,.0f} {unit}"
                                 + ("; shared memory is NULL" if what == "sizes" else "") + "; the report has them exactly")
        if self.is_cut:
            yield diagnostic("warning", *self._lines.why_cut)

    def _cells(self, lines: Iterator[str]) -> Iterator[list[str]]:
        """Yield the cells of each row, up to an empty line; what has not the cells of the header is counted."""
        for line in lines:
            if not line.strip():
                self.tally["more_tables"] += any(rest.strip() for rest in lines)
                return
            try:
                cells = next(csv.reader((line,), delimiter=self._head.delimiter), [])
            except csv.Error:
                cells = []
            self._is_whole = line.endswith("\n")
            if len(cells) == self._head.width:
                yield [cell.strip() for cell in cells]
            elif not header(line):
                self.tally["rows_damaged"] += 1


def what_to_do(report: str) -> Text:
    """Return how to get what the reader reads."""
    again = shell_line("nsys", "stats", "--report", report, "--format", "csv", "REPORT.nsys-rep")
    return "Print it again: ", again, "; or ingest nsys export --type sqlite"


def encoding(start: bytes) -> str:
    """Return the encoding of a text that begins with some bytes."""
    return "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
