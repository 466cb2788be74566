"""How a table leaves the command line: for people in columns, for programs as CSV, JSON or Parquet."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nsightlens.errors import NsightlensError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("table", "csv", "json", "parquet")
_MAX_TEXT = 72
_T = TypeVar("_T", bound=Callable[..., Any])


def store_option(function: _T) -> _T:
    """Add --store."""
    return click.option("--store", type=click.Path(path_type=Path), default=None,
                        help="Folder of the store [default: $NSIGHTLENS_STORE or ./nsightlens-store].")(function)


def output_options(function: _T) -> _T:
    """Add --format, --output and --wide."""
    function = click.option("--wide", is_flag=True, help="Never shorten texts in a table.")(function)
    function = click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default=None,
                            help="Write to a file; its ending gives the format.")(function)
    return click.option("-f", "--format", "form", type=click.Choice(FORMATS), default=None,
                        help="Format of the output [default: table, or by the ending of --output].")(function)


def emit(table: pa.Table, form: str | None, output: Path | None, *, wide: bool = False) -> None:
    """Write the table to standard output or `output`. Raises NsightlensError where the file cannot be written."""
    form = form or _by_ending(output) or "table"
    if form == "parquet":
        _parquet(table, output)
        return
    text = {"table": lambda: as_text(table, wide), "csv": lambda: _csv(table), "json": lambda: _json(table)}[form]()
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise NsightlensError(f"{output}: cannot be written ({exc.strerror})") from exc


def _by_ending(output: Path | None) -> str | None:
    return output.suffix[1:] if output and output.suffix[1:] in FORMATS else None


def _parquet(table: pa.Table, output: Path | None) -> None:
    import pyarrow.parquet as pq

    if output is None and sys.stdout.isatty():
        raise UsageError("Parquet is binary: give --output FILE.parquet, or send standard output to a file")
    try:
        pq.write_table(table, output or sys.stdout.buffer)
    except OSError as exc:
        raise NsightlensError(f"{output}: cannot be written ({exc})") from exc


def _csv(table: pa.Table) -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in _rows(table):
        writer.writerow(["" if v is None else json.dumps(v) if isinstance(v, (dict, list)) else v for v in row])
    return text.getvalue()


def _json(table: pa.Table) -> str:
    records = [dict(zip(table.column_names, map(_jsonable, row), strict=True)) for row in _rows(table)]
    return json.dumps(records, indent=1, ensure_ascii=False, default=str) + "\n"


def _jsonable(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = []
    for column in table.columns:
        values = column.to_pylist()
        if str(column.type).startswith("map"):
            values = [None if v is None else dict(v) for v in values]
        columns.append([int(v) if isinstance(v, Decimal) and v == int(v) else float(v) if isinstance(v, Decimal) else v
                        for v in values])
    return list(zip(*columns, strict=True))


def as_text(table: pa.Table, wide: bool = False) -> str:
    """Return the table in columns as wide as the terminal; long texts are cut in their middle unless `wide`."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() and not wide else 100_000, highlight=False, file=sys.stdout)
    rich = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, type_ in zip(table.column_names, table.schema.types, strict=True):
        text = str(type_).startswith(("string", "dictionary", "large_string"))
        rich.add_column(Text(name), justify="left" if text else "right", no_wrap=not text or wide,
                        overflow="ellipsis" if not text else "fold", min_width=min(len(name), 12) if not text else 6)
    rows = _rows(table)
    decimals = [_decimals([row[i] for row in rows]) for i in range(table.num_columns)]
    for row in rows:
        rich.add_row(*(Text(_cell(value, wide, places)) for value, places in zip(row, decimals, strict=True)))
    with console.capture() as captured:
        console.print(rich)
        if not table.num_rows:
            console.print("(no rows)")
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def _decimals(values: list[object]) -> int | None:
    """Return the decimals that show every float of a column as it is, up to 2; None where they need more."""
    floats = [v for v in values if isinstance(v, float) and math.isfinite(v)]
    return next((places for places in range(1, 3) if all(round(v, places) == v for v in floats)), None)


def _cell(value: object, wide: bool, decimals: int | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if decimals is not None:
            return f"{value:,.{decimals}f}"
        return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"
    text = printable(str(value))
    if wide or len(text) <= _MAX_TEXT:
        return text
    half = (_MAX_TEXT - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def printable(text: str) -> str:
    """Return the text without control characters: a kernel name must not steer the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
