"""nsightlens show: one view of the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsightlens.cli import parameters, plot
from nsightlens.cli.column_options import arranged, named, order, sort_option
from nsightlens.cli.complete import pairs as completed_pairs
from nsightlens.cli.complete import view_names
from nsightlens.cli.filters import chosen, confirm, filter_options, parameters_of
from nsightlens.cli.messages import say
from nsightlens.cli.output import PICTURES, emit_batches, format_of, output_options, store_option, views_option
from nsightlens.errors import UsageError
from nsightlens.pages.tables import ids_last
from nsightlens.terminal.command import Command
from nsightlens.views.figures import counted

if TYPE_CHECKING:
    import pyarrow as pa

_KERNEL = ("kernel", "name")
"""Columns with names of kernels."""


@click.command("show")
@click.argument("view", shell_complete=view_names)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...", shell_complete=completed_pairs)
@filter_options
@click.option("--columns", default=None, metavar="NAMES", help="Only these columns, in this order: name,total_ns.")
@sort_option
@click.option("--limit", type=click.IntRange(0), default=None, metavar="ROWS", help="Maximum number of rows.")
@click.option("--kernel", hidden=True)
@click.option("--exact", is_flag=True, help="Times in ns and sizes in bytes, as CSV, JSON and Parquet always have them.")
@store_option
@views_option
@output_options
def command(
    view: str, pairs: tuple[str, ...], store: Path | None, views: Path | None, form: str | None, output: Path | None, wide: bool,
    columns: str | None, sort: str | None, limit: int | None, kernel: str | None, exact: bool, **filters: Any,
) -> None:
    """Print VIEW, with its parameters as KEY=VALUE, or draw it where --output is a .png, .svg or .pdf.

    Every view takes COLUMN=VALUE for each of its columns (in names, * stands for any text; only_COLUMN=VALUE where a parameter
    has its name); --run, --rank, --step, --tool and --family are shortcuts. They select rows; shares still refer to the whole
    run. `nsightlens views` lists the views. VIEW may also be the name of an nsys report, such as cuda_gpu_kern_sum.

    \b
    nsightlens show kernel_summary tool=nsys 'name=*gemm*'
    nsightlens show top_kernels how_many=5 --tool nsys --format json
    nsightlens show operator_summary --columns name,calls,device_total_ns --sort=-device_total_ns --limit 10
    nsightlens show step_breakdown --tool kineto -o steps.png
    nsightlens show my_view --views my_views/
    """
    import pyarrow as pa

    import nsightlens as nl
    from nsightlens.pipeline.memory import spare_pandas

    spare_pandas()
    from nsightlens.pages.envelope import About, window_of
    from nsightlens.pages.why_empty import why_empty
    from nsightlens.schema import TABLES
    from nsightlens.views import registry

    with nl.open(store, views=views) as opened:
        if view in TABLES and view not in opened.views:
            raise UsageError((f"{view} is a table, not a view: ", Command("sql", (f"FROM {view} LIMIT 10",))))
        if view not in opened.views and Path(view).exists():
            kind = "a folder" if Path(view).is_dir() else "a file"
            raise UsageError((f"{view} is {kind}, not a view: read it with ", Command("ingest", (Path(view),)), ", then ",
                              Command("show", ("top_kernels",)), " (", Command("views"), " lists the views)"),
                             subject="view", value=view)
        found, given = registry.named(view, opened.views)
        view = found.name
        known = [name for name, _ in found.columns]
        if kernel is not None:
            raise _instead_of_kernel(kernel, view, known)
        asked = parameters_of(view, opened.views, chosen(filters), {**given, **parameters(pairs)})
        confirm(opened, asked)
        if output is not None and form is None and output.suffix.lower() in PICTURES:
            plot.confirm_plot(view)
            plot.save(opened, view, asked, output)
            return
        names, by = named(columns, known, view), order(sort, known, view)
        batches = opened.batches(view, first_rows=None if by else limit, **asked)
        tables = (pa.Table.from_batches([batch]) for batch in batches)
        if not names and (form or format_of(output)) == "table":
            names = ids_last(known)
        shown = _First(arranged(tables, names, by), limit)
        first = () if columns else tuple(dict.fromkeys([*found.first[:1], *(name for name, _ in by), *found.first]))
        sums = () if columns else found.whole_sums

        @cache
        def missing() -> list[str]:
            return [] if shown.any_rows or limit == 0 else why_empty(opened, found, asked)

        about = About(window=window_of(asked), not_recorded=missing, notes=lambda: [
            *filter(None, [shown.said]), *(found.notes(len(shown.ranks)) if shown.any_rows else ())])
        emit_batches(iter(shown), form, output, wide=wide, units=not exact, first=first, sums=sums, kernels=found.kernels,
                     about=about)
        for line in missing():
            say(line)


def _instead_of_kernel(kernel: str, view: str, columns: list[str]) -> UsageError:
    """Return what to say to --kernel, which `roofline` has: how a view's rows are chosen by kernel."""
    column = next((name for name in _KERNEL if name in columns), None)
    by_name = Command("show", (view, f"only_{column}=*{kernel}*"))
    return UsageError(("show has no --kernel; ask for rows by name: ", by_name) if column else
                      f"show has no --kernel, and {view} no column with names of kernels")


class _First:
    """The first rows of tables, and what people must know of them.

    most: how many rows, None: all. said: what is left out. ranks: those of the rows, and of the next ones. any_rows: whether
    there are rows.
    """

    def __init__(self, tables: Iterable[pa.Table], most: int | None) -> None:
        self._tables, self._most = tables, most
        self.said = ""
        self.ranks = set[int | None]()
        self.any_rows = False

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield the first rows, and read no further than the table that follows the last of them."""
        left = self._most
        for number, table in enumerate(self._tables):
            shown = table if left is None else table.slice(0, left)
            alone = self.ranks | _ranks(shown)
            self.ranks |= _ranks(table)
            self.any_rows |= bool(table.num_rows)
            if shown.num_rows < table.num_rows and not self.said:
                self.said = self._left_out(alone)
            if number and left == 0:
                return
            yield shown
            left = None if left is None else left - shown.num_rows

    def _left_out(self, ranks: set[int | None]) -> str:
        """Return that rows are left out, and whose, where all rows that are shown are of one rank and the next are not."""
        rank, *others = ranks or [None]
        alone = "" if others or not self.ranks > ranks else f", all of rank {rank}: the next are of other ranks"
        return f"the first {counted(self._most, 'row')}{alone}" if self._most else ""


def _ranks(table: pa.Table) -> set[int | None]:
    """Return the ranks in a table; none where it has no such column."""
    return set(table["rank"].unique().to_pylist()) if "rank" in table.column_names else set()
