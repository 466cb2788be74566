"""What is broken in a store: a catalog that fails its checksums, and parts that are missing or were cut."""

from __future__ import annotations

import os
import re
from pathlib import Path

from nsightlens.discovery.remote import path_of

_MAGIC = b"PAR1"
_BROKEN_CATALOG = re.compile(r"checksum|Corrupt database|database has been invalidated", re.IGNORECASE)
_PART = re.compile(r"[\"']([^\"'\n]*/parts/[^\"'\n]+\.parquet)[\"']")
_REMEDY = "Copy the store again from where it is whole; or delete this file, and ingest the captures again"


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


def of_catalog(catalog: Path, error: Exception) -> str | None:
    """Return what to say where DuckDB's error is that the catalog is damaged, else None."""
    said = str(error).splitlines()[0]
    if not _BROKEN_CATALOG.search(said):
        return None
    return f"{catalog}: damaged: its content is not what was written ({said}). {_REMEDY}"


def of_part(store: Path, error: Exception) -> Path | None:
    """Return the part of the store that DuckDB's error names and that is missing or cut; None where it names none."""
    found = _PART.search(str(error))
    if found is None:
        return None
    part = path_of(found[1])
    is_ours = (store.resolve() / "parts") in part.resolve().parents
    return part if is_ours and not is_whole(part) else None


def state_of(part: Path) -> str:
    """Return whether a part that is not whole is missing or damaged, in words."""
    return "damaged (cut, or never fully written)" if part.exists() else "missing"
