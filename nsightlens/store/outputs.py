"""Where a result may be written: not to a file of a store, and not to a capture. And how one is that is whole or not there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from nsightlens.discovery.files import look_at
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.store.remote import CATALOG
from nsightlens.store.store_folder import store_around

_OUTPUTS = (".csv", ".html", ".json", ".gz", ".log", ".pdf", ".png", ".svg", ".txt")
"""Endings that no file of a store has."""
_DATABASES = {"SQLite": (0, b"SQLite format 3\0"), "DuckDB": (8, b"DUCK")}
"""Where a database has the bytes that say what it is; nobody writes one here."""


def confirm(path: Path, option: str = "path") -> None:
    """Raise UsageError for a file that is there and was not written as a result, and for one among the parts of a store.

    option: what names another file.
    """
    real = path.resolve()
    store = store_around(real)
    why = f"in a folder of the store {store}, where only its own files are" if store else None
    if real.is_file():
        why = why or _why_no_store_file(real) or _why_no_hard_link(real) or _why_no_database(real) or _why_no_capture(real)
    if why:
        raise UsageError(f"{path}: {why}; give {option} another", subject=option, value=str(path))


def check_ending(path: Path, endings: Sequence[str]) -> None:
    """Raise UsageError for a file whose extension is none of `endings` ('.png', …)."""
    if path.suffix.lower() not in endings:
        listed = endings[0] if len(endings) == 1 else f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise UsageError(f"{path}: unknown extension; use {listed}", subject="format", value=path.suffix, choices=endings)


@contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """Provide a file that is at `path`, or where a link there leads, once the block has ended without an error.

    What is there before keeps its permissions; a device or a pipe is written into. Raises as `confirm`, and NsightlensError for
    an OSError.
    """
    confirm(path)
    try:
        target = path.resolve()
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and not stat.S_ISREG(mode):
            with target.open("wb") as opened:
                yield opened
            return
        with _draft(target.parent, mode) as (draft, file):
            yield file
            file.close()
            draft.replace(target)
    except OSError as exc:
        raise NsightlensError(f"{path}: cannot be written ({exc.strerror})") from exc


@contextmanager
def _draft(folder: Path, mode: int | None) -> Iterator[tuple[Path, IO[bytes]]]:
    """Provide a new file under a name that nobody can have taken; what is left of it in the end is deleted."""
    draft = folder / f".nsightlens-{os.urandom(8).hex()}"
    try:
        with draft.open("xb") as file:
            if mode is not None:
                draft.chmod(stat.S_IMODE(mode))
            yield draft, file
    finally:
        draft.unlink(missing_ok=True)


def _why_no_store_file(path: Path) -> str | None:
    store = next((folder for folder in path.parents if (folder / CATALOG).exists()), None)
    return f"a file of the store {store}, which a command would spoil" if store and path.suffix.lower() not in _OUTPUTS else None


def _why_no_hard_link(path: Path) -> str | None:
    names = path.stat().st_nlink
    return f"a file that has {names} names (hard links), and would change under each" if names > 1 else None


def _why_no_database(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(32)
    kind = next((kind for kind, (start, magic) in _DATABASES.items() if head.startswith(magic, start)), None)
    return f"a {kind} database, which a command would replace" if kind else None


def _why_no_capture(path: Path) -> str | None:
    file = look_at(path, path.parent, "")
    is_table = file.tool == "nsys" and path.suffix.lower() in (".csv", ".json", ".txt")  # the same as a view under the same name
    if file.kind == "sidecar":
        return "the sidecar of a capture, which a command would replace"
    return f"a capture ({file.kind}), which a command would replace" if file.report or (file.tool and not is_table) else None
