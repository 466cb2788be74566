"""Whether a folder may hold a store: it is one, or nothing is there. Any other folder is somebody's, and refused."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import duckdb

from nsightlens.discovery import sniff_cache
from nsightlens.errors import StoreError
from nsightlens.store import catalog_opening, journal, lock, no_links
from nsightlens.store.remote import CATALOG
from nsightlens.terminal.quoting import Verbatim, quoted

OLDER = "nsightlens.schema-{}.duckdb"
"""Name of the catalog of an older schema that a rebuild leaves, where not all of its captures could be read again."""
_OLDER = re.compile(r"nsightlens\.schema-\d+\.duckdb")
_FOLDERS = ("converted", "parts", "staging", lock.FOLDER)
_OF_LOCK = re.compile(rf"{lock.FOLDER}|\.{lock.FOLDER}\.[0-9a-f]{{16}}")


def confirm(path: Path) -> None:
    """Raise StoreError unless a store may be written at `path`.

    It may where there is one: a folder with a catalog of ours, or with the mark of a first ingest that was killed. And where
    there is nothing: no folder yet, or one without entries. Not among the files of another store.
    """
    around = store_around(path.resolve())
    if around:
        raise StoreError(f"{path}: in a folder of the store {around}, where only its own files are", path,
                         ("Choose one that is new: ", Verbatim(f"--store {quoted(around.with_name(around.name + '-2'))}")))
    try:
        names = os.listdir(path)
    except FileNotFoundError:
        return
    except NotADirectoryError as exc:
        raise StoreError(f"{path}: a file, and a store is a folder", path, "Choose a folder with --store") from exc
    except OSError as exc:
        raise StoreError(f"{path}: it cannot be listed ({exc.strerror})", path, "Choose another with --store") from exc
    others = [name for name in names if name != lock.FILE and not _is_of_lock(path / name)]
    if lock.FILE in names and _is_marked(path / lock.FILE, alone=not others):
        return
    if CATALOG in names:
        no_links.confirm_file(path / CATALOG)
        _confirm_ours(path / CATALOG)
    elif others or lock.FILE in names:
        raise StoreError(f"{path}: not a store, and not empty: a store takes a folder of its own", path,
                         ("Choose one that is new: ", Verbatim(f"--store {quoted(path / 'nsightlens-store')}")))


def store_around(path: Path) -> Path | None:
    """Return the store in one of whose own folders a path lies: what is there, other engines read as a part of it."""
    store = next((folder for folder in path.parents if (folder / CATALOG).exists()), None)
    return store if store and path.relative_to(store).parts[0] in _FOLDERS else None


def _is_of_lock(path: Path) -> bool:
    """Return whether it is the folder that is a lock, or is to become one: a writer that makes no store leaves it last."""
    if not _OF_LOCK.fullmatch(path.name) or path.is_symlink() or path.is_file():
        return False
    with contextlib.suppress(FileNotFoundError):
        return all(lock.Holder.named(name) for name in os.listdir(path))
    return True


def _is_marked(file: Path, *, alone: bool) -> bool:
    """Return whether a writer has made the file of the lock. alone: there is nothing else yet, so it may be about to mark it."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = no_links.open_file(file, os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as opened:
            start = opened.read(len(lock.MARK))
        return start == lock.MARK or (alone and not start)
    return False


def _confirm_ours(file: Path) -> None:
    """Raise StoreError where the catalog is damaged, no DuckDB file, or not one of ours."""
    query = "SELECT count(*) FROM system.main.duckdb_tables() WHERE database_name = 'catalog' AND table_name = '_store'"
    with contextlib.closing(catalog_opening.attach(file)) as connection:
        try:
            row = connection.execute(query).fetchone()
        except duckdb.Error as exc:
            raise StoreError(f"{file}: cannot be read ({exc})", file.parent) from exc
    if row != (1,):
        raise StoreError(f"{file}: this DuckDB file is not an nsightlens store", file.parent,
                         ("Choose a folder that is new: ", Verbatim(f"--store {quoted(file.parent / 'nsightlens-store')}")))


def confirm_no_links(path: Path) -> None:
    """Raise StoreError where something in the store is a link, or a folder in the place of a file, that its writer would use."""
    for name in (CATALOG, journal.FILE, sniff_cache.FILE, *(file.name for file in older_catalogs(path))):
        no_links.confirm_file(path / name)
    for name in ("parts", "converted"):
        no_links.confirm_folder(path / name)


def older_catalogs(path: Path) -> list[Path]:
    """Return the catalogs of older schemas that rebuilds have left."""
    return [path / name for name in sorted(os.listdir(path)) if _OLDER.fullmatch(name)]
