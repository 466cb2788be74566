"""Connections to DuckDB, set as all of ours are."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    import duckdb

_OPEN: WeakSet[duckdb.DuckDBPyConnection] = WeakSet()


def interrupt_all() -> None:
    """End the queries that run on any connection: they raise duckdb.InterruptException. For another thread than theirs."""
    import duckdb

    for connection in list(_OPEN):
        with suppress(duckdb.ConnectionException):  # it is closed already
            connection.interrupt()


def connect(path: Path | None = None) -> duckdb.DuckDBPyConnection:
    """Return a connection to the database at `path` (None: one in memory). Raises duckdb.Error where it cannot be opened.

    It downloads nothing, and writes no progress bar among the rows on standard output. Views here stand upon views, and of
    DuckDB 2.0's optimizer two rules are left out: projection_pullup starts over with each projection that it moves, which took
    half of the time of a question about the roofline, and common_subplan holds all rows of what two parts of a query read,
    gigabytes where that is every launch.
    """
    import duckdb  # only now: what merely lists views does without it

    connection = duckdb.connect() if path is None else duckdb.connect(path)
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET disabled_optimizers = 'projection_pullup,common_subplan'")
    with suppress(duckdb.InvalidInputException):  # in a notebook without ipywidgets, where there is no bar
        connection.execute("SET enable_progress_bar = false")
    _OPEN.add(connection)
    return connection
