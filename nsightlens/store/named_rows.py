"""Analyses and macros that a statement names like tables: their rows are there, in temporary tables, while it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import duckdb
import pyarrow as pa

_MISSING = re.compile(r'Table with name "?(\w+)"? does not exist')


def fetched(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[object] | Mapping[str, object] | None,
    rows_of: Callable[[str], pa.Table | None], most: int | None = None,
) -> pa.Table:
    """Return the result of a statement, at most so many rows of it (None: all). Raises duckdb.Error.

    rows_of: the rows of what it names and DuckDB does not have; None where nobody has them.
    """
    registered: list[str] = []
    try:
        while True:
            try:
                relation = connection.sql(query, params=parameters or None)
                if relation is None:
                    return pa.table({})
                return (relation if most is None else relation.limit(most)).to_arrow_table()
            except duckdb.CatalogException as exc:
                missing = _MISSING.search(str(exc))
                rows = rows_of(missing[1].lower()) if missing and missing[1] not in registered else None
                if missing is None or rows is None:
                    raise
                connection.register(missing[1], rows)
                registered.append(missing[1])
    finally:
        for name in registered:
            connection.unregister(name)
