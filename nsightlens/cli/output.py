"""How a table leaves the command line: for people in columns, for programs as CSV, JSON or Parquet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from nsightlens import __version__
from nsightlens.cli.messages import remember_store
from nsightlens.cli.pager import print_paged
from nsightlens.cli.target import Target
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.pages.arrow import as_text, rows_of
from nsightlens.pages.tables import ROWS, Style, output_width
from nsightlens.terminal.colour import wanted
from nsightlens.terminal.command import Argument, Command
from nsightlens.terminal.output import echo

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.pages.envelope import About
    from nsightlens.terminal.text import Text

FORMATS = ("table", "csv", "json", "parquet")
PICTURES = (".png", ".svg", ".pdf")
_MOST = 100_000
"""Rows of a table that is written for people into a pipe or a file."""
_T = TypeVar("_T", bound=Callable[..., Any])


class PathOrUrl(click.Path):
    """The type of an argument that is a path or a URL (s3://…)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the Path or RemotePath. Raises UsageError for a URL that holds credentials."""
        from nsightlens.discovery.remote import path_given

        return path_given(value)


def store_option(function: _T) -> _T:
    """Add --store."""
    return click.option("--store", type=PathOrUrl(), default=None, callback=remember_store,
                        help="Folder or URL of the store [default: $NSIGHTLENS_STORE or ./nsightlens-store].")(function)


def views_option(function: _T) -> _T:
    """Add --views."""
    return click.option("--views", type=click.Path(path_type=Path, file_okay=False), default=None, metavar="DIR",
                        help="Folder with views of your own, .sql and .py [default: $NSIGHTLENS_VIEWS].")(function)


def executor_options(function: _T) -> _T:
    """Add --executor, --scheduler and --scheduler-file."""
    function = click.option("--scheduler-file", type=click.Path(path_type=Path, dir_okay=False), default=None,
                            help="The file written by dask scheduler --scheduler-file.")(function)
    function = click.option("--scheduler", default=None, metavar="ADDRESS", help="Address of the Dask scheduler, such as tcp://node1:8786.")(function)
    return click.option("--executor", type=click.Choice(["processes", "dask", "mpi"]), default="processes", show_default=True,
                        help="What reads the captures: processes on this machine, Dask workers, or the ranks of an MPI "
                        "job.")(function)


def format_options(function: _T) -> _T:
    """Add --format and --wide."""
    function = click.option("--wide", is_flag=True, help="Never truncate text in a table.")(function)
    return click.option("-f", "--format", "form", type=click.Choice(FORMATS), default=None,
                        help="Output format [default: table, or from the extension of --output].")(function)


def output_options(function: _T) -> _T:
    """Add --format, --output and --wide."""
    function = click.option("-o", "--output", type=Target(), default=None,
                            help="Write to FILE.csv, .json, .parquet or .txt (the table).")(function)
    return format_options(function)


def emit(
    table: pa.Table, form: str | None, output: Path | None, *, wide: bool = False, units: bool = False, first: Sequence[str] = (),
    texts: Mapping[str, Text] = MappingProxyType({}), about: About | None = None,
) -> None:
    """Write the table to standard output or `output`. Raises NsightlensError where the file cannot be written.

    wide, units, first, texts: how a table for people looks (tables.Style). about: what JSON says beside the rows.
    """
    emit_batches(iter([table]), form, output, wide=wide, units=units, first=first, texts=texts, about=about)


def emit_batches(
    tables: Iterator[pa.Table], form: str | None, output: Path | None, *, wide: bool = False, units: bool = False,
    first: Sequence[str] = (), sums: Sequence[tuple[str, Sequence[str]]] = (), kernels: Sequence[str] = (),
    texts: Mapping[str, Text] = MappingProxyType({}), about: About | None = None,
) -> int:
    """Write tables of one schema, one at least, one below the other; return their rows. Raises as `emit`.

    CSV, JSON and Parquet are written as the tables come; a table for people needs them all, and has the notes of `about` below
    it, which are asked for when all tables have come.
    """
    from nsightlens.pages import envelope

    form = form or format_of(output)
    began = next(tables)  # what is wrong with the question shows here, before a file is touched
    counted = _Counted(chain([began], tables))
    about, command = _at_work(about)
    if form == "parquet":
        _parquet(began.schema, counted, output, about)
    else:
        rows = ROWS if output is None and sys.stdout.isatty() else _MOST
        colour = form == "table" and output is None and wanted(sys.stdout)
        style = Style(None if output else output_width(), wide, units, first, rows, colour=colour, sums=sums, kernels=kernels,
                      texts=texts)
        written = {"table": _text(counted, style, about.notes), "csv": _csv(counted),
                   "json": envelope.rows_as_json(about, command, counted)}[form]
        if form == "table" and output is None:
            print_paged("".join(written), styled=colour)
        else:
            write(written, output)
    return counted.rows


def _at_work(about: About | None) -> tuple[About, Command]:
    """Return what an answer says of itself, and the command that repeats it: the one at work, without its --output."""
    from nsightlens.pages.envelope import About

    context = click.get_current_context()
    said, names, at = about or About(), [str(context.info_name)], context
    while (parent := at.parent) is not None and parent.parent is not None:
        names, at = [str(parent.info_name), *names], parent
    words: list[Argument] = []
    for param in context.command.params:
        given = context.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE
        if given and param.expose_value and param.name != "output":
            words += _words(param, context.params[str(param.name)])
    return replace(said, schema=said.schema or "-".join(names), program=__version__), Command(" ".join(names), tuple(words))


def _words(param: click.Parameter, value: Any) -> list[Argument]:
    """Return the arguments that give a parameter its value."""
    values = value if isinstance(value, tuple) and (param.multiple or param.nargs == -1) else [value]
    if isinstance(param, click.Argument):
        return [one if isinstance(one, PurePath) else str(one) for one in values]
    if isinstance(param, click.Option) and param.is_flag:
        return [(param.opts[-1],)]
    return [(param.opts[-1], one if isinstance(one, PurePath) else str(one)) for one in values]


class _Counted:
    """Tables, and how many rows they had."""

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        self._tables = tables
        self.rows = 0

    def __iter__(self) -> Iterator[pa.Table]:
        for table in self._tables:
            self.rows += table.num_rows
            yield table


def _text(tables: _Counted, style: Style, notes: Callable[[], Sequence[str]]) -> Iterator[str]:
    """Yield the text of all rows, or, of more than are shown, of the first."""
    import pyarrow as pa

    shown = [table for table in tables if style.wide or style.width is None or tables.rows - table.num_rows < style.rows]
    yield as_text(pa.concat_tables(shown), replace(style, of=tables.rows, notes=notes()))


def emit_page(
    tables: Callable[[], Mapping[str, pa.Table]], main: Callable[[], pa.Table], form: str | None, output: Path | None, *,
    wide: bool = False, about: Callable[[Mapping[str, pa.Table]], About] | None = None,
) -> None:
    """Write what is behind a page: as JSON all its tables, lists of rows under "tables", else the one that is its main.

    Only what is written is computed. about: what JSON says beside its tables. Raises as `emit`.
    """
    form = form or format_of(output)
    if form != "json":
        emit(main(), form, output, wide=wide)
        return
    from nsightlens.pages import envelope

    behind = tables()
    said, command = _at_work(about and about(behind))
    write([envelope.tables_as_json(said, command, behind)], output)


def write(texts: Iterable[str], output: Path | None) -> None:
    """Write texts to standard output or a file. Raises NsightlensError where it cannot be written."""
    if output is None:
        for text in texts:
            echo(text, newline=False)
        return
    try:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(texts)
    except OSError as exc:
        raise NsightlensError(f"{output}: cannot be written ({exc.strerror})") from exc


def format_of(output: Path | None) -> str:
    """Return the format that a file's extension sets; without a file, a table. Raises UsageError for an unknown extension."""
    ending = "" if output is None else output.suffix.lower()
    if output is None or ending == ".txt":
        return "table"
    if ending[1:] not in FORMATS:
        raise UsageError(f"{output}: unknown extension; use .csv, .json, .parquet or .txt, or give --format",
                         subject="format", value=output.suffix, choices=FORMATS)
    return ending[1:]


def _parquet(schema: pa.Schema, tables: Iterable[pa.Table], output: Path | None, about: About) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from nsightlens.pages import envelope

    if output is None and sys.stdout.isatty():
        raise UsageError("Parquet is binary: give --output FILE.parquet, or send standard output to a file")
    versions = {name: str(version) for name, version in envelope.versions(about).items()}
    schema = schema.with_metadata({**(schema.metadata or {}), **versions})
    try:
        with pq.ParquetWriter(output or sys.stdout.buffer, schema) as writer:
            for table in tables:
                writer.write_table(table.replace_schema_metadata(schema.metadata))
    except BrokenPipeError:
        raise
    except (OSError, pa.ArrowException) as exc:
        raise NsightlensError(f"{output or 'standard output'}: cannot be written ({exc})") from exc


def _csv(tables: Iterable[pa.Table]) -> Iterator[str]:
    import csv
    import io
    import json

    from nsightlens.pages.envelope import plain

    for number, table in enumerate(tables):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if number == 0:
            writer.writerow(table.column_names)
        for row in rows_of(table):
            writer.writerow([json.dumps(value, default=plain) if isinstance(value, (dict, list)) else value for value in row])
        yield text.getvalue()
