"""Catalogs for tests: every table and view of a store in a DuckDB, with rows given in the test itself.

DuckDB takes half a second to create the views. So they are created once in a process, and each catalog is a copy of that file.
"""

from __future__ import annotations

import atexit
import csv
import json
import shutil
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from nsightlens import schema
from nsightlens.analyses import Ask
from nsightlens.store.shared_views import SharedViews
from nsightlens.views import registry
from nsightlens.views.connection import connect
from nsightlens.views.header import PACKAGE

_number = count(1)


def catalog(**tables: list[dict[str, Any]]) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB with all tables of the schema, those rows in them, and the views."""
    blank = _blank()
    connection = connect(shutil.copyfile(blank, blank.with_stem(f"catalog{next(_number)}")))
    connection.execute("PRAGMA disable_checkpoint_on_shutdown")  # nobody opens the file again
    connection.begin()
    fill(connection, **tables)
    connection.commit()
    return connection


class _Asked:
    """A catalog that stays as it is: like a store, it has what several analyses stand on computed once (analyses.once)."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._shared = SharedViews(connection, {})

    def ask(self, query: str, values: Sequence[object]) -> pa.Table:
        self._shared.compute(query)
        return self._connection.sql(query, params=list(values) or None).to_arrow_table()


def asking(connection: duckdb.DuckDBPyConnection) -> Ask:
    """Return what answers the queries of an analysis from a catalog that stays as it is, as a small store does."""
    return _Asked(connection).ask


@lru_cache(maxsize=1)
def _blank() -> Path:
    """Return a catalog without rows, in a folder that goes when the tests end."""
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    path = Path(folder.name) / "blank.duckdb"
    with connect(path) as connection:
        tables_without_rows(connection)
        registry.create(connection)
    return path


def tables_without_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables that a store's catalog has."""
    for name, table in schema.TABLES.items():
        connection.register("_rows", table.schema.empty_table())
        connection.execute(f"CREATE TABLE {name} AS FROM _rows")
    peaks = PACKAGE / "gpus.csv"
    connection.execute("CREATE TABLE gpu_peaks AS FROM read_csv(?, header = true)", [str(peaks)])


def fill(connection: duckdb.DuckDBPyConnection, **tables: list[dict[str, Any]]) -> None:
    """Insert rows, given as dicts by column name."""
    for name, rows in tables.items():
        unknown = {column for row in rows for column in row} - set(schema.TABLES[name].schema.names)
        assert not unknown, f"the test gives {name} columns that it has not: {', '.join(sorted(unknown))}"
        plain = [(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in schema.TABLES[name].schema]
        connection.register("_rows", pa.Table.from_pylist(rows, schema=pa.schema(plain)))
        connection.execute(f"INSERT INTO {name} FROM _rows")


def rows_of(table: str, text: str) -> list[dict[str, Any]]:
    """Return the rows of a CSV as values of the table's types; an empty cell is NULL."""
    types = {c.name: c.type for c in schema.TABLES[table].columns}
    return [{k: _value(v, types[k]) for k, v in row.items()} for row in csv.DictReader(text.strip().splitlines())]


def _value(text: str, type_: pa.DataType) -> Any:
    if text == "":
        return None
    if pa.types.is_map(type_):
        return list(json.loads(text).items())
    if pa.types.is_boolean(type_):
        return text == "true"
    return int(text) if pa.types.is_integer(type_) else float(text) if pa.types.is_floating(type_) else text
