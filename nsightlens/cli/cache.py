"""nsightlens cache: what lies in the user's cache, and an end to it."""

from __future__ import annotations

import click

from nsightlens.cli.ingest import count


@click.command("cache")
@click.argument("action", type=click.Choice(["show", "clear"]), default="show")
def command(action: str) -> None:
    """Say what lies in the user's cache, or delete it: nsightlens cache clear.

    The cache holds what can be made again at any time: blank catalogs for new stores, rows of views that were asked of large
    profiles with other parameters than the default ones, and rows of analyses over several profiles, such as findings. Stores
    are not in it.

    \b
    nsightlens cache
    nsightlens cache clear
    """
    from nsightlens.store import user_cache

    files = user_cache.files()
    held = f"{count(len(files), 'file')}, {sum(file.stat().st_size for file in files) / 1e6:,.1f} MB"
    if action == "clear":
        user_cache.clear()
    click.echo(f"{user_cache.folder() or 'no place for a cache'}: {held}{', deleted' if action == 'clear' else ''}")
