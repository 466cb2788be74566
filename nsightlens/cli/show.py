"""nsightlens show: one view of the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsightlens.cli import parameters
from nsightlens.cli.filters import chosen, filter_options, parameters_of
from nsightlens.cli.output import emit_batches, output_options, store_option, view_names, views_option

if TYPE_CHECKING:
    from nsightlens.store.store import Store

_MOST = 12


@click.command("show")
@click.argument("view", shell_complete=view_names)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@filter_options
@store_option
@views_option
@output_options
def command(
    view: str, pairs: tuple[str, ...], store: Path | None, views: Path | None, form: str | None, output: Path | None, wide: bool,
    **filters: Any,
) -> None:
    """Print VIEW, with its parameters as KEY=VALUE.

    Every view takes only_<column>=VALUE for the columns that it has; --run, --rank, --step, --tool and --family are short for
    the commonest. They select rows, so that shares still refer to the whole run. `nsightlens views` lists the views. VIEW may
    be what nsys calls its report: cuda_gpu_kern_sum.

    \b
    nsightlens show kernel_summary only_tool=nsys
    nsightlens show top_kernels how_many=5 --tool nsys --format json
    nsightlens show my_view --views my_views/
    """
    import pyarrow as pa

    import nsightlens as nl
    from nsightlens.errors import UsageError
    from nsightlens.pipeline.workers import spare_pandas

    spare_pandas()
    from nsightlens.schema import TABLES
    from nsightlens.views import registry

    with nl.open(store, views=views) as opened:
        if view in TABLES and view not in opened.views:
            raise UsageError(f"{view} is a table, not a view: nsightlens sql \"FROM {view} LIMIT 10\"")
        found, given = registry.named(view, opened.views)
        view = found.name
        asked = parameters_of(view, opened.views, chosen(filters), {**given, **parameters(pairs)})
        tables = (pa.Table.from_batches([batch]) for batch in opened.batches(view, **asked))
        if not emit_batches(tables, form, output, wide=wide):
            _hint(opened, view, asked)


def _hint(store: Store, view: str, asked: dict[str, object]) -> None:
    """Say which values there are where a filter left no row."""
    for name in asked:
        column = name.removeprefix("only_")
        if column != name:
            others = {key: value for key, value in asked.items() if not key.startswith("only_")}
            values = sorted({str(value) for value in store.view(view, **others)[column].to_pylist()})
            shown = ", ".join(values[:_MOST]) + (", …" if len(values) > _MOST else "")
            given = asked[name]
            asking = ", ".join(map(str, given)) if isinstance(given, list) else given
            click.echo(f"{name}={asking}: the values of {column} are {shown or 'none'}", err=True)
