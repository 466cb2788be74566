"""One file -> its tables as pages and summaries, its log, and what was wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from pathlib import Path

from nsightlens.errors import ReadError
from nsightlens.readers.ncu import details, wide
from nsightlens.readers.ncu.lines import tables
from nsightlens.readers.ncu.log import LogFacts, refusal
from nsightlens.readers.ncu.long import LongCells, LongRows
from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.numbers import FormatEvidence
from nsightlens.readers.ncu.page import Page
from nsightlens.readers.ncu.summary import Summary, SummaryRows, summaries
from nsightlens.readers.ncu.text import HeaderLine, blocks
from nsightlens.readers.ncu.wide import WideCells, WideRows
from nsightlens.readers.ncu_rep.page import report_page
from nsightlens.readers.ncu_rep.stream import MAGIC, unpacked_head

_SMALL = 1 << 18
"""Bytes up to which a file is remembered."""

Rows = LongRows | WideRows | SummaryRows


@dataclass(slots=True)
class Content:
    """What a file holds. `recorded`: the facts that a report states, where it is one."""

    pages: list[Page] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)
    log: list[bytes] = field(default_factory=list)
    recorded: LogFacts | None = None
    notes: Notes = field(default_factory=Notes)


def content_of(path: Path, decimal: str | None = None, *, threads: bool = False) -> Content:
    """Return what a file holds: not to be changed, for small files are remembered. Raises ReadError where it has no row.

    decimal: "." or "," overrides the number format detected in the file.
    """
    try:
        if path.stat().st_size <= _SMALL:
            return _remembered(path, blake2b(path.read_bytes()).digest(), decimal)
    except OSError:
        pass  # reported when the file is read
    return _read(path, decimal, threads=threads)


@lru_cache(maxsize=64)
def _remembered(path: Path, digest: bytes, decimal: str | None) -> Content:
    """Return what a small file holds: each page of a report is compared with each other one, and then read."""
    return _read(path, decimal, threads=False)


def is_report(path: Path) -> bool:
    """Return whether a file is a report of ncu, and no text. Raises ReadError."""
    try:
        return unpacked_head(path, len(MAGIC)) == MAGIC
    except OSError as exc:
        raise ReadError(path, exc.strerror or "cannot be opened", "Check the path and its permissions.") from exc


def _read(path: Path, decimal: str | None, *, threads: bool) -> Content:
    content = Content()
    if is_report(path):
        page, content.recorded = report_page(path, content.notes)
        content.pages.append(page)
        return content
    found = tables(blocks(path, content.notes), lambda header: _rows_of(header, threads), content.notes, content.log)
    headers = [rows.header.cells for rows in found]
    content.notes.add("repeated_header", "", len(headers) - len(set(headers)))
    evidence = FormatEvidence()
    parts: list[LongCells | WideCells | SummaryRows] = []
    for rows in found:
        if isinstance(rows, LongRows):
            cells = LongCells.of(rows, content.notes)
            evidence.see(cells.texts)
            parts.append(cells)
        elif isinstance(rows, WideRows):
            parts.append(WideCells.of(rows, evidence))
        else:
            rows.see(evidence)
            parts.append(rows)
    if evidence.is_open:
        for unit, texts in chain.from_iterable(part.printed() for part in parts):
            evidence.weigh(texts, unit)
    decimal = decimal or evidence.decimal(content.notes)
    for part in parts:
        if isinstance(part, LongCells):
            content.pages.append(details.page(part, decimal))
        elif isinstance(part, WideCells):
            content.pages.append(wide.page(part, decimal))
        else:
            content.summaries += summaries(part, decimal, content.notes)
    for page in content.pages:
        content.notes.extend(page.notes)
    content.pages = [page for page in content.pages if page.launches]
    if not content.pages and not content.summaries:
        raise refusal(path, content.log)
    return content


def _rows_of(header: HeaderLine, threads: bool) -> Rows:
    if header.shape == "summary":
        return SummaryRows(header)
    return LongRows(header) if header.shape == "long" else WideRows(header, threads)
