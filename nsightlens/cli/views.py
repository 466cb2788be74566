"""nsightlens views: what views there are, and what each of them says."""

from __future__ import annotations

import click


@click.command("views")
@click.argument("view", required=False)
def command(view: str | None) -> None:
    """List the views; with VIEW, tell what it is, its parameters, its columns and its SQL. Needs no store."""
    from nsightlens import views
    from nsightlens.errors import UsageError

    found = views.known()
    if view is None:
        width = max(len(name) for name in found)
        for name, one in found.items():
            click.echo(f"{name:<{width}}  {one.doc.splitlines()[0]}")
        return
    if view not in found:
        raise UsageError(views.did_you_mean("view", view, found))
    one = found[view]
    click.echo(f"{one.name}\n\n{one.doc}\n")
    for parameter in one.params:
        click.echo(f"  {parameter.name} (default {parameter.default}): {parameter.doc}")
    click.echo("Columns")
    for name, doc in one.columns:
        click.echo(f"  {name}: {doc}")
    click.echo(f"\n{one.sql.strip() or f'computed by nsightlens/analyses/{one.name}.py'}")
