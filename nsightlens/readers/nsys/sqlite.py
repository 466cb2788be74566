"""The tables of an SQLite export, read-only, immutable: what they are called, and through SQLite itself those that are small.
Those of events are read by scan.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.errors import ReadError, UnknownFormatError
from nsightlens.readers.nsys.pages import SqlitePages
from nsightlens.readers.nsys.scan import ERRORS, TABULAR, Scan, SqliteTable, as_string, connect, quoted
from nsightlens.readers.nsys.source import DECODED, STRINGS, Kind, canonical, is_report, is_unread
from nsightlens.terminal.quoting import Verbatim

_STRINGS_PER_QUERY = 20_000
_NO_TABLE = SqliteTable("", frozenset(), None, None, 0, {})


class SqliteSource:
    """An SQLite export. Nothing is ever written beside or into the file."""

    kind = "nsys sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage: dict[str, int] = Counter()
        self.bad_values: dict[str, int] = Counter()
        self.truncated = _declared_size(path) > path.stat().st_size
        self._pages = SqlitePages(path)
        self._connection = connect(path)
        try:
            names, self.stand_ins = self._listed()
        except UnknownFormatError:
            self.close()
            raise
        except ERRORS as exc:
            self.close()
            raise ReadError(path, f"the SQLite file is damaged ({exc})",
                            ("Export the report again: ", Verbatim("nsys export --type sqlite")), "damaged") from exc
        self._tables = {name: self._table(name, actual) for name, actual in canonical(names).items()}
        self._others = self._unread(names)

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
        return self._tables.get(table, _NO_TABLE).columns

    def decoded(self) -> list[str]:
        """Return the tables of payloads that the exporter decoded."""
        return sorted(filter(DECODED.fullmatch, self._tables))

    def others(self) -> dict[str, int]:
        """Return the tables that hold rows and that nothing here reads, by name, with their rows."""
        return {name: self._count(name) for name in self._others}

    def rows(
        self, table: str, columns: Sequence[str], among: tuple[str, Sequence[int | str]] | None = None,
    ) -> list[tuple[object, ...]]:
        """Return rows of a small table in order; `among` keeps those whose column has one of the values."""
        have = self.columns(table)
        if not have or (among and among[0] not in have):
            return []
        chosen = ", ".join(quoted(name) if name in have else "NULL" for name in columns)
        query = f"SELECT {chosen} {self._tables[table].rows}"
        if among:
            query += f" WHERE {quoted(among[0])} IN ({', '.join('?' * len(among[1]))})"
        found: list[tuple[object, ...]] = []
        try:
            found.extend(self._connection.execute(query, among[1] if among else ()))
        except ERRORS:
            self.damage[table] += 1
        return found

    def edges(self, table: str, column: str) -> tuple[int, object, object]:
        """Return the number of rows (an upper bound, cheap), and the first and last value of `column`."""
        if column not in self.columns(table):
            return 0, None, None
        key, rows = self._tables[table].key, self._tables[table].rows
        if key is None:
            return self._value(f"SELECT count(*) {rows}") or 0, self._value(f"SELECT {quoted(column)} {rows} LIMIT 1"), None
        low, high = (self._value(f"SELECT {which}({key}) {rows}") for which in ("min", "max"))
        if low is None or high is None or high < low:
            return 0, None, None
        one = f"SELECT {quoted(column)} {rows} ORDER BY {key}"
        return high - low + 1, self._value(f"{one} LIMIT 1"), self._value(f"{one} DESC LIMIT 1")

    def owners(self, table: str, column: str, mask: int, at_most: int, within: int | None = None) -> list[int | None]:
        """Return up to `at_most` distinct values of `column` & `mask`, looking at the first `within` rows only."""
        if column not in self.columns(table):
            return []
        rows = f"SELECT {quoted(column)} & {mask} AS owner {self._tables[table].rows}"
        if within is not None:
            rows += f" LIMIT {within}"
        found: list[int | None] = []
        while len(found) < at_most:
            other = " AND ".join(f"owner IS NOT {'NULL' if owner is None else owner}" for owner in found) or "1"
            try:
                row = self._connection.execute(f"SELECT owner FROM ({rows}) WHERE {other} LIMIT 1").fetchone()
            except ERRORS:
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
        found: dict[int, str | None] = {}
        for at in range(0, len(wanted), _STRINGS_PER_QUERY):
            found |= self._strings_of(wanted[at:at + _STRINGS_PER_QUERY].to_pylist())
        if not found:
            return pa.nulls(len(ids), pa.string())
        texts = pa.array(list(found.values()), pa.string())
        return texts.take(pc.index_in(ids, value_set=pa.array(list(found), pa.int64()), skip_nulls=True))

    def batches(self, table: str, columns: Mapping[str, Kind], jobs: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order with those of `columns` that exist, about PIECE_ROWS at a time."""
        have = self.columns(table)
        present = {name: kind for name, kind in columns.items() if name in have}
        if not present:
            return

        def damage() -> None:
            self.damage[table] += 1

        def bad(count: int) -> None:
            self.bad_values[table] += count

        scan = Scan(self.path, self._pages, self._tables[table], present, damage, bad, self.strings)
        yield from (batch for batch in scan.batches(min(jobs, 8)) if batch.num_rows)

    # -- the file ----------------------------------------------------------------------------------------------

    def _listed(self) -> tuple[list[str], tuple[str, ...]]:
        """Return the names of the tables, and those of known tables in whose place is something else: a view, a virtual table.
        Raises UnknownFormatError where it is another program's database."""
        listed = [(str(name), root, bool(tabular)) for name, root, tabular in
                  self._connection.execute(f"SELECT name, rootpage, {TABULAR} FROM sqlite_master").fetchall()]
        tables = [name for name, root, tabular in listed if tabular and root]
        others = [name for name, root, tabular in listed if tabular and not root]
        if not is_report([*tables, *others]):
            raise _foreign(self.path, {name for name, *_ in listed})
        return tables, tuple(sorted(name for name in others if canonical([name])))

    def _table(self, table: str, actual: str) -> SqliteTable:
        try:
            found = SqliteTable.of(self._connection, actual)
        except ERRORS:
            found = _NO_TABLE
        if not found.columns:  # listed in the schema, but its definition is damaged
            self.damage[table] += 1
        return found

    def _unread(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the tables that nothing here reads and that have rows. One that SQLite cannot open is damage: it may be a known
        one, whose name is damaged."""
        found = []
        for name in sorted(name for name in names if not canonical([name])):
            try:
                has_rows = self._connection.execute(f"SELECT 1 FROM {quoted(name)}").fetchone()
            except ERRORS:
                self.damage[name] += 1
                continue
            if has_rows and is_unread(name):
                found.append(name)
        return tuple(found)

    def _count(self, table: str) -> int:
        """Return the rows of a table: as nsys numbers them from 1, the last number says it without a look at them."""
        low, high = (self._value(f"SELECT {which}(rowid) FROM {quoted(table)}") for which in ("min", "max"))
        if low == 1 and isinstance(high, int):
            return high
        return self._value(f"SELECT count(*) FROM {quoted(table)}") or 0

    def _value(self, query: str) -> Any:
        try:
            row = self._connection.execute(query).fetchone()
        except ERRORS:
            return None
        return None if row is None else row[0]

    def _strings_of(self, ids: Sequence[int]) -> dict[int, str | None]:
        """Return the texts of ids that are there. Where SQLite finds damage each is looked for by itself."""
        query = f'SELECT id, "value" FROM {quoted(self._tables[STRINGS].name)} WHERE id'
        try:
            found = self._connection.execute(f"{query} IN ({','.join(map(str, ids))})").fetchall()
        except ERRORS:
            found = []
            for id_ in ids:
                try:
                    found.extend(self._connection.execute(f"{query} = ?", (id_,)).fetchall())
                except ERRORS:
                    self.damage[STRINGS] += 1
        return {id_: as_string(value) for id_, value in found if isinstance(id_, int)}


def _declared_size(path: Path) -> int:
    """Return the size that the file's own header claims, 0 where the header lacks it."""
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
                              "Ignore this if it belongs to another program", "foreign_database")
