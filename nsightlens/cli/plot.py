"""nsightlens plot: a view as a picture."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsightlens.cli import parameters
from nsightlens.cli.complete import pairs as completed_pairs
from nsightlens.cli.complete import plot_names
from nsightlens.cli.filters import chosen, confirm, filter_options, parameters_of
from nsightlens.cli.output import PICTURES, store_option, views_option
from nsightlens.cli.picture import picture_options
from nsightlens.cli.target import Target
from nsightlens.errors import UsageError
from nsightlens.terminal.output import echo
from nsightlens.terminal.printable import printable

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from nsightlens.store.store import Store

_TOOLS = ("nsys", "kineto", "ncu")
"""The least disturbing one first."""


@click.command("plot")
@click.argument("name", required=False, shell_complete=plot_names)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...", shell_complete=completed_pairs)
@click.option("-o", "--output", type=Target(), default=None,
              help="File to write: FILE.png, .svg or .pdf.")
@picture_options
@click.option("--top", type=click.IntRange(min=1), default=None, metavar="N", help="Number of items to draw (how_many=N).")
@filter_options
@store_option
@views_option
def command(
    name: str | None, pairs: tuple[str, ...], output: Path | None, size: tuple[float, float] | None, title: str | None,
    dpi: int, top: int | None, store: Path | None, views: Path | None, **filters: Any,
) -> None:
    """Draw the view NAME to the file --output, with parameters as KEY=VALUE. Without NAME, list the plots.

    If several tools recorded a run, the one with the least overhead is drawn; --tool chooses another.

    \b
    nsightlens plot step_breakdown -o steps.png
    nsightlens plot top_kernels --top 10 --tool nsys --size 10 4 -o top.pdf
    """
    import nsightlens as nl
    from nsightlens.store.outputs import check_ending

    plots = nl.plots.PLOTS
    if name is None:
        width = max(map(len, plots))
        for known, draw in plots.items():
            echo(f"{known:<{width}}  {(getdoc(sys.modules[draw.__module__]) or '').splitlines()[0]}")
        return
    confirm_plot(name)
    if output is None:
        raise UsageError(f"no output file: give --output {name}.png, .svg or .pdf")
    check_ending(output, PICTURES)
    with nl.open(store, views=views) as opened:
        given = parameters(pairs) | ({} if top is None else {"how_many": top})
        asked = parameters_of(name, opened.views, chosen(filters), given)
        confirm(opened, asked)
        save(opened, name, asked, output, size, title, dpi)


def confirm_plot(view: str) -> None:
    """Raise UsageError where a view has no plot."""
    import nsightlens as nl
    from nsightlens.views.registry import unknown

    if view not in nl.plots.PLOTS:
        raise unknown("plot", view, nl.plots.PLOTS)


def save(store: Store, view: str, asked: Mapping[str, Any], output: Path, size: tuple[float, float] | None = None,
         title: str | None = None, dpi: int = 200) -> None:
    """Draw a view to a file. asked: its parameters and filters. size: inches; title: '' for none."""
    import nsightlens as nl
    from nsightlens.plots.frame import resize

    table = store.view(view, **asked)
    if "only_tool" not in asked:
        table = least_disturbed(table)
    if view == "roofline":
        figure: Figure = nl.plots.roofline(table, size=size, title=title and printable(title))
    else:
        figure = nl.plots.PLOTS[view](table, gpus=gpus_of(store))
        if size:
            resize(figure, size)
        if title is not None:
            figure.suptitle(printable(title))
    nl.plots.save(figure, output, dpi=dpi)
    echo(f"drawn: {output}", err=True)


def least_disturbed(table: pa.Table) -> pa.Table:
    """Return the rows of each run's tool that disturbs it least; tables without a tool as they are."""
    import pyarrow as pa

    if "tool" not in table.column_names:
        return table
    pairs = list(zip(table["run"].to_pylist(), table["tool"].to_pylist(), strict=True))
    tools = set(pairs)
    best = {run: min((tool for other, tool in tools if other == run), key=_TOOLS.index) for run, _ in tools}
    return table.filter(pa.array([best[run] == tool for run, tool in pairs], pa.bool_()))


def gpus_of(store: Store) -> dict[tuple[str, str], str]:
    """Return {(run, tool): product names of its GPUs}."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for row in store.view("profile_overview").to_pylist():
        if row["gpus"]:
            found.setdefault((row["run"], row["tool"]), {})[row["gpus"]] = None
    return {key: ", ".join(names) for key, names in found.items()}
