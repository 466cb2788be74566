"""nsightlens open: the catalog of a store, fetched where the store lies at a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nsightlens.cli.ingest import contents
from nsightlens.cli.output import PathOrUrl
from nsightlens.terminal.output import echo

if TYPE_CHECKING:
    from pathlib import Path


@click.command("open")
@click.argument("store", required=False, type=PathOrUrl())
def command(store: Path | None) -> None:
    """Fetch the catalog of a remote STORE, and print its local path and what the store holds.

    Every command does this automatically when --store is a URL. The catalog is a DuckDB file that plain duckdb opens. Nothing
    is transferred if the store has not changed since the last fetch.

    \b
    nsightlens open
    nsightlens open s3://bucket/store
    duckdb -readonly $(nsightlens open s3://bucket/store 2> /dev/null)
    """
    import nsightlens as nl

    with nl.open(store) as opened:
        echo(str(opened.catalog))
        contents(opened, set(opened.sql("SELECT DISTINCT run FROM profiles")["run"].to_pylist()))
