"""The lines of a file, plain or under gzip, as far as it can be unpacked: a bounded amount, however little it was packed to."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, AnyStr

from nsightlens.errors import ReadError
from nsightlens.readers import budget
from nsightlens.readers.budget import OVER_BUDGET, most_unpacked, read_upto

_GZIP = b"\x1f\x8b"
_CUT = ("truncated", "the file ends within a line or within its compressed data")
_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error)


class Lines:
    """The lines of a file, with their ends. One that is longer than the budget allows comes in pieces.

    is_cut: after the last line, whether the compressed data are damaged, end too early or unpack to too much.
    why_cut: code and message of the diagnostic for that, and for a last line without an end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_cut = False
        self.why_cut = _CUT

    def bytes_lines(self) -> Iterator[bytes]:
        """Yield the lines. Raises ReadError where the file cannot be opened."""
        return self._each(lambda raw: raw)

    def text_lines(self, encoding: Callable[[bytes], str]) -> Iterator[str]:
        """Yield the lines in the encoding that follows from the first 4 bytes. Raises ReadError likewise."""
        def decoded(raw: IO[bytes]) -> IO[str]:
            start = raw.read(4)
            raw.seek(0)
            return io.TextIOWrapper(raw, encoding=encoding(start), errors="replace")

        return self._each(decoded)

    def _each(self, opened: Callable[[IO[bytes]], IO[AnyStr]]) -> Iterator[AnyStr]:
        try:
            with self.path.open("rb") as plain:
                is_packed = plain.read(2) == _GZIP
                plain.seek(0)
                most = most_unpacked(self.path) if is_packed else None
                raw: Any = gzip.GzipFile(fileobj=plain) if is_packed else plain
                with suppress(*_ERRORS):
                    held = yield from _up_to(most, opened(raw))
                    if held is None:
                        return
                    self.why_cut = OVER_BUDGET, read_upto(held)
                self.is_cut = True
        except OSError as exc:
            raise ReadError(self.path, exc.strerror or "cannot be read", "Check its path and permissions") from exc


def _up_to(most: int | None, file: IO[AnyStr]) -> Generator[AnyStr, None, int | None]:
    """Yield the lines, and return how much they are where there are more; None where the last of them is the last of the file."""
    held = 0
    while line := file.readline(budget.BUDGET.longest):
        if most is not None and held > most:
            return held
        held += len(line)
        yield line
    return None
