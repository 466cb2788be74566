"""The tables of an SQLite export, read-only, immutable, in pieces of the rowid: through SQLite itself, but columns of integers
are decoded from the pages of the file wherever they are plain (see pages.py)."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import adbc_driver_manager
import adbc_driver_sqlite.dbapi as adbc
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.errors import ReadError, UnknownFormatError
from nsightlens.readers.nsys.pages import Pages, Tree
from nsightlens.readers.nsys.source import (
    PIECE_ROWS,
    STRINGS,
    Kind,
    as_integers,
    as_names,
    as_text,
    canonical,
    in_order,
    is_report,
    is_unread,
)

_ERRORS = (sqlite3.Error, sqlite3.Warning, adbc_driver_manager.Error, OSError, pa.ArrowException, UnicodeDecodeError)
_STRINGS_PER_QUERY = 20_000
_LAST_ROWID = (1 << 63) - 1

Piece = tuple[int, int]
"""First and last rowid of at most PIECE_ROWS rows."""


class SqliteSource:
    """An SQLite export. Nothing is ever written beside or into the file."""

    kind = "nsys sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage: dict[str, int] = Counter()
        self.bad_values: dict[str, int] = Counter()
        self._uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        self._size = path.stat().st_size
        self.truncated = _declared_size(path) > self._size
        self._connection = self._connect()
        self._pages = Pages(path)
        try:
            names = self._tables()
        except _ERRORS as exc:
            self.close()
            raise ReadError(path, f"the SQLite file is damaged ({exc})",
                            "Export the report again: nsys export --type sqlite", "damaged") from exc
        self._names = canonical(names)
        self._columns = {name: self._table_columns(name, actual) for name, actual in self._names.items()}
        self._all = names

    def close(self) -> None:
        """Release the file."""
        self._connection.close()
        self._pages.close()

    def leftovers(self) -> list[str]:
        """Return the suffixes of the journals beside the file that hold changes which this file lacks."""
        found = []
        for suffix in ("-wal", "-journal"):
            beside = self.path.with_name(self.path.name + suffix)
            with suppress(OSError):
                if beside.stat().st_size > 0:
                    found.append(suffix)
        return found

    def columns(self, table: str) -> frozenset[str]:
        """Return the names of the columns of `table`, empty where it is absent."""
        return self._columns.get(table, frozenset())

    def others(self) -> tuple[str, ...]:
        """Return the names of the tables that hold rows and that nothing here reads."""
        return tuple(sorted(name for name in self._all if is_unread(name) and self._value(f"SELECT 1 FROM {_quoted(name)}")))

    def rows(
        self, table: str, columns: Sequence[str], among: tuple[str, Sequence[int | str]] | None = None,
    ) -> list[tuple[object, ...]]:
        """Return rows of a small table in order; `among` keeps those whose column has one of the values."""
        have = self.columns(table)
        if not have or (among and among[0] not in have):
            return []
        chosen = ", ".join(_quoted(name) if name in have else "NULL" for name in columns)
        query = f"SELECT {chosen} FROM {_quoted(self._names[table])}"
        if among:
            query += f" WHERE {_quoted(among[0])} IN ({', '.join('?' * len(among[1]))})"
        found: list[tuple[object, ...]] = []
        try:
            found.extend(self._connection.execute(query, among[1] if among else ()))
        except _ERRORS:
            self.damage[table] += 1
        return found

    def edges(self, table: str, column: str) -> tuple[int, object, object]:
        """Return the number of rows (an upper bound, cheap), and the first and last value of `column`."""
        if column not in self.columns(table):
            return 0, None, None
        extremes = self._extremes(table)
        if extremes is None:
            return 0, None, None
        one = f"SELECT {_quoted(column)} FROM {_quoted(self._names[table])} ORDER BY rowid"
        return extremes[1] - extremes[0] + 1, self._value(f"{one} LIMIT 1"), self._value(f"{one} DESC LIMIT 1")

    def owners(self, table: str, column: str, mask: int, at_most: int, within: int | None = None) -> list[int | None]:
        """Return up to `at_most` distinct values of `column` & `mask`, looking at the first `within` rows only."""
        if column not in self.columns(table):
            return []
        rows = f"SELECT {_quoted(column)} & {mask} AS owner FROM {_quoted(self._names[table])}"
        if within is not None:
            rows += f" LIMIT {within}"
        found: list[int | None] = []
        while len(found) < at_most:
            other = " AND ".join(f"owner IS NOT {'NULL' if owner is None else owner}" for owner in found) or "1"
            try:
                row = self._connection.execute(f"SELECT owner FROM ({rows}) WHERE {other} LIMIT 1").fetchone()
            except _ERRORS:
                return found
            if row is None:
                return found
            found.append(row[0])
        return found

    def strings(self, ids: pa.Array) -> pa.Array:
        """Return the text of each id (int64), NULL where StringIds does not have it."""
        if not {"id", "value"} <= self.columns(STRINGS):
            return pa.nulls(len(ids), pa.string())
        wanted = ids.unique().drop_null()
        found_ids, found_texts = [], []
        for at in range(0, len(wanted), _STRINGS_PER_QUERY):
            listed = ",".join(map(str, wanted[at:at + _STRINGS_PER_QUERY].to_pylist()))
            query = f'SELECT id, "value" FROM {_quoted(self._names[STRINGS])} WHERE id IN ({listed})'
            try:
                batches = self._query(query, _STRINGS_PER_QUERY)
            except _ERRORS:
                batches = self._strings_one_by_one(wanted[at:at + _STRINGS_PER_QUERY].to_pylist())
            for batch in batches:
                found_ids.append(as_integers(batch.column(0))[0])
                found_texts.append(as_text(batch.column(1)))
        if not found_ids:
            return pa.nulls(len(ids), pa.string())
        positions = pc.index_in(ids, value_set=pa.concat_arrays(found_ids), skip_nulls=True)
        return pa.concat_arrays(found_texts).take(positions)

    def batches(self, table: str, columns: Mapping[str, Kind], jobs: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order with those of `columns` that exist, at most PIECE_ROWS at a time."""
        have = self.columns(table)
        present = {name: kind for name, kind in columns.items() if name in have}
        if not present:
            return
        tree, positions = self._plain(table, present)
        for batch in in_order(partial(self._piece, table, present, tree, positions), self._pieces(table), min(jobs, 8)):
            if batch is not None and batch.num_rows:
                yield batch

    # -- the file ----------------------------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._uri, uri=True, check_same_thread=False)
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        # SQLite refuses a file shorter than its header says, and a schema with one bad entry, unless told that the
        # schema may be odd. The file stays read-only.
        with suppress(*_ERRORS):
            connection.execute("PRAGMA writable_schema = ON")
        return connection

    def _tables(self) -> list[str]:
        listed = self._connection.execute("SELECT type, name, rootpage FROM sqlite_master").fetchall()
        everything = {str(name) for _, name, _ in listed}
        tables = [str(name) for type_, name, root in listed if type_ == "table" and root]
        if not is_report(tables):
            raise _foreign(self.path, everything)
        return tables

    def _table_columns(self, table: str, actual: str) -> frozenset[str]:
        try:
            found = frozenset(str(row[1]) for row in self._connection.execute(f"PRAGMA table_info({_quoted(actual)})"))
        except _ERRORS:
            found = frozenset()
        if not found:  # listed in the schema, but its definition is damaged
            self.damage[table] += 1
        return found

    def _value(self, query: str) -> Any:
        try:
            row = self._connection.execute(query).fetchone()
        except _ERRORS:
            return None
        return None if row is None else row[0]

    def _extremes(self, table: str) -> Piece | None:
        """Return the first and last rowid, None for an empty table; where damage hides them, the most the file has room for."""
        name = _quoted(self._names[table])
        try:
            low, high = (self._connection.execute(f"SELECT {which}(rowid) FROM {name}").fetchone()[0] for which in ("min", "max"))
        except _ERRORS:
            low, high = 1, 0
        if low is None or high is None:
            return None
        if high < low:
            self.damage[table] += 1
            return 1, 1 + self._size // 16
        return low, high

    # -- pieces ------------------------------------------------------------------------------------------------

    def _pieces(self, table: str) -> Iterator[Piece]:
        extremes = self._extremes(table)
        if extremes is None:
            return
        low, high = extremes
        if high - low > max(self._size, PIECE_ROWS):  # fewer rows than rowids: count them off instead
            yield from self._sparse_pieces(_quoted(self._names[table]), low)
            return
        for first in range(low, high + 1, PIECE_ROWS):
            yield first, min(first + PIECE_ROWS - 1, high)

    def _sparse_pieces(self, name: str, low: int) -> Iterator[Piece]:
        first: int | None = low
        while first is not None:
            some = f"SELECT rowid AS r FROM {name} WHERE rowid >= {first} ORDER BY rowid LIMIT {PIECE_ROWS}"
            last = self._value(f"SELECT max(r) FROM ({some})")
            if last is None or last < first:
                return
            yield first, last
            first = self._value(f"SELECT min(rowid) FROM {name} WHERE rowid > {last}") if last < _LAST_ROWID else None

    def _plain(self, table: str, columns: Mapping[str, Kind]) -> tuple[Tree | None, dict[str, int]]:
        """Return the tree of pages of the table if its columns can be decoded from them (else None), and their positions."""
        actual = self._names[table]
        try:
            declared = self._connection.execute(f"PRAGMA table_xinfo({_quoted(actual)})").fetchall()
            root = self._value(f"SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = {_literal(actual)}")
            # A generated column (hidden) may not be stored, a key may be the rowid, and a real may be stored as an integer.
            odd = any(hidden for *_, hidden in declared) or any(
                name in columns and (key or _REAL.search(type_)) for _, name, type_, _, _, key, _ in declared)
            if odd or "text" in columns.values() or not isinstance(root, int):
                return None, {}
            return self._pages.tree(root, len(declared)), {name: at for at, name, *_ in declared if name in columns}
        except _ERRORS:
            return None, {}

    def _piece(
        self, table: str, columns: Mapping[str, Kind], tree: Tree | None, positions: dict[str, int], piece: Piece,
    ) -> pa.RecordBatch | None:
        """Return the rows of the piece. One query makes one batch, so that its types are known before it is used."""
        forms = dict.fromkeys(columns, "{0}")
        try:
            found = self._pages.rows(tree, *piece, list(positions.values())) if tree else None
            if found is not None:
                return pa.RecordBatch.from_arrays(found, names=list(positions))
            batch = self._fetch(table, forms, piece)
            odd = [name for name, kind in columns.items()
                   if batch and kind == "integer" and not pa.types.is_int64(batch.column(name).type)]
            if batch and odd:  # text or reals among the integers: NULL for what is not one
                nulls = sum(batch.column(name).null_count for name in odd)
                batch = self._fetch(table, forms | dict.fromkeys(odd, _INTEGER_OR_NULL), piece) or batch
                self.bad_values[table] += sum(batch.column(name).null_count for name in odd) - nulls
        except _ERRORS:
            return self._salvage(table, columns, piece)
        return _typed(batch, columns) if batch else None

    def _fetch(self, table: str, columns: Mapping[str, str], piece: Piece) -> pa.RecordBatch | None:
        chosen = ", ".join(f"{form.format(_quoted(name))} AS {_quoted(name)}" for name, form in columns.items())
        first, last = piece
        batches = self._query(f"SELECT {chosen} FROM {_quoted(self._names[table])} WHERE rowid BETWEEN {first} AND {last} "
                              f"ORDER BY rowid LIMIT {PIECE_ROWS}", PIECE_ROWS)
        return batches[0] if batches else None

    def _query(self, query: str, most_rows: int) -> list[pa.RecordBatch]:
        with closing(adbc.connect(self._uri, autocommit=True)) as connection:
            with closing(connection.cursor()) as cursor:
                cursor.execute("PRAGMA writable_schema = ON")
            options = {"adbc.sqlite.query.batch_rows": str(most_rows)}
            with closing(connection.cursor(adbc_stmt_kwargs=options)) as cursor:
                cursor.execute(query)
                return list(cursor.fetch_record_batch())

    # -- damage ------------------------------------------------------------------------------------------------

    def _salvage(self, table: str, columns: Mapping[str, Kind], piece: Piece) -> pa.RecordBatch:
        """Return the rows of a damaged piece that SQLite still reaches: row by row, and by ever wider steps over a hole."""
        at, last = piece
        chosen = ", ".join(map(_quoted, columns))
        query = (f"SELECT rowid, {chosen} FROM {_quoted(self._names[table])} WHERE rowid BETWEEN ? AND ? "
                 f"ORDER BY rowid LIMIT {PIECE_ROWS}")
        rows: list[tuple[Any, ...]] = []
        step = 1
        with closing(self._connect()) as connection:
            while at <= last:
                before = len(rows)
                try:
                    for row in connection.execute(query, (at, last)):
                        rows.append(row[1:])
                        at = max(at, row[0]) + 1
                    break
                except _ERRORS:
                    self.damage[table] += 1
                    step = 1 if len(rows) > before else step * 2
                    at += step
        by_column = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
        arrays = [_plain_array(values, kind) for values, kind in zip(by_column, columns.values(), strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _strings_one_by_one(self, ids: Sequence[int]) -> list[pa.RecordBatch]:
        query = f'SELECT id, "value" FROM {_quoted(self._names[STRINGS])} WHERE id = ?'
        found = []
        for id_ in ids:
            try:
                found.extend(self._connection.execute(query, (id_,)).fetchall())
            except _ERRORS:
                self.damage[STRINGS] += 1
        texts = [value if isinstance(value, str) else None for _, value in found]
        return [pa.RecordBatch.from_arrays([pa.array([id_ for id_, _ in found], pa.int64()), pa.array(texts, pa.string())],
                                           names=["id", "value"])]


_INTEGER_OR_NULL = (
    "CASE typeof({0}) WHEN 'integer' THEN {0} WHEN 'real' THEN iif({0} = CAST({0} AS INTEGER), CAST({0} AS INTEGER), NULL) END"
)


_REAL = re.compile("REAL|FLOA|DOUB", re.IGNORECASE)


def _typed(batch: pa.RecordBatch, columns: Mapping[str, Kind]) -> pa.RecordBatch:
    turn = {"integer": lambda array: as_integers(array)[0], "text": as_text, "name": as_names}
    arrays = [turn[kind](batch.column(name)) for name, kind in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _plain_array(values: Sequence[object], kind: Kind) -> pa.Array:
    if kind == "integer" or (kind == "name" and not any(isinstance(value, str) for value in values)):
        return pa.array([value if isinstance(value, int) else None for value in values], pa.int64())
    return pa.array([value if isinstance(value, str) else None for value in values], pa.string())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _declared_size(path: Path) -> int:
    """Return the size that the file's own header claims, 0 where the header does not tell."""
    with path.open("rb") as file:
        head = file.read(100)
    if len(head) < 100 or head[24:28] != head[92:96]:  # the page count holds only for the version that wrote it
        return 0
    page = int.from_bytes(head[16:18], "big")
    return int.from_bytes(head[28:32], "big") * (65536 if page == 1 else page)


def _foreign(path: Path, names: set[str]) -> UnknownFormatError:
    if any(name.startswith("view_op_node") or name == "view_system_config" for name in names):
        return UnknownFormatError(path, "a DLProf database, not an nsys export",
                                  "Give the nsys report that DLProf made (nsys_profile.qdrep or .sqlite) instead",
                                  "dlprof_database")
    if "StringTable" in names or any(name.startswith("CUPTI_ACTIVITY_KIND_") for name in names):
        return UnknownFormatError(path, "an nvprof database, not an nsys export",
                                  "Record the program again with nsys profile; nvprof files are not read", "nvprof_database")
    if any(name.startswith("rocpd_") for name in names):
        return UnknownFormatError(path, "a rocprofv3 database, not an nsys export", "ROCm's profiler files are not read",
                                  "rocprof_database")
    if not names:
        return UnknownFormatError(path, "an SQLite database without tables",
                                  "The export may have been interrupted: run nsys export --type sqlite again", "empty_database")
    listed = ", ".join(sorted(name for name in names if name.isidentifier())[:4])
    return UnknownFormatError(path, f"an SQLite database without the tables of an nsys export (it has {listed or 'others'})",
                              "Nothing to do if it belongs to another program", "foreign_database")
