"""nsightlens mcp: the store for an assistant."""

from __future__ import annotations

from pathlib import Path

import click

from nsightlens.cli.output import store_option, views_option
from nsightlens.errors import NsightlensError
from nsightlens.terminal.quoting import Verbatim


@click.command("mcp")
@click.option("--allow", "allowed", multiple=True, metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False),
              help="Let the assistant read captures below DIR into a store of the server's own.")
@store_option
@views_option
def command(store: Path | None, views: Path | None, allowed: tuple[Path, ...]) -> None:
    """Serve the store to an assistant (Model Context Protocol, over standard input and output).

    A client starts this command; docs/assistant.md has its settings. Tools never change a store that is there, and read no
    other file. With --allow there is a store of the server's own: in a temporary folder, or at --store, where it stays.

    \b
    nsightlens mcp
    nsightlens mcp --store nsightlens-store
    nsightlens mcp --allow runs
    """
    try:
        from nsightlens.mcp.server import serve
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio", "jsonschema"):
            raise
        raise NsightlensError(("the package mcp is not installed here: ", Verbatim("pip install 'nsightlens[mcp]'"))) from exc
    serve(store, list(allowed), views)
