"""The user's cache: what can be made again at any time. Where it cannot be written nothing is said, and nothing is kept."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def folder() -> Path | None:
    """Return the folder (XDG_CACHE_HOME/nsightlens, else ~/.cache/nsightlens); None where there is no place for one."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nsightlens"
    except RuntimeError:  # no home
        return None


def keep(kept: Path, write: Callable[[Path], object], most_files: int, most_bytes: int) -> None:
    """Have `write` make a file and put it at `kept` by rename; of files of its ending there, the newest stay. Raises OSError."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    fresh = kept.with_name(f".{kept.name}.{secrets.token_hex(4)}")
    try:
        write(fresh)
        fresh.replace(kept)
    finally:
        fresh.unlink(missing_ok=True)
    room = most_bytes
    age = {file: (file == kept, file.stat().st_mtime) for file in kept.parent.glob(f"[!.]*{kept.suffix}")}  # clocks are set back
    newest_first = sorted(age, key=lambda file: age[file], reverse=True)
    for place, file in enumerate(newest_first):
        room -= file.stat().st_size
        if place >= most_files or room < 0:
            file.unlink(missing_ok=True)


def files() -> dict[Path, int]:
    """Return the bytes of each file in the cache. Other processes may delete some meanwhile: those are left out."""
    where = folder()
    found = {}
    for path in sorted(where.rglob("*")) if where else []:
        with suppress(FileNotFoundError):
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                found[path] = status.st_size
    return found


def clear() -> None:
    """Delete all files in the cache. Raises OSError for one that cannot be deleted."""
    for file in files():
        file.unlink(missing_ok=True)
