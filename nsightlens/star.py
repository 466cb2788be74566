"""Tables of kinds in the catalogue: rows and kinds apart, and a view that is the table of the schema.

`kernels` is a view of `_kernels_rows` (what differs from row to row) and `_kernels_kinds` (all else, a row per kind, see
kinds.py): a tenth of the size and of the time to write, and as fast to ask. A column that no profile has a value for is not
in `_kernels_rows` at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from nsightlens.kinds import KIND, kinds_of
from nsightlens.schema import TABLES, Table

Types = dict[str, str]
Part = tuple[str, str, str, str, int]
"""Table, run, profile, path below the store, rows."""
_PARTS = 32
"""Parts that one statement reads."""


def rows_of(table: str) -> str:
    """Return the name of the catalogue's table that holds what differs from row to row."""
    return f"_{table}_rows"


def tables() -> list[Table]:
    """Return the tables that are stored as kinds."""
    return [table for table in TABLES.values() if table.varying]


def create(connection: duckdb.DuckDBPyConnection, table: Table, types: Types) -> None:
    """Create the empty table. types: DuckDB's type of each column."""
    columns = ", ".join(f'"{name}" {type_}' for name, type_ in types.items() if name not in table.varying)
    connection.execute(f"CREATE TABLE {kinds_of(table.name)} ({KIND} INTEGER, {columns})")
    connection.execute(f"CREATE TABLE {rows_of(table.name)} ({KIND} INTEGER)")


def create_view(connection: duckdb.DuckDBPyConnection, table: Table, types: Types) -> None:
    """Create or replace the view that is the table, without its documentation."""
    stored = _stored(connection, table)

    def expression(name: str, type_: str) -> str:
        if name not in table.varying:
            return f'k."{name}"'
        return f'r."{name}"' if name in stored else f'NULL::{type_} AS "{name}"'

    columns = ", ".join(expression(name, type_) for name, type_ in types.items())
    connection.execute(f"CREATE OR REPLACE VIEW {table.name} AS SELECT {columns} "
                       f"FROM {rows_of(table.name)} AS r JOIN {kinds_of(table.name)} AS k ON r.{KIND} = k.{KIND}")


def _stored(connection: duckdb.DuckDBPyConnection, table: Table) -> list[str]:
    """Return the columns that rows_of(table) has."""
    return [row[0] for row in connection.execute(f"DESCRIBE {rows_of(table.name)}").fetchall()]


def delete(connection: duckdb.DuckDBPyConnection, table: Table, profiles: list[str]) -> None:
    """Delete the rows of profiles."""
    kinds = kinds_of(table.name)
    connection.execute(f"DELETE FROM {rows_of(table.name)} WHERE {KIND} IN "
                       f"(SELECT {KIND} FROM {kinds} WHERE profile_id IN (SELECT unnest(?)))", [profiles])
    connection.execute(f"DELETE FROM {kinds} WHERE profile_id IN (SELECT unnest(?))", [profiles])


def insert(connection: duckdb.DuckDBPyConnection, table: Table, types: Types, moved: list[Part], root: Path) -> bool:
    """Insert the rows of profiles from their parts below `root`; say whether columns came with them: `create_view` is due."""
    paths = {(name, profile): str(root / path) for name, _, profile, path, _ in moved}
    kinds = [(run, profile, path, count) for name, run, profile, path, count in moved if name == kinds_of(table.name)]
    columns = _stored(connection, table)
    before = len(columns)
    for _, profile, _, _ in kinds:
        for name in _filled(Path(paths[table.name, profile]), table):
            if name not in columns:
                connection.execute(f'ALTER TABLE {rows_of(table.name)} ADD COLUMN "{name}" {types[name]}')
                columns.append(name)
    found = connection.execute(f"SELECT coalesce(max({KIND}) + 1, 0) FROM {kinds_of(table.name)}").fetchone()
    first = found[0] if found else 0
    listed = ", ".join(f'"{name}"' for name in columns if name != KIND)
    for some in _batches(kinds):
        values: list[object] = []
        rows: list[object] = []
        for run, profile, path, count in some:
            values += [first, run, str(root / path)]
            rows += [first, paths[table.name, profile]]
            first += count
        part = "FROM read_parquet(?, hive_partitioning = false)"
        of_kinds = " UNION ALL BY NAME ".join([f"SELECT * REPLACE ({KIND} + ? AS {KIND}), ? AS run {part}"] * len(some))
        of_rows = " UNION ALL BY NAME ".join([f"SELECT {KIND} + ? AS {KIND}, {listed} {part}"] * len(some))
        connection.execute(f"INSERT INTO {kinds_of(table.name)} BY NAME {of_kinds}", values)
        with _one_thread(connection, any(types[name].startswith("MAP") for name in columns if name != KIND)):
            connection.execute(f"INSERT INTO {rows_of(table.name)} BY NAME {of_rows}", rows)
    return len(columns) > before


@contextmanager
def _one_thread(connection: duckdb.DuckDBPyConnection, wanted: bool) -> Iterator[None]:
    """Let one thread do the block: threads that write maps side by side take twice the time of one."""
    if wanted:
        connection.execute("SET threads = 1")
    yield
    if wanted:
        connection.execute("RESET threads")


def _batches(parts: list[Any]) -> Iterator[list[Any]]:
    return (parts[first : first + _PARTS] for first in range(0, len(parts), _PARTS))


def _filled(part: Path, table: Table) -> list[str]:
    """Return the varying columns that have a value in the part."""
    filled = set()
    with pq.ParquetFile(part) as file:
        metadata = file.metadata
        for group in range(metadata.num_row_groups):
            for index in range(metadata.num_columns):
                column = metadata.row_group(group).column(index)
                statistics = column.statistics
                if statistics is None or not statistics.has_null_count or statistics.null_count < column.num_values:
                    filled.add(column.path_in_schema.split(".")[0])
    return [name for name in table.varying if name in filled]
