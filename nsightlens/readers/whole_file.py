"""Captures that are one JSON object of moderate size: read whole, plain or gzip, and decoded."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import TypeVar

import msgspec

from nsightlens.errors import ReadError

_GZIP = b"\x1f\x8b"
Content = TypeVar("Content")


def decode(path: Path, decoder: msgspec.json.Decoder[Content], most: int, what: str, again: str, smaller: str) -> Content:
    """Return the content of the file at `path`, of at most `most` bytes once unpacked.

    what: what the file holds; again, smaller: what to do where it is damaged, and where it is too large. Raises ReadError for
    what cannot be read, is too large, is damaged or is something else.
    """
    try:
        with path.open("rb") as plain:
            is_packed = plain.read(2) == _GZIP
            plain.seek(0)
            content = (gzip.GzipFile(fileobj=plain) if is_packed else plain).read(most + 1)
        if len(content) <= most:
            return decoder.decode(content.removeprefix(b"\xef\xbb\xbf"))
    except (EOFError, gzip.BadGzipFile, zlib.error, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise ReadError(path, f"damaged {what} ({exc})", again, "damaged") from exc
    except OSError as exc:
        raise ReadError(path, f"it cannot be read ({exc.strerror or exc})", "Check the disk and the permissions") from exc
    raise ReadError(path, f"{what} of more than {most >> 20} MiB", smaller, "too_large")
