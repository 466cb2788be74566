"""The user's cache: what can be made again at any time. Where it cannot be written nothing is said, and nothing is kept.

Its folder may be somebody's (XDG_CACHE_HOME=~/src, with a checkout of this project below): only files that have the names that we
give count, and are deleted. Each holds a digest.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_DIGEST = "[0-9a-f]{32}"
_KEPT = re.compile(rf"\.?(blank-{_DIGEST}-.+\.duckdb|\w+-{_DIGEST}\.(arrow|parquet))(\.[0-9a-f]{{8}})?")
_OF_STORES = re.compile(r"stores/[0-9a-f]{16}/.+")


def folder(*below: str) -> Path | None:
    """Return the folder (XDG_CACHE_HOME/nsightlens, else ~/.cache/nsightlens), or one below; None where there is no place for it.

    There is none behind a link: what lies where that leads to is not the cache's. XDG_CACHE_HOME itself may be one.
    """
    try:
        path = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # no home
        return None
    for name in ("nsightlens", *below):
        path /= name
        if path.is_symlink():
            return None
    return path


def keep(kept: Path, write: Callable[[Path], object], most_files: int, most_bytes: int) -> None:
    """Have `write` make a file and put it at `kept` by rename; of those of its ending there, the newest stay. Raises OSError."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    fresh = kept.with_name(f".{kept.name}.{secrets.token_hex(4)}")
    try:
        write(fresh)
        fresh.replace(kept)
    finally:
        fresh.unlink(missing_ok=True)
    room = most_bytes
    others = (file for file in kept.parent.glob(f"[!.]*{kept.suffix}") if _KEPT.fullmatch(file.name))
    age = {file: (file == kept, file.stat().st_mtime) for file in others}  # clocks are set back
    newest_first = sorted(age, key=lambda file: age[file], reverse=True)
    for place, file in enumerate(newest_first):
        room -= file.stat().st_size
        if place >= most_files or room < 0:
            file.unlink(missing_ok=True)


def files() -> dict[Path, int]:
    """Return the bytes of each file in the cache. Other processes may delete some meanwhile: those are left out."""
    where = folder()
    sizes = {}
    for above, _, names in os.walk(where) if where else ():  # it follows no links
        for path in (Path(above, name) for name in sorted(names)):
            with suppress(FileNotFoundError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and where and _is_ours(path.relative_to(where)):
                    sizes[path] = status.st_size
    return dict(sorted(sizes.items()))


def _is_ours(path: Path) -> bool:
    """Return whether a path below the cache is one that we make."""
    return (bool(_OF_STORES.fullmatch(path.as_posix()))
            or (path.parent.as_posix() in (".", "views", "rows") and bool(_KEPT.fullmatch(path.name))))


def clear() -> None:
    """Delete all files in the cache. Raises OSError for one that cannot be deleted."""
    for file in files():
        file.unlink(missing_ok=True)
