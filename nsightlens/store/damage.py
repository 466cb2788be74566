"""What is broken in a store: a catalog that fails its checksums, and parts that are missing or were cut.

A catalog is called damaged where it was read again, and could not be: DuckDB says the same of one that it was writing beside it,
when the disk was full.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from pathlib import Path

import duckdb

from nsightlens.discovery.remote import path_of
from nsightlens.store import user_cache
from nsightlens.views.connection import connect

_MAGIC = b"PAR1"
_BROKEN_CATALOG = re.compile(r"checksum|Corrupt database|database has been invalidated", re.IGNORECASE)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_NO_ROOM_IN_WORDS = re.compile("|".join([*(re.escape(os.strerror(code)) for code in _NO_ROOM), "max_temp_directory_size"]))
"""What DuckDB says where a write found no room, or would have taken more than the disk had."""
_PART = re.compile(r"[\"']([^\"'\n]*?/parts/[^\"'\n]+?\.parquet)(?:/\*\*/\*\.parquet)?[\"']")
"""A part in an error of DuckDB, which looks for a folder of that name where there is no such file."""
_REMEDY = "Copy the store again from where it is whole, or ingest the captures again into a new one (--store)"
_REMEDY_OF_A_COPY = "It is a copy: delete it, and it is fetched again"


def is_of_space(error: Exception) -> bool:
    """Return whether an error of the system, or of DuckDB, is that there was no room on the disk."""
    return getattr(error, "errno", None) in _NO_ROOM or _NO_ROOM_IN_WORDS.search(str(error)) is not None


def is_whole(part: Path) -> bool:
    """Return True if the part is there and ends as Parquet does; one that was cut, or never reached the disk, does not."""
    try:
        with part.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(-min(size, 8), os.SEEK_END)
            end = file.read()
    except OSError:
        return False
    return end.endswith(_MAGIC) and int.from_bytes(end[:4], "little") + 12 <= size


def catalog_damage(catalog: Path, error: Exception) -> str | None:
    """Return what to say where DuckDB's error is that the catalog is damaged, and it is; else None."""
    reason = _broken(catalog) if _BROKEN_CATALOG.search(str(error).splitlines()[0]) else None
    if reason is None:
        return None
    cache = user_cache.folder()
    remedy = _REMEDY_OF_A_COPY if cache and cache / "stores" in catalog.parents else _REMEDY
    return f"{catalog}: damaged: its content is not what was written ({reason}). {remedy}"


def _broken(catalog: Path) -> str | None:
    """Return what DuckDB says where it reads all rows of a catalog and cannot; None where it can."""
    with contextlib.closing(connect()) as connection:
        try:
            connection.execute("ATTACH '{}' AS catalog (READ_ONLY)".format(str(catalog).replace("'", "''")))
            connection.execute("SET enable_external_access = false")
            tables = connection.execute("SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'catalog'")
            for schema, table in tables.fetchall():
                connection.execute(f'SELECT max(hash(t)) FROM catalog."{schema}"."{table}" AS t').fetchall()
        except duckdb.Error as exc:
            reason = str(exc).splitlines()[0]
            return reason if _BROKEN_CATALOG.search(reason) else None
    return None


def damaged_part(store: Path, error: Exception) -> Path | None:
    """Return the part of the store that DuckDB's error names and that is missing or cut; None where it names none."""
    named = _PART.search(str(error))
    if named is None:
        return None
    part = path_of(named[1])
    is_ours = (store.resolve() / "parts") in part.resolve().parents
    return part if is_ours and not is_whole(part) else None


def state_of(part: Path) -> str:
    """Return whether a part that is not whole is missing or damaged, in words."""
    return "damaged (cut, or never fully written)" if part.exists() else "missing"
