"""The progress of a reader: bytes of captures read so far, in a small file that another process can look at."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BYTES = 8


class _Count:
    """Where this process counts; nowhere, unless count_into says so."""

    place: mmap.mmap | None = None
    lock = threading.Lock()


@contextmanager
def count_into(path: Path) -> Iterator[None]:
    """Count what is read from now on in a file, which goes again at the end. Nothing is counted where it cannot be written."""
    try:
        path.write_bytes(bytes(_BYTES))
        with path.open("r+b") as file:
            _Count.place = mmap.mmap(file.fileno(), _BYTES)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        place, _Count.place = _Count.place, None
        if place is not None:
            place.close()
        path.unlink(missing_ok=True)


def counted(size: int) -> None:
    """Note that so many bytes of a capture were read."""
    with _Count.lock:
        if _Count.place is not None:
            _Count.place[:] = (int.from_bytes(_Count.place[:], "little") + size).to_bytes(_BYTES, "little")


def bytes_read(path: Path) -> int:
    """Return what was counted into a file so far; 0 where there is none."""
    try:
        return int.from_bytes(path.read_bytes()[:_BYTES], "little")
    except OSError:
        return 0
