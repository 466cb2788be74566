"""nsightlens reconcile: whether the parts of a table sum to its total."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsightlens.cli.output import emit, output_options
from nsightlens.terminal.output import echo
from nsightlens.views.figures import counted

if TYPE_CHECKING:
    import pyarrow as pa


@click.command("reconcile")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("balances", metavar="BALANCE...", nargs=-1, required=True)
@output_options
@click.pass_context
def command(
    ctx: click.Context, file: Path, balances: tuple[str, ...], form: str | None, output: Path | None, wide: bool,
) -> None:
    """Print the rows of FILE (CSV or Parquet) whose parts do not sum to their total; exit code 1 if there are any.

    Each BALANCE states which parts sum to which total, row by row, or over the rows of a group:

    \b
    nsightlens show busy_time -o busy.csv
    nsightlens reconcile busy.csv "span_ns = busy_ns + idle_ns"
    nsightlens reconcile parts.csv "step_ns = total_ns per rank, step"
    """
    from nsightlens.errors import UsageError
    from nsightlens.views.balance import parse_balance, reconcile

    parsed = [parse_balance(text) for text in balances]
    table = _read(file)
    wrong = 0
    for balance in parsed:
        try:
            off = reconcile(table, balance)
        except UsageError as exc:
            raise UsageError(f"{file}: {exc}") from exc
        wrong += off.num_rows
        if off.num_rows:
            emit(off, form, output, wide=wide)
        checked = counted(table.num_rows, "row")
        verdict = f"{off.num_rows} do not balance" if off.num_rows else "balances"
        echo(f"{balance}: {verdict} ({checked})", err=True)
    ctx.exit(1 if wrong else 0)


def _read(path: Path) -> pa.Table:
    """Return the file's table, the cells of a CSV as text. Raises ReadError."""
    import csv

    import pyarrow as pa
    import pyarrow.parquet as pq

    from nsightlens.errors import ReadError

    try:
        with path.open("rb") as file:
            if file.read(4) == b"PAR1":
                return pq.read_table(path)
        rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error, pa.ArrowException) as exc:
        raise ReadError(path, f"cannot be read as CSV or Parquet ({exc})", "Save it as a CSV in UTF-8") from exc
    rows = [row for row in rows if row]
    if not rows or any(len(row) != len(rows[0]) for row in rows) or len(set(rows[0])) < len(rows[0]):
        raise ReadError(path, "is not a CSV with one header line of distinct column names and equally long "
                              "rows", "Correct the file")
    return pa.table({name: pa.array(list(cells), pa.string())
                     for name, *cells in zip(*rows, strict=True)})
