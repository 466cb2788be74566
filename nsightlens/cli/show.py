"""nsightlens show: one view of the store."""

from __future__ import annotations

from pathlib import Path

import click

from nsightlens.cli import parameters
from nsightlens.cli.output import emit, output_options, store_option


@click.command("show")
@click.argument("view")
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@store_option
@output_options
def command(view: str, pairs: tuple[str, ...], store: Path | None, form: str | None, output: Path | None, wide: bool) -> None:
    """Print VIEW, with its parameters as KEY=VALUE.

    Every view takes only_<column>=VALUE for the columns that it has. `nsightlens views` lists the views.

    \b
    nsightlens show kernel_summary only_tool=nsys
    nsightlens show top_kernels how_many=5 --format json
    """
    import nsightlens as nl
    from nsightlens.workers import spare_pandas

    spare_pandas()
    with nl.open(store) as opened:
        emit(opened.view(view, **parameters(pairs)), form, output, wide=wide)
