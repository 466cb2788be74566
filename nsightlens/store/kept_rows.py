"""Rows of views that the catalog does not hold: kept in the user's cache for the next question to the same catalog.

A file per catalog, view and parameters, named by a digest of all that the rows follow from.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from nsightlens.store import across, user_cache
from nsightlens.views.header import View
from nsightlens.views.signature import code_digest, digest

WORTH_IT = 0.02
"""Seconds: SQL that takes less is computed each time. An analysis may be quick only by what it shares with another one."""
LARGEST = 1 << 24
"""Bytes: larger rows would leave no room for others."""
_MOST_FILES, _MOST_BYTES = 1024, 1 << 28


def rows(catalog: os.stat_result, view: View, parameters: Mapping[str, object], compute: Callable[[], pa.Table]) -> pa.Table:
    """Return the rows of a view: those that are kept, else those that `compute` returns.

    catalog: of the file that is open, which an ingest replaces by another and never changes.
    """
    kept = _place(catalog, view, parameters)
    if kept is not None:
        with contextlib.suppress(OSError, pa.ArrowException), pa.OSFile(str(kept)) as file:  # not there, or damaged
            return pa.ipc.open_file(file).read_all()
    began = time.perf_counter()
    found = compute()
    is_worth_it = not view.sql or time.perf_counter() - began >= WORTH_IT
    if kept is not None and is_worth_it and found.nbytes <= LARGEST:
        with contextlib.suppress(OSError, pa.ArrowException):
            user_cache.keep(kept, lambda path: _write(found, path), _MOST_FILES, _MOST_BYTES)
    return found


def _place(catalog: os.stat_result, view: View, parameters: Mapping[str, object]) -> Path | None:
    folder = user_cache.folder("views")
    if folder is None:
        return None
    file = [catalog.st_dev, catalog.st_ino, catalog.st_size, catalog.st_mtime_ns, catalog.st_ctime_ns]
    identity = digest([code_digest(), json.dumps(file), across.question(parameters)])
    return folder / f"{view.name}-{identity}.arrow"


def _write(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
