"""Nsight Systems: an SQLite export, the directory of a parquetdir export, or what nsys stats printed -> tables in our terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from nsightlens.errors import ReadError, UsageError
from nsightlens.readers.batches import Batch
from nsightlens.readers.reader import HEAD_BYTES, Origin, Probe

# The rest is imported by the functions that need it: to look at files of other tools costs nothing.
if TYPE_CHECKING:
    from nsightlens.readers.nsys.source import Source

TOOL = "nsys"
NEEDS_FILES = True
_MAGIC = b"SQLite format 3\0"
_GZIP = b"\x1f\x8b"


def sniff(path: Path, head: bytes) -> bool:
    """Return whether this is an SQLite file (also another program's: `probe` names it), a directory of nsys's Parquet files, or a
    table that nsys stats printed."""
    if head.startswith(_MAGIC):
        return True
    if head:
        from nsightlens.readers.nsys.stats import is_stats

        return is_stats(head)
    try:
        if not path.is_dir():
            return False
        from nsightlens.readers.nsys.parquetdir import tables_in
        from nsightlens.readers.nsys.source import is_report

        return is_report(tables_in(path))
    except OSError:
        return False


def probe(path: Path) -> Probe:
    """Return what the report says of itself. Raises ReadError; UnknownFormatError for another program's database."""
    from nsightlens.readers.nsys import devices, identity, stats
    from nsightlens.readers.nsys.processes import hints, programs
    from nsightlens.readers.nsys.report import describe, fingerprint, first_event_epoch_ns, first_kernel
    from nsightlens.readers.nsys.versions import untested

    if _is_printed(path):
        return stats.probe(path)
    with closing(_open(path)) as source:
        report = describe(source)
        digest = fingerprint(source, report.base_ns)
        session = report.session_epoch_ns
        names = {f"nsys-session:{session}:{report.host or ''}:{digest}"} if session and digest else set()
        first = first_kernel(source)
        return Probe(
            kind=source.kind,
            tool_version=report.exporter,
            processes=hints(source, report),
            identity=frozenset(names | ({identity.first_kernel(*first)} if first else set())),
            first_epoch_ns=first_event_epoch_ns(source, report),
            unread=source.others(),
            note=untested(report.schema_version),
            origin=Origin(*devices.listed(source), programs(source)),
        )


def read(paths: Sequence[Path], *, jobs: int = 1) -> Iterator[Batch]:
    """Yield the tables of one report, each row of `processes` and `devices` before the first row that needs it.

    `paths`: exactly one SQLite file, parquetdir or printed table. Raises ReadError where nothing can be read.
    """
    from nsightlens.readers.nsys.reading import ReportReading

    if len(paths) != 1:
        raise UsageError(f"an nsys report is one file or directory, not {len(paths)}")
    if _is_printed(paths[0]):
        from nsightlens.readers.nsys import stats

        yield from stats.read(paths[0])
        return
    with closing(_open(paths[0])) as source:
        yield from ReportReading(source, jobs).batches()


def _is_printed(path: Path) -> bool:
    """Return whether it is a table that nsys stats printed, also under gzip: exports are unpacked before they are read."""
    from nsightlens.readers.nsys.stats import is_stats

    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:  # a directory; what cannot be opened is said later
        return False
    return head.startswith(_GZIP) or is_stats(head)


def _open(path: Path) -> Source:
    from nsightlens.readers.nsys.parquetdir import ParquetSource
    from nsightlens.readers.nsys.sqlite import SqliteSource

    try:
        return ParquetSource(path) if path.is_dir() else SqliteSource(path)
    except OSError as exc:
        raise ReadError(path, f"the file cannot be opened ({exc.strerror or exc})", "Check its path and permissions") from exc
