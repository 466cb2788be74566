"""ncu -> tables: its reports (.ncu-rep), and every page that `ncu --csv` prints (details, details-all, metrics, raw, summary).

A CSV file is text with tables in it (`text`, `lines`); a table is long, wide or a summary (`long`, `wide`, `summary`), and gives
a page (`page`), as a report does by itself (the folder `ncu_rep`). Pages are united (`merge`, `pairing`) and become rows
(`kernels`, `tables`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from nsightlens.errors import ReadError
from nsightlens.readers.batches import Batch, batch_of
from nsightlens.readers.budget import OVER_BUDGET
from nsightlens.readers.ncu import tables
from nsightlens.readers.ncu.content import Content, content_of, is_report
from nsightlens.readers.ncu.counters import Counters
from nsightlens.readers.ncu.identity import look, origin
from nsightlens.readers.ncu.kernels import kernels
from nsightlens.readers.ncu.log import LogFacts, facts, speaks_ncu
from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.page import Page
from nsightlens.readers.ncu.pairing import united
from nsightlens.readers.ncu.summary import unite
from nsightlens.readers.ncu.text import decode, find_header
from nsightlens.readers.ncu.unsupported import recognise_foreign_csv
from nsightlens.readers.ncu_rep.page import KIND, printed_name
from nsightlens.readers.ncu_rep.stream import MAGIC
from nsightlens.readers.reader import HEAD_BYTES, Probe, ProcessHint

__all__ = ["NEEDS_FILES", "TOOL", "mergeable", "probe", "read", "recognise_foreign_csv", "sniff"]

TOOL = "ncu"
NEEDS_FILES = False


def sniff(path: Path, head: bytes) -> bool:
    """Return whether it is a report of ncu, or a text with a header or a message of ncu."""
    if head.startswith(MAGIC):
        return True
    data = decode(head, Notes())
    if len(head) >= HEAD_BYTES:  # the raw page of a new GPU has a header of 95 KB: what is cut is no fault of it
        data = data[:max(data.rfind(b'","'), data.rfind(b"\n")) + 1]
    return find_header(data)[0] is not None or speaks_ncu(data.split(b"\n"))


def probe(path: Path) -> Probe:
    """Return the facts in a report, or in the id columns and the log; `identity` names the launches. Raises ReadError."""
    if is_report(path):
        return _probe_of_report(path)
    seen = look(path)
    hints = tuple(ProcessHint(pid=pid) for pid in seen.pids)
    return Probe(f"ncu {seen.kind} csv", facts(seen.log).version, hints, seen.identity, origin=seen.origin)


def _probe_of_report(path: Path) -> Probe:
    content = content_of(path)
    launches = [launch for page in content.pages for launch in page.launches]
    pids = dict.fromkeys(launch.pid for launch in launches if launch.pid is not None)
    printed = [launch._replace(name=printed_name(launch)) for launch in launches]
    names = frozenset(launch.identity for launch in [*launches, *printed])
    gpus = {name for page in content.pages for name in tables.gpu_names(page.texts).values()}
    return Probe("ncu report", content.recorded.version if content.recorded else None,
                 tuple(ProcessHint(pid=pid) for pid in pids), names, origin=origin(launches, gpus))


def mergeable(paths: Sequence[Path]) -> bool:
    """Return whether the files agree, within the printed digits, on every raw metric of the launches they share.

    Files that do are pages of one report; files that do not are different reports of launches named alike. A file that
    cannot be read agrees with nothing.
    """
    try:
        contents = [content_of(path) for path in paths]
    except ReadError:
        return False
    _, lost = unite([summary for content in contents for summary in content.summaries])
    return not lost and united(_pages(contents), Notes()).conflicts == 0


def read(paths: Sequence[Path], *, jobs: int = 1, decimal: str | None = None) -> Iterator[Batch]:
    """Yield the tables of one report, of which `paths` are the pages. Raises ReadError where no page can be read.

    decimal: "." or "," where the number format of the files is known; else each file decides.
    """
    notes = Notes()
    contents = _contents(paths, decimal, notes, threads=jobs > 1)
    log_facts = _facts(contents)
    report = united(_pages(contents), notes)
    summaries, lost = unite([summary for content in contents for summary in content.summaries])
    summaries = [] if any(content.recorded for content in contents) else summaries  # their launches are those of the report
    notes.add("metric_conflict", lost[0] if lost else "", len(lost))
    notes.add("pages_merged", f"{len(paths)} files", report.shared if len(paths) > 1 else 0)
    notes.add("summary_only", "", len(summaries))
    for message in log_facts.messages:
        notes.add("tool_message", message)
    batch, process_of, process_of_summary = tables.processes(report.launches, summaries)
    yield batch
    counters = Counters.from_report(report, notes)
    summed = [(process, summary.launches) for process, summary in zip(process_of_summary, summaries, strict=True)]
    yield tables.devices(report, counters, process_of, summed)
    if report.launches:
        yield from kernels(report, counters, log_facts, process_of)
        yield from tables.launch_batches(report)
    if summaries:
        yield tables.summary_batch(summaries, process_of_summary)
    for content in contents:
        notes.extend(content.notes)
    yield _profile(contents, log_facts, notes)
    yield from notes.batches()


def _contents(paths: Sequence[Path], decimal: str | None, notes: Notes, *, threads: bool) -> list[Content]:
    contents: list[Content] = []
    failed: ReadError | None = None
    for path in paths:
        try:
            contents.append(content_of(path, decimal, threads=threads))
        except ReadError as exc:
            failed = failed or exc
            notes.add("page_unreadable", f"{path.name}: {exc.reason}")
    if failed and not contents:
        raise failed
    return contents


def _pages(contents: Sequence[Content]) -> list[Page]:
    return [page for content in contents for page in content.pages]


def _facts(contents: Sequence[Content]) -> LogFacts:
    """Return what a report states, else what the logs say; in any case the messages of ncu in these."""
    logged = facts([line for content in contents for line in content.log])
    recorded = next((content.recorded for content in contents if content.recorded), None)
    return replace(recorded, messages=logged.messages) if recorded else logged


def _profile(contents: Sequence[Content], log_facts: LogFacts, notes: Notes) -> Batch:
    kinds = {f"ncu {page.kind}" if page.kind == KIND else f"ncu {page.kind} csv" for page in _pages(contents)}
    kinds |= {"ncu summary csv" for content in contents if content.summaries}
    row: dict[str, object] = {
        "tool_version": log_facts.version,
        "format": " + ".join(sorted(kinds)),
        "vendor": "cuda",
        "events": sum(page.rows for page in _pages(contents))
        + sum(len(content.summaries) for content in contents),
        "events_lost": sum(notes.counts.get(code, 0) for code in ("rows_lost", "truncated", "launch_damaged")),
        "truncated": not notes.counts.keys().isdisjoint({"truncated", OVER_BUDGET, "report_damaged"}),
        "first_bad_byte": notes.offsets.get("report_damaged"),
    }
    return "profiles", batch_of("profiles", [row])
