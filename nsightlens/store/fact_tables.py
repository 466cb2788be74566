"""Fact and dimension tables in the catalog, and the views that join them to the tables of the schema.

`kernels` is a view of the fact table `_kernels_facts` (what varies from row to row) and the dimension table `_kernels_templates`
(all else, a row per template, see columns/row_templates.py): a tenth of the size and of the time to write, and as fast to query.
A column that no profile has a value for is not in `_kernels_facts` at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from nsightlens.schema import TABLES, TEMPLATE, Table, templates_of
from nsightlens.store.bundle import Bundle
from nsightlens.store.catalog_tables import facts_of

Types = dict[str, str]
_PARTS = 32
"""Parts that one statement reads."""


def tables() -> list[Table]:
    """Return the tables that are stored as facts and templates."""
    return [table for table in TABLES.values() if table.varying]


def create(connection: duckdb.DuckDBPyConnection, table: Table, types: Types) -> None:
    """Create the empty table. types: DuckDB's type of each column."""
    columns = ", ".join(f'"{name}" {type_}' for name, type_ in types.items() if name not in table.varying)
    connection.execute(f"CREATE TABLE {templates_of(table.name)} ({TEMPLATE} INTEGER, {columns})")
    connection.execute(f"CREATE TABLE {facts_of(table.name)} ({TEMPLATE} INTEGER)")


def create_view(connection: duckdb.DuckDBPyConnection, table: Table, types: Types) -> None:
    """Create or replace the view that is the table, without its documentation."""
    connection.execute(f"CREATE OR REPLACE VIEW {table.name} AS {joined(table, types, _stored(connection, table))}")


def has_view(connection: duckdb.DuckDBPyConnection, table: Table, types: Types) -> bool:
    """Return whether the view of a table in the catalog is the one that `create_view` makes."""
    connection.execute(f"CREATE TEMP VIEW _made AS {joined(table, types, _stored(connection, table))}")
    # DuckDB lists a view that was read from disk with fewer parentheses than a new one.
    text = "translate(regexp_replace(sql, '^.*? AS ', ''), '()', '')"
    query = f"SELECT DISTINCT {text} FROM duckdb_views() WHERE view_name IN ('_made', ?)"
    rows = connection.execute(query, [table.name]).fetchall()
    connection.execute("DROP VIEW temp._made")
    return len(rows) == 1


def joined(table: Table, types: Types, stored: Collection[str], database: str = "") -> str:
    """Return the query for the rows of a table. stored: the columns of its facts. database: where these are, with its point."""
    def expression(name: str, type_: str) -> str:
        if name not in table.varying:
            return f't."{name}"'
        return f'f."{name}"' if name in stored else f'NULL::{type_} AS "{name}"'

    columns = ", ".join(expression(name, type_) for name, type_ in types.items())
    return (f"SELECT {columns} FROM {database}{facts_of(table.name)} AS f "
            f"JOIN {database}{templates_of(table.name)} AS t ON f.{TEMPLATE} = t.{TEMPLATE}")


def _stored(connection: duckdb.DuckDBPyConnection, table: Table) -> list[str]:
    """Return the columns that the fact table has."""
    return [row[0] for row in connection.execute(f"DESCRIBE {facts_of(table.name)}").fetchall()]


def delete(connection: duckdb.DuckDBPyConnection, table: Table, profiles: list[str]) -> None:
    """Delete the rows of profiles."""
    templates = templates_of(table.name)
    connection.execute(f"DELETE FROM {facts_of(table.name)} WHERE {TEMPLATE} IN "
                       f"(SELECT {TEMPLATE} FROM {templates} WHERE profile_id IN (SELECT unnest(?)))", [profiles])
    connection.execute(f"DELETE FROM {templates} WHERE profile_id IN (SELECT unnest(?))", [profiles])


def insert(connection: duckdb.DuckDBPyConnection, table: Table, types: Types, incoming: Sequence[Bundle]) -> bool:
    """Insert the rows of parts; return whether columns came with them: `create_view` is due."""
    incoming = [one for one in incoming if table.name in one.files]
    columns = _stored(connection, table)
    before = len(columns)
    for one in incoming:
        for name in _filled(one.files[table.name], table):
            if name not in columns:
                connection.execute(f'ALTER TABLE {facts_of(table.name)} ADD COLUMN "{name}" {types[name]}')
                columns.append(name)
    first_free = connection.execute(f"SELECT coalesce(max({TEMPLATE}) + 1, 0) FROM {templates_of(table.name)}").fetchone()
    first = first_free[0] if first_free else 0
    listed = ", ".join(f'"{name}"' for name in columns if name != TEMPLATE)
    for some in _batches(incoming):
        values: list[object] = []
        facts: list[object] = []
        for one in some:
            values += [first, one.run, str(one.files[templates_of(table.name)])]
            facts += [first, str(one.files[table.name])]
            first += sum(one.rows[templates_of(table.name)].values())
        part = "FROM read_parquet(?, hive_partitioning = false)"
        of_template = f"SELECT * REPLACE ({TEMPLATE} + ? AS {TEMPLATE}), ? AS run {part}"
        of_templates = " UNION ALL BY NAME ".join([of_template] * len(some))
        of_facts = " UNION ALL BY NAME ".join([f"SELECT {TEMPLATE} + ? AS {TEMPLATE}, {listed} {part}"] * len(some))
        connection.execute(f"INSERT INTO {templates_of(table.name)} BY NAME {of_templates}", values)
        with _one_thread(connection, any(types[name].startswith("MAP") for name in columns if name != TEMPLATE)):
            connection.execute(f"INSERT INTO {facts_of(table.name)} BY NAME {of_facts}", facts)
    return len(columns) > before


@contextmanager
def _one_thread(connection: duckdb.DuckDBPyConnection, wanted: bool) -> Iterator[None]:
    """Let one thread do the block: threads that write maps side by side take twice the time of one."""
    if wanted:
        connection.execute("SET threads = 1")
    yield
    if wanted:
        connection.execute("RESET threads")


def _batches(incoming: Sequence[Bundle]) -> Iterator[Sequence[Bundle]]:
    return (incoming[first : first + _PARTS] for first in range(0, len(incoming), _PARTS))


def _filled(part: Path, table: Table) -> list[str]:
    """Return the varying columns that have a value in the part."""
    filled = set()
    import pyarrow.parquet as pq

    with pq.ParquetFile(part) as file:
        metadata = file.metadata
        for group in range(metadata.num_row_groups):
            for index in range(metadata.num_columns):
                column = metadata.row_group(group).column(index)
                statistics = column.statistics
                if statistics is None or not statistics.has_null_count or statistics.null_count < column.num_values:
                    filled.add(column.path_in_schema.split(".")[0])
    return [name for name in table.varying if name in filled]
