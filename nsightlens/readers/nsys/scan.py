"""The rows of one table of an SQLite file, in the order in which SQLite walks over them.

Where the pages of a table are in order, it is read in parts of some leaves: columns of integers are decoded from the pages (see
pages.py), anything else is asked of SQLite by the rowids of the part, and must come to as many rows as the leaves declare. SQLite
searches by rowid, so that one key out of order would hide the rows behind it: a part that does not add up is walked instead,
and a table whose pages are not in order is walked as a whole. Over a hole, where the walk ends, the search goes on by rowid.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import adbc_driver_manager
import adbc_driver_sqlite
import pyarrow as pa

from nsightlens.readers.nsys.pages import LeafRun, SqlitePages, TablePages
from nsightlens.readers.nsys.source import PIECE_ROWS, Kind, as_text, in_order

ERRORS = (sqlite3.Error, sqlite3.Warning, adbc_driver_manager.Error, OSError, OverflowError, pa.ArrowException,
          UnicodeDecodeError)
"""What reading a damaged file may raise, of SQLite and of those who bring its rows."""
_FIRST_ROWID, _LAST_ROWID = -(1 << 63), (1 << 63) - 1
_LEAST_ROW_BYTES = 6
DECODER = "NSIGHTLENS_SQLITE_DECODER"
"""Environment variable that turns the reading of pages off."""
_REAL = re.compile("REAL|FLOA|DOUB", re.IGNORECASE)
TABULAR = "(type IN ('table', 'view') OR sql LIKE 'CREATE TABLE%' OR sql LIKE 'CREATE V%')"
"""Rows of sqlite_master that are tables, views and virtual tables. SQLite goes by the SQL alone: so a damaged type loses none."""
_KEYS = ("rowid", "_rowid_", "oid")

Row = tuple[Any, ...]


class Connection(sqlite3.Connection):
    """A connection to a file, read-only, whose queries end: pages that point to each other are walked over for ever."""

    _STEP = 1_000_000

    def bounded(self, size: int) -> None:
        """Let no query take more than what all rows of a file of `size` bytes could take."""
        self._most, self._steps = 10 + 16 * size // self._STEP, 0
        self.set_progress_handler(self._is_too_long, self._STEP)

    def _is_too_long(self) -> bool:
        self._steps += 1
        return self._steps > self._most

    def execute(self, *query: Any) -> sqlite3.Cursor:
        """Return the cursor of a query, which raises sqlite3.OperationalError where it takes too long."""
        self._steps = 0
        return super().execute(*query)


def connect(path: Path) -> Connection:
    """Return a connection to an SQLite file that neither writes nor locks it. Raises sqlite3.Error."""
    connection = sqlite3.connect(uri(path), uri=True, check_same_thread=False, factory=Connection)
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    connection.bounded(path.stat().st_size)
    # SQLite refuses a file shorter than its header says, and a schema with one bad entry, unless the schema may be
    # odd. The file stays read-only.
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA writable_schema = ON")
    return connection


def uri(path: Path) -> str:
    """Return the name of a file for SQLite: read-only, and no journal looked for."""
    return f"{path.absolute().as_uri()}?mode=ro&immutable=1"


@dataclass(frozen=True, slots=True)
class SqliteTable:
    """A table of a file. key: what its rowid can be called by, None where it has none or columns took all its names.

    plain: the columns that pages may be decoded for, with their positions; width: how many columns there are.
    """

    name: str
    columns: frozenset[str]
    key: str | None
    root: int | None
    width: int
    plain: Mapping[str, int]

    @classmethod
    def of(cls, connection: Connection, name: str) -> SqliteTable:
        """Return what SQLite says of the table. Raises sqlite3.Error."""
        declared = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
        query = f"SELECT min(rootpage) FROM sqlite_master WHERE {TABULAR} AND rootpage AND name = ?"
        (root,) = connection.execute(query, (name,)).fetchone()
        # A generated column (hidden) may not be stored, a key may be the rowid, and a real may be stored as an integer.
        stored = not any(hidden for *_, hidden in declared)
        plain = {column: at for at, column, type_, _, _, key, _ in declared if stored and not key and not _REAL.search(type_)}
        columns = frozenset(str(column) for _, column, *_, hidden in declared if not hidden)
        return cls(name, columns, _key(connection, name, columns), root, len(declared), plain)

    @property
    def rows(self) -> str:
        """The FROM clause of a walk over all rows: an index has its own order, and may lack some."""
        return f"FROM {quoted(self.name)} NOT INDEXED"


def _key(connection: Connection, name: str, columns: frozenset[str]) -> str | None:
    free = (key for key in _KEYS if key not in {column.lower() for column in columns})
    for key in free:
        try:
            connection.execute(f"SELECT {key} FROM {quoted(name)} LIMIT 0")
        except sqlite3.OperationalError:  # WITHOUT ROWID
            return None
        return key
    return None


def _reads_pages() -> bool:
    """Return False where the environment wants SQLite to read everything, or the system lacks preadv."""
    return os.environ.get(DECODER, "").lower() != "off" and hasattr(os, "preadv")


class Scan:
    """The reading of one table: some of its columns, each of a kind. `damage` is called for each place that is damaged, `bad`
    with a number of values that were not of their column's kind."""

    def __init__(
        self, path: Path, pages: SqlitePages, table: SqliteTable, columns: Mapping[str, Kind],
        damage: Callable[[], None], bad: Callable[[int], None], strings: Callable[[pa.Array], pa.Array],
    ) -> None:
        self._path, self._pages, self._table, self._columns = path, pages, table, columns
        self._damage, self._bad, self._strings = damage, bad, strings
        positions = {column: table.plain[column] for column, kind in columns.items()
                     if column in table.plain and kind not in ("text", "hex")}
        self._positions = dict(sorted(positions.items(), key=lambda item: item[1])) if len(positions) == len(columns) else {}
        self._chosen = ", ".join(f"hex({quoted(name)})" if kind == "hex" else quoted(name) for name, kind in columns.items())
        self._walkable = True

    def batches(self, jobs: int) -> Iterator[pa.RecordBatch]:
        """Yield all rows in order, about PIECE_ROWS at a time."""
        tree = self._pages.tree(self._table.root) if _reads_pages() and self._table.root and self._table.key else None
        if tree is None:
            yield from self._walk()
        else:
            for batches in in_order(partial(self._part, tree), tree.parts(PIECE_ROWS), jobs):
                yield from batches

    def _part(self, tree: TablePages, part: LeafRun) -> list[pa.RecordBatch]:
        """Return the rows of a part; what cannot be read of a damaged one costs its own leaf and no other."""
        found = self._pages.rows(tree, part, list(self._positions.values()), self._table.width) if self._positions else None
        if found is not None:
            return [pa.RecordBatch.from_arrays(found, names=list(self._positions))]
        keys = (int(tree.ends[part.start - 1]) + 1 if part.start else _FIRST_ROWID, int(tree.ends[part.stop - 1]))
        count = self._pages.count(tree, part)
        batch = self._between(keys, count) if count is not None else None
        if batch is not None and batch.num_rows == count:
            return [batch]
        walked = self._walked(tree, part)
        if walked is None and part.stop - part.start > 1:
            return [batch for at in range(*part) for batch in self._part(tree, LeafRun(at, at + 1))]
        self._damage()
        return [self._typed(list(self._over_holes(*keys)) if walked is None else walked)]

    def _walked(self, tree: TablePages, part: LeafRun) -> list[Row] | None:
        """Return the rows of a part as SQLite walks over them; None where it meets a hole on its way."""
        if not self._walkable:
            return None
        before, inside = self._pages.cells(tree, LeafRun(0, part.start)), self._pages.cells(tree, part)
        try:
            rows = self._rows(f"SELECT {self._chosen} {self._table.rows} LIMIT {inside} OFFSET {before}")
        except ERRORS:
            self._walkable = False
            return None
        return rows if len(rows) == inside else None

    def _between(self, keys: tuple[int, int], count: int) -> pa.RecordBatch | None:
        """Return the rows with these rowids, which are `count`; None where SQLite finds damage."""
        key = self._table.key
        query = (f"SELECT {self._chosen} FROM {quoted(self._table.name)} WHERE {key} BETWEEN {keys[0]} AND {keys[1]} "
                 f"ORDER BY {key} LIMIT {count}")
        try:
            batch = self._fetched(query, count)
            return batch if batch is not None else self._typed(self._rows(query))
        except ERRORS:
            return None

    def _fetched(self, query: str, count: int) -> pa.RecordBatch | None:
        """Return the rows of a query as one batch, so that its types are those of all rows; None where a column holds values
        of other kinds."""
        with (closing(adbc_driver_sqlite.connect(uri(self._path))) as database,
              closing(adbc_driver_manager.AdbcConnection(database)) as connection):
            _batches(connection, "PRAGMA writable_schema = ON", 1)
            batches = _batches(connection, query, count)
        if len(batches) != 1 or not all(map(_fits, batches[0].schema.types, self._columns.values())):
            return None
        arrays = [as_text(array) if kind in ("text", "hex") else array
                  for array, kind in zip(batches[0].columns, self._columns.values(), strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=list(self._columns))

    def _rows(self, query: str) -> list[Row]:
        with closing(connect(self._path)) as connection:
            return connection.execute(query).fetchall()

    # -- tables whose pages are not in order -------------------------------------------------------------------

    def _walk(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as SQLite walks over them, up to its end or a hole, then those that it finds by rowid behind that."""
        key = self._table.key
        most = self._path.stat().st_size // _LEAST_ROW_BYTES
        last = 0
        with closing(connect(self._path)) as connection:
            try:
                cursor = connection.execute(f"SELECT {key or 'NULL'}, {self._chosen} {self._table.rows} LIMIT {most}")
                for rows in _chunks(cursor):
                    last = max(last, *(row[0] for row in rows)) if key else 0
                    yield self._typed([row[1:] for row in rows])
                return
            except ERRORS:
                self._damage()
        if key and last < _LAST_ROWID:
            yield from map(self._typed, _chunks(self._over_holes(last + 1, _LAST_ROWID)))

    def _over_holes(self, at: int, last: int) -> Iterator[Row]:
        """Yield the rows from rowid `at` to `last` that SQLite still reaches: one by one, by ever wider steps over a hole."""
        key = self._table.key
        query = f"SELECT {key}, {self._chosen} FROM {quoted(self._table.name)} WHERE {key} BETWEEN ? AND ? ORDER BY {key}"
        step = 1
        with closing(connect(self._path)) as connection:
            while at <= last:
                try:
                    for row in connection.execute(query, (at, last)):
                        yield row[1:]
                        at, step = max(at, row[0]) + 1, 1
                    return
                except ERRORS:
                    self._damage()
                    at, step = at + step, step * 2

    def _typed(self, rows: Sequence[Row]) -> pa.RecordBatch:
        """Return rows as they come from SQLite: integers where they belong, texts, and ids or (where any is a text) texts."""
        by_column = list(zip(*rows, strict=True)) if rows else [()] * len(self._columns)
        arrays = [self._array(values, kind) for values, kind in zip(by_column, self._columns.values(), strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=list(self._columns))

    def _array(self, values: Sequence[object], kind: Kind) -> pa.Array:
        if kind in ("text", "hex"):
            return pa.array(list(map(as_string, values)), pa.string())
        if kind == "name" and any(isinstance(value, str | bytes) for value in values):
            ids = self._strings(pa.array([value if isinstance(value, int) else None for value in values], pa.int64())).to_pylist()
            return pa.array([id_ if isinstance(value, int) else as_string(value) for value, id_ in zip(values, ids, strict=True)],
                            pa.string())
        found = pa.array(list(map(_integer, values)), pa.int64())
        self._bad(found.null_count - sum(value is None for value in values))
        return found


def _chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Yield the rows some at a time; those before an error come before it."""
    found: list[Row] = []
    try:
        for row in rows:
            found.append(row)
            if len(found) == PIECE_ROWS:
                yield found
                found = []
    except ERRORS:
        if found:
            yield found
        raise
    if found:
        yield found


def _fits(type_: pa.DataType, kind: Kind) -> bool:
    return bool(pa.types.is_int64(type_) or (kind in ("text", "hex") and pa.types.is_string(type_)))


def _integer(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 63:
        return int(value)
    return value if isinstance(value, int) else None


def as_string(value: object) -> str | None:
    """Return a value of a column of texts: numbers become their text, and bytes that are no UTF-8 U+FFFD."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None if value is None else str(value)


def quoted(name: str) -> str:
    """Return a name for a query."""
    return '"' + name.replace('"', '""') + '"'


def _batches(connection: adbc_driver_manager.AdbcConnection, query: str, rows: int) -> list[pa.RecordBatch]:
    """Return what a query finds, in batches of so many rows. (ADBC's DB-API would import all of Polars where that is there.)"""
    with closing(adbc_driver_manager.AdbcStatement(connection)) as statement:
        statement.set_options(**{"adbc.sqlite.query.batch_rows": str(rows)})
        statement.set_sql_query(query)
        handle, _ = statement.execute_query()
        return list(pa.RecordBatchReader.from_stream(handle))
