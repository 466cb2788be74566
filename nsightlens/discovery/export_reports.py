"""Exports binary reports into the folder where they lie: what a job that was killed could not do any more."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from pathlib import Path

from nsightlens.discovery.export import PACKED_SQLITE, REPORTS, convert
from nsightlens.discovery.files import CaptureFile, find
from nsightlens.discovery.profiles import exports_beside
from nsightlens.errors import NsightlensError, ReadError

_TABLES = ("CUPTI_", "ENUM_", "EXPORT_META_DATA", "META_DATA_", "NVTX_", "StringIds", "TARGET_INFO_")
Done = Path | ReadError
"""The export of one report, or why there is none."""


def unexported(roots: Iterable[str | Path]) -> list[CaptureFile]:
    """Return the binary reports below `roots` that have no export, or none that can be read, beside them."""
    captures = [f for f in find(roots) if f.tool]
    exported = {report.path for report, _ in exports_beside(captures)}
    return [f for f in captures if f.report in REPORTS and f.path not in exported]


def export_reports(
    reports: list[CaptureFile], nsys: str | None, jobs: int, on_done: Callable[[int, Done], None] | None = None,
) -> list[Done]:
    """Export reports, each into <stem>.sqlite beside it, and return what became of them, in the order in which they ended.

    nsys: the program; None: the one on PATH. jobs: how many run at a time. Raises NsightlensError where there is no nsys; a
    report that cannot be exported stops no other.
    """
    if reports and shutil.which(nsys or "nsys") is None:
        raise NsightlensError(f"{nsys or 'nsys'} is not here, and {len(reports)} reports need it. Load its module, or name it: "
                              "--nsys /opt/nvidia/nsight-systems/VERSION/bin/nsys; or run this where nsys is installed")
    done: list[Done] = []
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        stack.callback(pool.shutdown, cancel_futures=True)   # at an interrupt, start no more
        for future in as_completed([pool.submit(_export, report.path, nsys) for report in reports]):
            done.append(future.result())
            if on_done:
                on_done(len(done), done[-1])
    return done


def _export(path: Path, nsys: str | None) -> Done:
    report = REPORTS[0]
    output = path.with_suffix(report.suffix)
    if os.path.lexists(output) and not _is_half_an_export(output):
        return ReadError(path, f"{output} is in the place of its export, and is none", "Move it away", "export_failed")
    try:
        return convert(report, path, output, nsys, again=True)
    except ReadError as exc:
        return exc
    except OSError as exc:
        why = f"its export cannot be written ({exc.strerror})"
        return ReadError(path, why, "Make room there, or copy it to a folder that you can write", "export_failed")


def _is_half_an_export(path: Path) -> bool:
    """Return whether a file that no reader takes may be what an export that was killed left: it is empty, SQLite cannot read it
    although it begins like its files, or it has tables of nsys, or none."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(len(PACKED_SQLITE.magic))
    if start != PACKED_SQLITE.magic:
        return not start
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    except sqlite3.DatabaseError:
        return True
    return not tables or any(name.startswith(_TABLES) for name in tables)
