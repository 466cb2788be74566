"""Answers across profiles: rows of views of scope run, and of totals over them, computed after an ingest and kept in the catalog.

The table _across has them, as Arrow's IPC stream. They hold for all that the catalog holds, so that a commit that changes it
drops them; and for the code that computed them: those of another are never read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property

import duckdb
import pyarrow as pa

from nsightlens.views.signature import code_digest

Rows = Mapping[tuple[str, str], pa.Table]
"""(View, question) -> the rows that answer it."""


def question(parameters: Mapping[str, object]) -> str:
    """Return what is asked of a view, as text: its parameters."""
    return json.dumps(dict(parameters), sort_keys=True, default=str)


def are_kept(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether the catalog has any that this code computed."""
    with suppress(duckdb.CatalogException):  # no such table
        return bool(connection.execute("FROM catalog._across WHERE code = ? LIMIT 1", [code_digest()]).fetchall())
    return False


class Kept:
    """The answers across profiles of an open catalog."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    @cached_property
    def _are_kept(self) -> bool:
        return are_kept(self._connection)

    def find(self, view: str, parameters: Mapping[str, object]) -> pa.Table | None:
        """Return the rows of a view with these parameters; None where they are not kept."""
        if not self._are_kept:
            return None
        query = "SELECT rows FROM catalog._across WHERE view_name = ? AND question = ? AND code = ?"
        found = self._connection.execute(query, [view, question(parameters), code_digest()]).fetchall()
        with suppress(pa.ArrowException):  # not as we keep them
            return pa.ipc.open_stream(found[0][0]).read_all() if found else None
        return None


def keep(connection: duckdb.DuckDBPyConnection, rows: Rows) -> None:
    """Have the catalog keep these, and no others."""
    forget(connection)
    connection.execute("CREATE TABLE _across (view_name VARCHAR, question VARCHAR, code VARCHAR, rows BLOB)")
    for (view, asked), table in rows.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        connection.execute("INSERT INTO _across VALUES (?, ?, ?, ?)", [view, asked, code_digest(), sink.getvalue().to_pybytes()])


def forget(connection: duckdb.DuckDBPyConnection) -> None:
    """Have the catalog keep none."""
    connection.execute("DROP TABLE IF EXISTS _across")
