"""Files and folders of a store, reached without following a link: what a link leads to is somebody else's.

Each is checked on the open descriptor. A path below a store is walked from folder to folder, so that nothing on its way can be
exchanged for a link meanwhile. The folder of the store itself may be reached through links: the user named it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from nsightlens.discovery.remote import RemotePath
from nsightlens.errors import StoreError
from nsightlens.terminal.quoting import Verbatim, quoted

_MADE = re.compile(r"parts/[a-z_]+/run=[\w.~%-]*/(?:[a-z]+-[0-9a-f]{12}|[1-9][0-9]*-profiles)\.[0-9a-f]{8}\.parquet", re.ASCII)
_OTHER_KIND = (errno.ELOOP, errno.EMLINK, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)
"""What systems answer where a name is a link, or of another kind than asked for."""


def open_file(path: Path, flags: int) -> int:
    """Return a descriptor of the regular file at `path`. Raises StoreError where it is a link or anything else, OSError."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    except OSError as exc:
        if exc.errno in _OTHER_KIND:
            raise _wrong_kind(path, "file") from exc
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _wrong_kind(path, "file")
    return descriptor


def confirm_file(path: Path) -> None:
    """Raise StoreError where something is at `path` and it is no regular file."""
    with suppress(FileNotFoundError):  # not opened: to close it would drop the locks that DuckDB has on it in this process
        if not stat.S_ISREG(path.lstat().st_mode):
            raise _wrong_kind(path, "file")


def confirm_folder(path: Path) -> None:
    """Raise StoreError where something is at `path` and it is no folder."""
    with suppress(FileNotFoundError), _folder(path.parent, [path.name], make=False):
        pass


def is_part(path: str) -> bool:
    """Return whether a path below a store has the shape of those that we give parts: parts/TABLE/run=RUN/NAME.parquet."""
    parts = path.split("/")
    return (len(parts) == 4 and parts[0] == "parts" and parts[2].startswith("run=") and parts[3].endswith(".parquet")
            and not {"", ".", ".."} & set(parts) and not set("\0\n*?[]\\") & set(path))


def is_made(path: str) -> bool:
    """Return whether a path is one that a writer gives to a new part (compaction.places): no file of people is called so."""
    return is_part(path) and _MADE.fullmatch(path) is not None


def confirm_parts(store: Path, paths: Set[str]) -> None:
    """Raise StoreError for a path in a catalog that is no part of its store, or is reached through a link."""
    strange = sorted(path for path in paths if not is_part(path))
    if strange:
        raise StoreError(f"{store}: its catalog names {strange[0]!r}, which is no part of a store", store,
                         "Copy the store again from where it is whole, or ingest the captures into a new one")
    if isinstance(store, RemotePath):
        return
    for folder in sorted({PurePosixPath(path).parents[depth].as_posix() for path in paths for depth in range(3)}):
        confirm_folder(store / folder)
    for path in sorted(paths):
        confirm_file(store / path)


def move(source: Path, store: Path, path: str) -> None:
    """Move a file to a path below the store, whose folders are made. Raises StoreError for a link on the way, OSError."""
    *folders, name = _steps(store, path)
    with _folder(store, folders, make=True) as folder:
        os.rename(source, name, dst_dir_fd=folder)


def remove(store: Path, path: str) -> bool:
    """Remove a file below the store, and the folders that it leaves empty; return whether it is gone.

    A part may be gone, or not there yet, and its folders be: they are ours as well.
    What lies behind a link, or is no file, is left alone, and counts as gone: it is none of ours.
    """
    try:
        *folders, name = _steps(store, path)
        with _folder(store, folders, make=False) as folder:
            os.unlink(name, dir_fd=folder)
    except (FileNotFoundError, IsADirectoryError):
        if not is_part(path):
            return True
    except StoreError:
        return True
    except OSError:
        return False
    for depth in range(len(folders), 0, -1):
        with suppress(OSError, StoreError), _folder(store, folders[: depth - 1], make=False) as folder:
            os.rmdir(folders[depth - 1], dir_fd=folder)
    return True


def _steps(store: Path, path: str) -> list[str]:
    """Return the names on the way to a path below the store. Raises StoreError where it leads anywhere else."""
    names = path.split("/")
    if {"", ".", ".."} & set(names):
        raise StoreError(f"{store}: {path!r} is no place in a store", store, "Ingest the captures into a new one")
    return names


@contextmanager
def _folder(store: Path, names: Sequence[str], *, make: bool) -> Iterator[int]:
    """Provide a descriptor of a folder below the store. Raises StoreError where one on the way is a link or a file, OSError."""
    descriptor = os.open(store, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for depth, name in enumerate(names, 1):
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
            try:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            except OSError as exc:
                if exc.errno in _OTHER_KIND:
                    raise _wrong_kind(store.joinpath(*names[:depth]), "folder") from exc
                raise
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _wrong_kind(path: Path, kind: str) -> StoreError:
    what = "a link" if path.is_symlink() else f"not a {kind}"
    return StoreError(f"{path}: {what}; a store has a {kind} there, and nothing is written elsewhere", path.parent,
                      ("Move it away, or name another folder with ",
                       Verbatim(f"--store {quoted(path.parent / 'nsightlens-store')}")))
