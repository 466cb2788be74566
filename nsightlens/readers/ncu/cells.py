"""Many CSV rows of equal width -> Arrow string columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyarrow import csv

from nsightlens.readers.ncu.text import cells

_TEXT_BYTES = 1 << 22
_REPEATED = pa.dictionary(pa.int32(), pa.string())


@dataclass(slots=True)
class Columns:
    """Rows (CSV lines) that become columns as they come, so that their text need not be kept.

    repeated: positions of columns with few distinct cells, which become dictionary arrays.
    """

    width: int
    repeated: frozenset[int] = frozenset()
    threads: bool = False
    _lines: list[bytes] = field(default_factory=list)
    _bytes: int = 0
    _tables: list[pa.Table] = field(default_factory=list)

    def add(self, lines: Sequence[bytes]) -> None:
        """Take rows."""
        self._lines += lines
        self._bytes += sum(map(len, lines))
        if self._bytes > _TEXT_BYTES:
            self._flush()

    def table(self) -> pa.Table:
        """Return all rows, in columns named by their position; the cells of a row of another width are all NULL."""
        self._flush()
        tables = self._tables or [self._one_by_one([])]
        return pa.concat_tables(tables).unify_dictionaries().combine_chunks()

    def _flush(self) -> None:
        if self._lines:
            self._tables.append(self._parsed(self._lines))
            self._lines, self._bytes = [], 0

    def _parsed(self, lines: Sequence[bytes]) -> pa.Table:
        names = [str(i) for i in range(self.width)]
        read = csv.ReadOptions(column_names=names, block_size=2 * _TEXT_BYTES, use_threads=self.threads)
        types = {name: _REPEATED if i in self.repeated else pa.string() for i, name in enumerate(names)}
        convert = csv.ConvertOptions(column_types=types, strings_can_be_null=False, check_utf8=False)
        try:
            table = csv.read_csv(pa.py_buffer(b"\n".join(lines)), read, csv.ParseOptions(), convert)
        except pa.ArrowInvalid:  # a row of another width, or longer than a block
            return self._one_by_one(lines)
        return table if table.num_rows == len(lines) else self._one_by_one(lines)

    def _one_by_one(self, lines: Sequence[bytes]) -> pa.Table:
        rows: list[list[str] | list[None]] = []
        for line in lines:
            row = cells(line)
            rows.append(row if row is not None and len(row) == self.width else [None] * self.width)
        found = [pa.array([row[i] for row in rows], pa.string()) for i in range(self.width)]
        columns = [column.dictionary_encode() if i in self.repeated else column for i, column in enumerate(found)]
        return pa.table(columns, names=[str(i) for i in range(self.width)])


def is_cut(line: bytes) -> bool:
    """Return whether a row ends where a cell should follow: ncu quotes every cell, empty ones too."""
    return line.startswith(b'"') and line.endswith(b",")


def quoted(row: Sequence[str]) -> bytes:
    """Return one CSV line with every cell quoted."""
    return ('"' + '","'.join([cell.replace('"', '""') for cell in row]) + '"').encode("utf-8", errors="replace")
