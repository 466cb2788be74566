"""nsightlens views: the list of views, and the documentation of each."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import click

from nsightlens.cli.output import store_option, view_names, views_option
from nsightlens.cli.page import page_width
from nsightlens.cli.tables import terminal_width

_SCOPES = {
    "profile": "its rows depend on one profile alone",
    "run": "its rows depend on several profiles: ranks, tools, counters, or runs",
    "rows": "it has as many rows as there are events",
}


@click.command("views")
@click.argument("view", required=False, shell_complete=view_names)
@views_option
@store_option
def command(view: str | None, views: Path | None, store: Path | None) -> None:
    """List the views; with VIEW: what it is, its scope, parameters, columns and SQL. Needs no store.

    Where there is one, it also says whether the view's rows were computed at ingest.

    \b
    nsightlens views busy_time
    nsightlens views --views my_views/
    """
    from nsightlens.store.store import is_store, locate
    from nsightlens.views import folder, registry

    found = dict(sorted({**registry.known(), **registry.public(folder.load(folder.locate(views)))}.items()))
    if view is None:
        left = max(len(name) for name in found) + 2
        wide = terminal_width()
        for name, one in found.items():
            text = f"{name:<{left}}{one.summary}"
            click.echo(text if wide is None else textwrap.fill(text, max(wide, left + 30), subsequent_indent=" " * left))
        for alias, name in sorted((alias.name, one.name) for one in found.values() for alias in one.aliases):
            click.echo(f"{alias:<{left}}= {name}")
        return
    one, _ = registry.named(view, found)
    width = page_width()
    click.echo(click.style(one.name, bold=True) + "\n")
    click.echo(textwrap.fill(one.doc, width))
    click.echo(f"\n{click.style('Scope', bold=True)}: {one.scope} ({_SCOPES[one.scope]})")
    if one.aliases:
        click.echo(f"{click.style('Also called', bold=True)}: {', '.join(map(str, one.aliases))}")
    if one.scope == "profile" and is_store(locate(store)):
        click.echo(_kept(locate(store), one.name))
    if one.assumes:
        click.echo(click.style("\nAssumes", bold=True))
        for text in one.assumes:
            click.echo(textwrap.fill(text, width, initial_indent="- ", subsequent_indent="  "))
    if one.params:
        click.echo(click.style("\nParameters", bold=True))
        _list([(f"{parameter.name} := {_shown(parameter.default)}", parameter.doc) for parameter in one.params], width)
    click.echo(click.style("\nColumns", bold=True))
    _list(one.columns, width)
    click.echo(click.style("\nDefinition", bold=True))
    click.echo(one.sql.strip() or f"Computed in Python: {one.place}")


def _kept(path: Path, view: str) -> str:
    """Return what the store holds of a view's rows."""
    from nsightlens.store.store import Store

    with Store(path) as store:
        found = store.kept(view)
    if found is None:
        return f"{path}: computed when it is asked for"
    profiles, rows, seconds = found
    of = f"{profiles:,} profile{'' if profiles == 1 else 's'}"
    return (f"{path}: {rows:,} rows of {of}, computed at ingest in {seconds:.2f} s; "
            "at default parameters they are read from there")


def _list(entries: Sequence[tuple[str, str]], width: int) -> None:
    """Print names with what they mean beside them, wrapped."""
    left = max(len(name) for name, _ in entries) + 4
    for name, doc in entries:
        first, *rest = textwrap.wrap(doc, max(30, width - left)) or [""]
        click.echo(f"  {name:<{left - 2}}{first}")
        for line in rest:
            click.echo(" " * left + line)


def _shown(default: object) -> str:
    return "NULL" if default is None else repr(default) if isinstance(default, str) else str(default).lower()
