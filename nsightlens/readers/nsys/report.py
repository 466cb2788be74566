"""What a report says of itself: versions, host, the epoch of its clock, and its own diagnostic texts."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

import pyarrow as pa

from nsightlens.readers.nsys.columns import MAX_TIME_NS
from nsightlens.readers.nsys.source import EVENT_TABLES, GPU_TABLES, HOST_TABLES, STREAMS, Source

_EPOCH_LIKE_NS = 10**17
"""Later than any time since a session's start or a boot (three years), earlier than any epoch time (1973)."""

_LINE = 1000
"""Characters that are kept of a line of the program, whole words."""
_VERSION_IN_PATH = re.compile(r"(?<!\d)(20\d\d\.\d+\.\d+)(?!\d)")


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """Facts of a report; None where unknown.

    session_epoch_ns: epoch time of the start of the session.
    base_ns: what to subtract from the times in the tables, so that they are relative to origin_epoch_ns.
    """

    exporter: str | None
    schema_version: str | None
    capturer: str | None
    host: str | None
    session_epoch_ns: int | None
    base_ns: int
    origin_epoch_ns: int | None
    shift_ns: int


def describe(source: Source) -> ReportFacts:
    """Return what the report says of itself."""
    export = {name: value for table in ("EXPORT_META_DATA", "META_DATA_EXPORT")
              for name, value in source.rows(table, ("name", "value"))}
    system = {name: text(value) for name, value in source.rows(
        "TARGET_INFO_SYSTEM_ENV", ("name", "value"), ("name", ("Hostname", "TargetInstallDir")))}
    exporter = text(export.get("EXPORT_PRODUCT_VERSION"))
    session = next((number(row[0]) for row in source.rows("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))), None)
    session = session if session and _EPOCH_LIKE_NS < session < MAX_TIME_NS else None
    shift = number(export.get("EXPORT_PARAM_TIME_SHIFT")) or 0
    shift = shift if abs(shift) < MAX_TIME_NS else 0
    base, origin = _clock(session, shift, _first_start(source))
    return ReportFacts(
        exporter=exporter,
        schema_version=text(export.get("EXPORT_SCHEMA_VERSION")),
        capturer=_capturer(system.get("TargetInstallDir"), exporter),
        host=system.get("Hostname"),
        session_epoch_ns=session,
        base_ns=base,
        origin_epoch_ns=origin,
        shift_ns=shift,
    )


def fingerprint(source: Source, base_ns: int) -> str | None:
    """Return a digest that two exports of one capture share and two slices of it do not; None without events.

    Cheap: rows counted by their last rowid, and the first and last start of each table of events.
    """
    parts = []
    for table in EVENT_TABLES:
        count, first, last = source.edges(table, "start")
        if count:
            starts = [str(value - base_ns) if isinstance(value, int) else "?" for value in (first, last)]
            parts.append(f"{table} {count} {' '.join(starts)}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16] if parts else None


def first_kernel(source: Source) -> tuple[object, object] | None:
    """Return start, as the report has it, and correlation id of its first kernel; None without one."""
    count, start, _ = source.edges(GPU_TABLES[0], "start")
    return (start, source.edges(GPU_TABLES[0], "correlationId")[1]) if count else None


def first_event_epoch_ns(source: Source, report: ReportFacts) -> int | None:
    """Return the rough epoch time of the first event."""
    first = _first_start(source)
    return None if first is None or report.origin_epoch_ns is None else report.origin_epoch_ns + first - report.base_ns


def own_messages(source: Source) -> list[tuple[bool, str]]:
    """Return what the report itself says of CUDA tracing, in short: (is it a warning or error, text)."""
    found: dict[str, bool] = {}
    for severity, message in source.rows("DIAGNOSTIC_EVENT", ("severity", "text")):
        message_text = " ".join((text(message) or "").split())[:300]
        is_warning = severity in (2, 3)
        if "CUDA" in message_text and (is_warning or message_text.startswith("Number of CUDA events collected")):
            found[message_text] = is_warning
    return [(is_warning, message_text) for message_text, is_warning in found.items()][:8]


def error_line(source: Source) -> str | None:
    """Return the last line that is not empty of what the program wrote to its standard error, where nsys kept it."""
    rows = source.rows(STREAMS, ("filenameId", "contentId"))
    ids = pa.array([number(value) for row in rows for value in row], pa.int64())
    texts = source.strings(ids).to_pylist()
    lines = [line for name, content in zip(texts[::2], texts[1::2], strict=True) if "stderr" in (name or "")
             for line in (content or "").splitlines() if line.strip()]
    line = " ".join(lines[-1].split()) if lines else ""
    return (line if len(line) <= _LINE else line[:_LINE].rpartition(" ")[0]) or None  # half a word might be half a secret


def text(value: object) -> str | None:
    """Return the value if it is a text with something in it."""
    return value if isinstance(value, str) and value.strip() else None


def number(value: object) -> int | None:
    """Return the value as an integer if it is one, or a text of one."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value.strip()):
        return int(value)
    return value if isinstance(value, int) else None


def _capturer(install_dir: str | None, exporter: str | None) -> str | None:
    """Return the version of the nsys that captured, where it differs from the one that exported."""
    match = _VERSION_IN_PATH.search(install_dir or "")
    return match[1] if match and not (exporter or "").startswith(match[1]) else None


def _first_start(source: Source) -> int | None:
    """Return the first start that a clock may show: a damaged one says nothing of the others."""
    for tables in (EVENT_TABLES, HOST_TABLES):
        starts = [start for table in tables for start in source.edges(table, "start")[1:]]
        known = [start for start in starts if isinstance(start, int) and abs(start) <= MAX_TIME_NS]
        if known:
            return min(known)
    return None


def _clock(session: int | None, shift: int, first: int | None) -> tuple[int, int | None]:
    """Return base_ns and origin_epoch_ns.

    Times count from the start of the session, plus what --ts-shift added; an export with --ts-normalize counts from the epoch.
    """
    if first is None or abs(first) < _EPOCH_LIKE_NS:
        return shift, session
    base = (first - shift) // 10**9 * 10**9 if session is None else session
    return base + shift, base
