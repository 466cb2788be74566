"""nsightlens cache: shows what the user's cache holds, or clears it."""

from __future__ import annotations

from pathlib import Path

import click

from nsightlens.cli.output import emit, output_options
from nsightlens.terminal.output import echo
from nsightlens.views.figures import counted


@click.command("cache")
@click.argument("action", type=click.Choice(["show", "clear"]), default="show")
@output_options
def command(action: str, form: str | None, output: Path | None, wide: bool) -> None:
    """Show what the user's cache holds, or clear it: nsightlens cache clear.

    The cache holds only what can be recomputed at any time: blank catalogs for new stores, rows of views of large profiles
    with other than default parameters, and rows of views over several profiles, such as findings. It holds no stores.

    \b
    nsightlens cache
    nsightlens cache clear
    """
    from nsightlens.store import user_cache

    files = user_cache.files()
    size = sum(files.values())
    if action == "clear":
        user_cache.clear()
    if form or output:
        import pyarrow as pa

        folder = user_cache.folder()
        emit(pa.table({"folder": pa.array([folder and str(folder)], pa.string()), "files": [len(files)], "bytes": [size],
                       "cleared": [action == "clear"]}), form, output, wide=wide)
        return
    held = f"{counted(len(files), 'file')}, {size / 1e6:,.1f} MB"
    echo(f"{user_cache.folder() or 'no place for a cache'}: {held}{', deleted' if action == 'clear' else ''}")
