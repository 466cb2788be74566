"""nsightlens sql: one statement on the store."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nsightlens.cli.output import emit, output_options, store_option, views_option


@click.command("sql")
@click.argument("statement")
@store_option
@views_option
@output_options
@click.option("--allow-files", is_flag=True, help="Let the statement read and write other files.")
def command(
    statement: str, store: Path | None, views: Path | None, form: str | None, output: Path | None, wide: bool, allow_files: bool,
) -> None:
    """Run one SQL STATEMENT on the store (DuckDB's dialect) and print the result.

    It may name every table and view: FROM busy_time, or FROM busy_time(per := 'process'). The store is never changed. Rows are
    of all runs and all tools unless the statement says otherwise: views never add these up, a sum in SQL does. timeline_kernels
    has each launch of a run once. Use - to read the statement from standard input.

    \b
    nsightlens sql "SELECT tool, rank, family, sum(duration_ns) FROM kernels GROUP BY ALL"
    nsightlens sql "SELECT name, metrics['dram__bytes.sum'] FROM kernels WHERE tool = 'ncu'" --format csv
    """
    import nsightlens as nl
    from nsightlens.pipeline.memory import spare_pandas

    spare_pandas()
    text = sys.stdin.read() if statement == "-" else statement
    with nl.open(store, views=views) as opened:
        if allow_files:
            opened.allow_files()
        emit(opened.sql(text), form, output, wide=wide)
