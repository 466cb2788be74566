"""The catalog of a store that has no rows yet: tables, views and their documentation.

DuckDB takes half a second to make it, and it is the same for every new store of one version of nsightlens and of DuckDB. So
it is kept in the user's cache (XDG_CACHE_HOME, else ~/.cache), from where a new store copies it. The cache may be deleted.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import duckdb

from nsightlens.store import catalog, catalog_opening, user_cache

_KEPT = 4
"""Blank catalogs in the cache: those of several versions may be in use."""
_MOST_BYTES = 64 << 20


def place(
    target: Path, scratch: Path, *, materialise: bool, memory: str | None = catalog.WRITE_MEMORY, cached: bool = True,
) -> None:
    """Put a catalog without rows at `target`. Raises duckdb.Error, OSError.

    scratch: where DuckDB may write meanwhile. memory: how much it may take; None: what it takes by itself.
    cached: whether one from the cache will do.
    """
    cached_template = _kept(materialise) if cached else None
    if cached_template is not None and cached_template.is_file():
        shutil.copyfile(cached_template, target)
        return
    with contextlib.closing(catalog_opening.open_for_writing(target, scratch, memory)) as connection:
        with catalog.transaction(connection):
            catalog.create(connection, materialise)
            catalog.make_views(connection)
        connection.execute("CHECKPOINT")
    with contextlib.suppress(OSError):
        if cached_template is not None:
            user_cache.keep(cached_template, lambda path: shutil.copyfile(target, path), _KEPT, _MOST_BYTES)


def _kept(materialise: bool) -> Path | None:
    """Return where the cache has it or would have it; None where there is no place for a cache."""
    folder = user_cache.folder()
    if folder is None:
        return None
    kind = "" if materialise else "-of-parts"
    return folder / f"blank-{catalog.signature_of_views()}-{duckdb.__version__}-{catalog_opening.BLOCK_BYTES}{kind}.duckdb"
