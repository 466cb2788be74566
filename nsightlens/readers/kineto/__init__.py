"""PyTorch profiler (Kineto) traces, JSON or gzipped JSON of 2021 to 2026 -> tables.

Start times are relative to the whole second before the first event of the file, so that they stay small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from nsightlens.errors import ReadError
from nsightlens.readers import Batch
from nsightlens.readers.kineto.probing import probe, sniff
from nsightlens.readers.kineto.reading import PIECE_BYTES, Reading
from nsightlens.readers.kineto.stream import Source

__all__ = ["TOOL", "probe", "read", "sniff"]

TOOL = "kineto"


def read(paths: Sequence[Path], *, jobs: int = 1, piece_bytes: int = PIECE_BYTES) -> Iterator[Batch]:
    """Yield the tables of one trace, in an order that depends on the file alone.

    piece_bytes: how much is decoded at once. jobs: processes for a large file, this one included. Raises ReadError.
    """
    (path,) = paths
    try:
        with closing(Source(path)) as source:
            yield from Reading(path, source, jobs, piece_bytes).trace()
    except OSError as exc:
        raise ReadError(path, f"it cannot be read ({exc.strerror or exc})", "Check the disk and the permissions") from exc
