"""Tables of kinds in the catalogue: rows and kinds apart, and a view that is the table of the schema.

`kernels` is a view of `_kernels_rows` (what differs from row to row) and `_kernels_kinds` (all else, a row per kind, see
kinds.py): a tenth of the size and of the time to write, and as fast to ask. A column that no profile has a value for is not
in `_kernels_rows` at all.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from nsightlens.kinds import KIND, kinds_of
from nsightlens.schema import TABLES, Table

Types = dict[str, str]


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
    create_view(connection, table, types)


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


def _stored(connection: duckdb.DuckDBPyConnection, table: Table) -> set[str]:
    return {row[0] for row in connection.execute(f"DESCRIBE {rows_of(table.name)}").fetchall()}


def delete(connection: duckdb.DuckDBPyConnection, table: Table, profiles: list[str]) -> None:
    """Delete the rows of profiles."""
    kinds = kinds_of(table.name)
    connection.execute(f"DELETE FROM {rows_of(table.name)} WHERE {KIND} IN "
                       f"(SELECT {KIND} FROM {kinds} WHERE profile_id IN (SELECT unnest(?)))", [profiles])
    connection.execute(f"DELETE FROM {kinds} WHERE profile_id IN (SELECT unnest(?))", [profiles])


def insert(
    connection: duckdb.DuckDBPyConnection, table: Table, types: Types, run: str, rows: Path, kinds: Path,
) -> bool:
    """Insert the rows of one profile from their parts, and return whether the view has to be created anew."""
    filled = _filled(rows, table)
    added = [name for name in filled if name not in _stored(connection, table)]
    for name in added:
        connection.execute(f'ALTER TABLE {rows_of(table.name)} ADD COLUMN "{name}" {types[name]}')
    found = connection.execute(f"SELECT coalesce(max({KIND}) + 1, 0) FROM {kinds_of(table.name)}").fetchone()
    first = found[0] if found else 0
    connection.execute(f"INSERT INTO {kinds_of(table.name)} BY NAME SELECT * REPLACE ({KIND} + ? AS {KIND}), ? AS run "
                       "FROM read_parquet(?, hive_partitioning = false)", [first, run, str(kinds)])
    columns = ", ".join(f'"{name}"' for name in filled)
    connection.execute(f"INSERT INTO {rows_of(table.name)} BY NAME SELECT {KIND} + ? AS {KIND}, {columns} "
                       "FROM read_parquet(?, hive_partitioning = false)", [first, str(rows)])
    return bool(added)


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
