"""PyTorch profiler (Kineto) traces, JSON or gzipped JSON of 2021 to 2026 -> tables.

Start times are relative to the whole second before the first event of the file, so that they stay small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from nsightlens.errors import ReadError
from nsightlens.readers.batches import Batch
from nsightlens.readers.reader import Probe

__all__ = ["NEEDS_FILES", "TOOL", "probe", "read", "sniff"]

TOOL = "kineto"
NEEDS_FILES = False
# The rest is imported by the functions that need it: to look at files of other tools costs nothing.


def sniff(path: Path, head: bytes) -> bool:
    """Return whether the file may be a trace, or JSON of a neighbouring kind that `probe` names."""
    from nsightlens.readers.kineto import probing

    return probing.sniff(path, head)


def probe(path: Path) -> Probe:
    """Return what a quick look at the file shows. Raises ReadError, or UnknownFormatError for JSON of another kind."""
    from nsightlens.readers.kineto import probing

    return probing.probe(path)


def read(paths: Sequence[Path], *, jobs: int = 1, piece_bytes: int | None = None) -> Iterator[Batch]:
    """Yield the tables of one trace, in an order that depends on the file alone.

    piece_bytes: how much is decoded at once. jobs: processes for a large file, this one included. Raises ReadError.
    """
    from nsightlens.readers.kineto.reading import PIECE_BYTES, TraceReading
    from nsightlens.readers.kineto.stream import TraceFile

    (path,) = paths
    try:
        with closing(TraceFile(path)) as source:
            yield from TraceReading(path, source, jobs, piece_bytes or PIECE_BYTES).trace()
    except OSError as exc:
        raise ReadError(path, f"it cannot be read ({exc.strerror or exc})", "Check the disk and the permissions") from exc
