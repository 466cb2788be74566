"""A file that is read forwards: plain, where passing over bytes costs nothing, or under gzip or zstd."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import pyarrow as pa

from nsightlens.readers import budget
from nsightlens.readers.budget import too_dense
from nsightlens.readers.measure import counted

MAGIC = b"NVR\0"
_CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_CHUNK = 1 << 20


def codec_of(head: bytes) -> str | None:
    """Return the codec that a file is packed with, by its first bytes; None for a plain one."""
    return next((name for magic, name in _CODECS.items() if head.startswith(magic)), None)


def unpacked_head(path: Path, size: int) -> bytes:
    """Return the first bytes of a file, unpacked. Raises OSError."""
    with Stream(path) as stream:
        return stream.upto(size)


class Stream:
    """The bytes of a file from its beginning. `offset` counts them unpacked; `problem` says why it ended early, if it did."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises OSError."""
        self.offset = 0
        self.problem = ""
        self._file = path.open("rb")
        self.size = path.stat().st_size
        codec = codec_of(self._file.read(4))
        self._file.seek(0)
        self._most = self.size if codec is None else budget.BUDGET.most_of(self.size)
        self._packed = None if codec is None else pa.CompressedInputStream(pa.PythonFile(self._file, "r"), codec)

    def __enter__(self) -> Stream:
        """Return the stream."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the file."""
        self._file.close()

    def read(self, size: int) -> bytes | None:
        """Return the next `size` bytes, or None where there are fewer."""
        found = self.upto(size) if self.offset + size <= self._most else b""
        return found if len(found) == size else None

    def upto(self, size: int) -> bytes:
        """Return the next `size` bytes, or those that are left."""
        if self._packed is None:
            found = self._file.read(min(size, self.size))
            counted(len(found))
            self.offset += len(found)
            return found
        parts = []
        while size and (part := self._unpack(min(size, _CHUNK))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def skip(self, size: int) -> bool:
        """Pass over bytes; return False where there are fewer."""
        if self.offset + size > self._most:
            self.problem = self.problem or (too_dense() if self._packed else "")
            return False
        if self._packed is None:
            self._file.seek(size, 1)
            self.offset += size
            return True
        while size and (part := self._unpack(min(size, _CHUNK))):
            size -= len(part)
        return not size

    def _unpack(self, size: int) -> bytes:
        if self._packed is None or self.problem:
            return b""
        try:
            found: bytes = self._packed.read(size)
        except (OSError, pa.ArrowInvalid) as exc:
            self.problem = f"the packed file is cut or damaged ({exc})"
            return b""
        self.offset += len(found)
        return found
