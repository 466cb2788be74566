"""Opens catalogs, as the only module that does: it raises the fence first, and reads only tables like ours.

A catalog is input: its views, macros, defaults and indexes are programs. None of them runs here. The connection looks names up
in its own temporary schema and in DuckDB's, never in the catalog, so that nothing there can stand for a function or a view of
ours; what it holds is asked by `catalog.NAME`, and only where `catalog_tables.confirmed` found a table. The views are ours
(shared_views).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import duckdb

from nsightlens.discovery.remote import RemotePath
from nsightlens.errors import StoreError
from nsightlens.store import catalog_tables, damage, no_links, part_files
from nsightlens.store.bundle import Part
from nsightlens.store.fence import raise_fence
from nsightlens.store.lock import has_locks
from nsightlens.views import registry
from nsightlens.views.connection import connect
from nsightlens.views.header import PACKAGE
from nsightlens.views.registry import literal

STORAGE_VERSION = "v1.2.0"
BLOCK_BYTES = 65_536
"""Of a new catalog, where each small table has a block of its own. In less DuckDB does not pack 64-bit integers any more."""
_LOCKED = re.compile(r"\block\b")
_BESIDE = ("", ".wal", ".wal.checkpoint", ".wal.recovery")
"""Endings of the files that DuckDB has for one catalog."""
_COMPUTED = "_computed_"
_PLAIN = re.compile(r"[\w-]+", re.ASCII)
"""Names of tables and profiles: nothing that steers a path."""
_MACROS = """
SELECT DISTINCT function_name, function_type FROM system.main.duckdb_functions() WHERE database_name = 'catalog' AND NOT internal
"""
Tables = dict[str, str]


def attach(path: Path) -> duckdb.DuckDBPyConnection:
    """Return a connection to the catalog at `path`, read-only, without its parts. Raises StoreError."""
    return open_catalog(path)[0]


def open_catalog(path: Path, parts: Iterable[Path] = (), *, far: RemotePath | None = None, memory: str | None = None,
                 threads: int | None = None, is_fenced: bool = True) -> tuple[duckdb.DuckDBPyConnection, Tables]:
    """Return a connection to the catalog at `path`, read-only, and its tables. Raises StoreError where it cannot be opened.

    parts: files that it may read. far: the store, where these lie at a URL. memory, threads: DuckDB's limits (None: its own).
    is_fenced: False lets it read and write any file, for a catalog that was opened behind the fence before.
    """
    for file in (path, path.with_name(f"{path.name}.wal")):
        no_links.confirm_file(file)
    settings = {"memory_limit": memory, "threads": threads}

    def at(place: Path) -> tuple[duckdb.DuckDBPyConnection, Tables]:
        return _read_only(place, [*parts], far, settings, is_fenced=is_fenced)

    try:
        try:
            return at(path)
        except duckdb.Error as exc:
            if not _LOCKED.search(str(exc)) or has_locks(path):
                raise
            with TemporaryDirectory(prefix="nsightlens-") as folder:  # a copy, which has no name any more when it is open
                return at(Path(shutil.copyfile(path, Path(folder) / path.name)))
    except (duckdb.Error, OSError) as exc:
        raise StoreError(damage.catalog_damage(path, exc) or f"{path}: cannot be opened. {_why(exc)}", path.parent) from exc


def _read_only(place: Path, parts: Sequence[Path], far: RemotePath | None, settings: Mapping[str, object], *,
               is_fenced: bool) -> tuple[duckdb.DuckDBPyConnection, Tables]:
    connection = _connected(settings, far)
    try:
        raise_fence(connection, [*_files_of(place), *parts] if is_fenced else None)
        connection.execute(f"ATTACH {literal(str(place.resolve()))} AS catalog (READ_ONLY)")
        return connection, catalog_tables.confirmed(connection, place)
    except BaseException:
        connection.close()
        raise


def _connected(settings: Mapping[str, object], far: RemotePath | None) -> duckdb.DuckDBPyConnection:
    connection = connect()
    if far is not None:
        part_files.let_read(connection, far)
    for name, value in settings.items():
        if value is not None:
            connection.execute(f"SET {name} = ?", [value])
    return connection


def _files_of(catalog: Path) -> list[Path]:
    """Return the files that a connection to a catalog needs beside the parts: its own, and the peaks of GPUs."""
    return [*(catalog.with_name(catalog.name + ending) for ending in _BESIDE), PACKAGE / "gpus.csv"]


def _why(error: Exception) -> str:
    reason = str(error).splitlines()[0]
    if _LOCKED.search(reason):
        return f"Another program has it open for writing: close it there, or copy the store ({reason})"
    if "newer version" in reason or "storage version" in reason:
        return f"It was written by a newer DuckDB: update duckdb ({reason})"
    return f"It is damaged, or not a DuckDB file: ingest the captures again into a new store ({reason})"


def open_for_writing(
    path: Path, scratch: Path, memory: str | None, files: Iterable[Path] = (), far: RemotePath | None = None, *,
    is_blank: bool = False,
) -> duckdb.DuckDBPyConnection:
    """Return a connection to the catalog at `path`, made in the oldest storage version that has what we need.

    A catalog that is there keeps the size of its blocks; macros in it that are none of ours are gone.
    is_blank: whether it is the template's copy, which holds nothing but what we make.
    memory: DuckDB's limit (None: its own); what does not fit goes to `scratch`. files: what it may read besides: parts, answers.
    far: the store, where its parts lie at a URL. Raises duckdb.Error, StoreError.
    """
    is_there = path.exists()
    connection = _connected({"memory_limit": memory, "preserve_insertion_order": False, "checkpoint_threshold": "1B"}, far)
    try:
        # Not locked: how many threads write is changed on the way. But for tables, nothing of the catalog is run in it.
        raise_fence(connection, [*_files_of(path), *files], spill=scratch.absolute(), is_locked=False)
        block_size = "" if is_there else f", BLOCK_SIZE {BLOCK_BYTES}"
        connection.execute(
            f"ATTACH {literal(str(path.resolve()))} AS catalog (STORAGE_VERSION '{STORAGE_VERSION}'{block_size})")
        if is_there and not is_blank:
            catalog_tables.confirmed(connection, path)
            _drop_strange_macros(connection)
        connection.execute("USE catalog")
    except BaseException:
        connection.close()
        raise
    return connection


def _drop_strange_macros(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop what could stand for a function of DuckDB's: a writer looks names up in the catalog."""
    for name, kind in connection.execute(_MACROS).fetchall():
        if kind != "table_macro" or name.removeprefix(_COMPUTED) not in registry.load():
            quoted = name.replace('"', '""')
            connection.execute(f'DROP MACRO{" TABLE" if kind == "table_macro" else ""} catalog.main."{quoted}"')


def parts(connection: duckdb.DuckDBPyConnection, root: Path) -> list[Part]:
    """Return all parts that the catalog of the store at `root` names. Raises StoreError for one that leads out of it.

    Tables, runs and profiles become names of parts when these are written again: each must be what the path says.
    """
    query = "SELECT table_name, run, profile_id, path, row_count FROM catalog._parts ORDER BY ALL"
    named_parts: list[Part] = connection.execute(query).fetchall()
    no_links.confirm_parts(root, {path or "" for *_, path, _ in named_parts})
    for table, run, profile, path, _ in named_parts:
        folder = f"parts/{table}/run={quote(run or '', safe='')}/"
        if not (_PLAIN.fullmatch(table or "") and _PLAIN.fullmatch(profile or "") and path.startswith(folder)):
            raise StoreError(f"{root}: its catalog names {path!r} as {table!r} of profile {profile!r}, which it is not", root,
                             "Copy the store again from where it is whole, or ingest the captures into a new one")
    return named_parts
