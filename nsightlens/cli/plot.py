"""nsightlens plot: a view as a picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsightlens.cli import parameters
from nsightlens.cli.complete import pairs as completed_pairs
from nsightlens.cli.complete import plot_names
from nsightlens.cli.filters import chosen, confirm, filter_options, parameters_of
from nsightlens.cli.output import PICTURES, check_ending, store_option, views_option
from nsightlens.errors import UsageError

if TYPE_CHECKING:
    from nsightlens.store.store import Store


@click.command("plot")
@click.argument("name", required=False, shell_complete=plot_names)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...", shell_complete=completed_pairs)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default=None,
              help="File to write: FILE.png, .svg or .pdf.")
@filter_options
@store_option
@views_option
def command(
    name: str | None, pairs: tuple[str, ...], output: Path | None, store: Path | None, views: Path | None, **filters: Any,
) -> None:
    """Draw the view NAME, with its parameters as KEY=VALUE, into --output. Without NAME: list what can be drawn.

    \b
    nsightlens plot step_breakdown -o steps.png
    nsightlens plot top_kernels how_many=10 --tool nsys -o top.pdf
    """
    import nsightlens as nl
    from nsightlens.views.registry import did_you_mean

    plots = nl.plots
    if name is None:
        width = max(map(len, plots.PLOTS))
        for known, draw in plots.PLOTS.items():
            about = (sys.modules[draw.__module__].__doc__ or "").splitlines()[0]  # 'Rows of the view x -> what is drawn'
            click.echo(f"{known:<{width}}  {about.partition(' -> ')[2]}")
        return
    if name not in plots.PLOTS:
        raise UsageError(did_you_mean("plot", name, plots.PLOTS))
    if output is None:
        raise UsageError(f"no output file: give --output {name}.png, .svg or .pdf")
    check_ending(output, PICTURES)
    with nl.open(store, views=views) as opened:
        asked = parameters_of(name, opened.views, chosen(filters), parameters(pairs))
        confirm(opened, asked)
        table = opened.view(name, **asked)
        more = {} if name == "roofline" else {"gpus": gpus_of(opened)}
    plots.save(plots.PLOTS[name](table, **more), output)
    click.echo(f"drawn: {output}", err=True)


def gpus_of(store: Store) -> dict[tuple[str, str], str]:
    """Return {(run, tool): product names of its GPUs}."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for row in store.view("profile_overview").to_pylist():
        if row["gpus"]:
            found.setdefault((row["run"], row["tool"]), {})[row["gpus"]] = None
    return {key: ", ".join(names) for key, names in found.items()}
