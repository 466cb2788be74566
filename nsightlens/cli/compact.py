"""nsightlens compact: the parts of a store in as few files as they fit in."""

from __future__ import annotations

from pathlib import Path

import click

from nsightlens.cli.ingest import say, wait
from nsightlens.cli.output import store_option
from nsightlens.views.figures import counted


@click.command("compact")
@store_option
def command(store: Path | None) -> None:
    """Merge the Parquet files of small profiles into files of up to 32 MB.

    Ingest already merges the files of runs that have many, but leaves a few, so as not to rewrite all of them each time. Run
    this before you copy or archive a store, or read it with another engine. It does not change the rows.

    \b
    nsightlens compact
    nsightlens compact --store nsightlens-store
    """
    from nsightlens.errors import no_store
    from nsightlens.store.store import is_store, locate
    from nsightlens.store.writer import StoreWriter

    path = locate(store)
    if not is_store(path):
        raise no_store(path)
    before = _sizes(path)
    with StoreWriter(path, on_wait=wait) as writing:
        writing.compact()
    after = _sizes(path)
    say(f"{counted(len(before), 'Parquet file')} ({sum(before) / 1e6:,.1f} MB) now {len(after):,} ({sum(after) / 1e6:,.1f} MB)")
    say(f"store: {path}")


def _sizes(store: Path) -> list[int]:
    from nsightlens.discovery.remote import RemotePath, files_below

    if isinstance(store, RemotePath):
        return [status.st_size for status in files_below(store / "parts").values()]
    return [part.stat().st_size for part in store.glob("parts/*/run=*/*.parquet") if part.is_file() and not part.is_symlink()]
