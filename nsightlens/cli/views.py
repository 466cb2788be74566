"""nsightlens views: what views there are, and what each of them says."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import click

from nsightlens.cli.page import page_width
from nsightlens.cli.tables import terminal_width


@click.command("views")
@click.argument("view", required=False)
def command(view: str | None) -> None:
    """List the views; with VIEW, tell what it is, its parameters, its columns and its SQL. Needs no store."""
    from nsightlens import views
    from nsightlens.errors import UsageError

    found = views.known()
    if view is None:
        left = max(len(name) for name in found) + 2
        wide = terminal_width()
        for name, one in found.items():
            text = f"{name:<{left}}{one.summary}"
            click.echo(text if wide is None else textwrap.fill(text, max(wide, left + 30), subsequent_indent=" " * left))
        return
    if view not in found:
        raise UsageError(views.did_you_mean("view", view, found))
    one = found[view]
    width = page_width()
    click.echo(click.style(one.name, bold=True) + "\n")
    click.echo(textwrap.fill(one.doc, width))
    if one.assumes:
        click.echo(click.style("\nAssumes", bold=True))
        for text in one.assumes:
            click.echo(textwrap.fill(text, width, initial_indent="- ", subsequent_indent="  "))
    if one.params:
        click.echo(click.style("\nParameters", bold=True))
        _list([(f"{parameter.name} := {_shown(parameter.default)}", parameter.doc) for parameter in one.params], width)
    click.echo(click.style("\nColumns", bold=True))
    _list(one.columns, width)
    click.echo(click.style("\nHow it is computed", bold=True))
    click.echo(one.sql.strip() or f"In Python, for SQL cannot say it: nsightlens/analyses/{one.name}.py")


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
