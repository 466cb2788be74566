"""Ingest: discover -> group -> read and normalise (in parallel) -> store."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from nsightlens.analyses import Ask
from nsightlens.discovery.files import CaptureFile, find, fingerprint, has_changed, look_at, path_text, still_written
from nsightlens.discovery.profiles import Group, Grouping, group, profile_id
from nsightlens.discovery.ranks import rank_from_name
from nsightlens.discovery.remote import path_of
from nsightlens.discovery.sniff_cache import Fingerprint, SniffCache
from nsightlens.errors import ReadError, StoreError, UnknownFormatError, UsageError, other_schema
from nsightlens.pipeline import memory, workers
from nsightlens.pipeline.answer import answer
from nsightlens.pipeline.answer_across import answer_across
from nsightlens.pipeline.meter import OnProgress
from nsightlens.pipeline.plan import Plan, Resources, Task, read_profile
from nsightlens.pipeline.profile_rows import ProfileInput
from nsightlens.pipeline.superseded import held, instead_of, is_at_its_path, note_broken_parts, recorded_over
from nsightlens.readers.ncu import mergeable
from nsightlens.schema import SCHEMA_VERSION, TABLES, TEMPLATE
from nsightlens.store import checks, compaction
from nsightlens.store.catalog import Change
from nsightlens.store.store import CATALOG, locate
from nsightlens.store.writer import Known, StoreWriter

_POOLED = """
SELECT code, min(message) || CASE WHEN count(*) > 1 THEN ' (and ' || (count(*) - 1) || ' more)' ELSE '' END AS message
FROM diagnostics WHERE run IN (SELECT unnest(?)) AND code IN (SELECT unnest(?)) GROUP BY code ORDER BY code
"""
_LOG = logging.getLogger(__name__)
_WARNINGS = ("same_launches_differ", "merge_is_doubtful", "files_gone", "windows_overlap")
State = Literal["new", "replaced", "unchanged", "refused"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one profile: its files, its state, and the rows of each table (empty where refused)."""

    profile_id: str
    run: str
    tool: str
    paths: tuple[Path, ...]
    state: State
    rows: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class IngestReport:
    """What an ingest did, for the person who waits for it."""

    store: Path
    outcomes: list[Outcome] = field(default_factory=list)
    refused: list[ReadError] = field(default_factory=list)
    duplicates: dict[Path, tuple[Path, str]] = field(default_factory=dict)
    files_seen: int = 0
    kept: list[tuple[str, Path]] = field(default_factory=list)
    """Run and path of captures that were recorded over and ingested as another run: the run keeps the rows of the earlier one."""
    broken_parts: list[Path] = field(default_factory=list)
    """Parts of the store that are missing or damaged and were not rebuilt, as their captures were not ingested."""
    answers_s: float | None = None
    """Seconds that the answers took; None where none were computed."""
    across_s: float | None = None
    """Seconds that those across profiles took, which come after the commit; None where none were computed."""

    def warnings(self, ask: Ask) -> list[tuple[str, str]]:
        """Return code and text of what the ingest refused, and of runs that pool captures that may not be of one workload."""
        pooled = ask(_POOLED, [sorted({outcome.run for outcome in self.outcomes}), list(checks.POOLED)])
        said = [(row["code"], row["message"]) for row in pooled.to_pylist()]
        if self.refused:
            first, files = self.refused[0], f"{len(self.refused)} of {self.files_seen} files refused"
            said.insert(0, ("refused", f"{files}: {first}" if len(self.refused) == 1 else
                            f"{files}, the first: {first} (all: store.sql(\"FROM files WHERE outcome = 'refused'\"))"))
        return said


def ingest(
    roots: Iterable[str | Path], store: str | Path | None = None, *, run: str | None = None, rank_pattern: str | None = None,
    jobs: int | None = None, materialise: bool = True, answers: bool | None = None, executor: Executor | None = None,
    on_progress: OnProgress | None = None, on_wait: Callable[[str], None] | None = None,
) -> IngestReport:
    """Read every capture below `roots` into the store, and return what was done.

    Only what is new or has changed is read. One unreadable file never stops the others. `executor` replaces our own worker
    processes (say, a cluster's). answers: True computes all views of each profile now (store/answers.py), False none; None:
    those asked for often, where the store is large enough; where most of it is new, also those across profiles
    (store/across.py). Rows of other runs stay, also where their captures were recorded over.
    Raises UsageError for a path that does not exist, StoreError where the store can't be written.
    """
    roots = list(roots)
    if jobs is not None and jobs < 1:
        raise UsageError("jobs: at least one process reads", subject="jobs", value=jobs)
    jobs = jobs or workers.available()
    with StoreWriter(locate(store), materialise=materialise, on_wait=on_wait) as writing:
        known = writing.known()
        if known.older_schema is not None:
            raise other_schema(writing.store, known.older_schema, SCHEMA_VERSION)
        looks = SniffCache(writing.path)
        found = find(roots, run=run, rank_pattern=rank_pattern, taken=known.runs, held=held(known), looks=looks)
        _LOG.info("%d files found; %d of them are captures", len(found), sum(f.tool is not None for f in found))
        for file in found:
            _LOG.debug("%s: %s, %d bytes", file.path, file.refused or file.kind, file.bytes)
        known.patterns |= {f.run: rank_pattern for f in found if rank_pattern}
        runs, seen = {f.run for f in found}, {path_text(f.path) for f in found}
        others = (row for row in known.files if row["run"] in runs and is_at_its_path(row) and row["path"] not in seen)
        found += look_again(others, known, looks)  # a late page joins them
        resources = Resources(jobs, executor, on_progress)
        change, report = read_new(found, writing, known, run is not None, resources, looks)
        report.answers_s = answer(change, known, writing, resources, answers)
        if (known.files or report.outcomes or report.refused) and is_needed(change, known):
            memory.give_back()
            writing.commit(change)
            _LOG.info("committed to %s", writing.store)
        if (writing.path / CATALOG).is_file():
            looks.save(writing.staging)
            report.across_s = answer_across(writing, change, answers, on_progress)
    return report


def look_again(rows: Iterable[dict[str, Any]], known: Known, looks: SniffCache | None = None) -> list[CaptureFile]:
    """Return what files of the store are now, under the runs that they have there; those that are gone are left out."""
    again = ((path_of(row["path"]), row["run"]) for row in rows)
    return [look_at(path, path_of(known.runs.get(run, path.parent)), run, run_is_given=True, looks=looks)
            for path, run in again if path.exists()]


def _ranked_as_before(file: CaptureFile, known: Known, store: Path) -> CaptureFile:
    """Return the file with the rank that its name has by the pattern that its run was read with. Raises StoreError."""
    pattern = known.patterns.get(file.run)
    if not pattern:
        return file
    try:
        compiled = re.compile(pattern)
    except re.error as exc:
        raise StoreError(f"{store}: its rank pattern of run {file.run}, {pattern!r}, is not a regular expression: {exc}", store,
                         "Ingest the captures into a new store, with --rank-pattern") from exc
    return replace(file, rank_hint=rank_from_name(file.path, file.root, compiled))


def read_new(
    found: list[CaptureFile], writing: StoreWriter, known: Known, run_is_given: bool, resources: Resources, looks: SniffCache
    | None = None,
) -> tuple[Change, IngestReport]:
    """Read those profiles of the files that are new, have changed or are older than the rules; nothing is committed."""
    prints, failed = _fingerprints(found, looks)
    found = [replace(f, tool=None, refused=failed[f.path]) if f.path in failed else f for f in found]
    found, moved = (found, {}) if run_is_given else _at_home(found, prints, known)
    found = [_ranked_as_before(f, known, writing.store) for f in found]
    grouping = group(found, prints, mergeable)
    plan = Plan(writing, known, prints)
    for one in grouping.groups:
        plan.add(one)
    while plan.waiting():
        plan.read(resources)
    change, report = _settle(plan, grouping, found)
    change.files += [{**row, "outcome": "missing", "profile_id": None, "reason": reason} for row, reason in moved.values()]
    change.files += plan.gone
    for row in recorded_over(found, prints, known):
        change.files.append(row)
        report.kept.append((row["run"], path_of(row["path"])))
    report.broken_parts = note_broken_parts(writing.store, known, change)
    change.bundles = compaction.gathered(change, writing.staging)
    return change, report


def is_needed(change: Change, known: Known) -> bool:
    """Return whether a change would make the store another one; also where it has the views of another version."""
    changes = (change.added or change.removed or change.matched or change.lost or change.answers
               or change.files != _rows_known(known, change))
    return bool(changes) or not known.has_views


def _fingerprints(
    found: Sequence[CaptureFile], looks: SniffCache | None,
) -> tuple[dict[Path, Fingerprint], dict[Path, ReadError]]:
    prints: dict[Path, Fingerprint] = {}
    failed: dict[Path, ReadError] = {}
    for file in found:
        if file.tool:
            try:
                prints[file.path] = file.fingerprint or _fingerprint(file, looks)
            except OSError as exc:
                failed[file.path] = ReadError(file.path, f"it cannot be read ({exc.strerror})", "Check the disk", "unreadable")
    return prints, failed


def _fingerprint(file: CaptureFile, looks: SniffCache | None) -> Fingerprint:
    """Return the fingerprint of a file; what it and the first look show is remembered, where no write came between them."""
    now_ns, status = time.time_ns(), file.path.stat()
    found = fingerprint(file.path)
    if looks and file.tool and file.probe and not file.path.is_dir() and not has_changed(file):
        looks.keep(file.path, status, now_ns, file.tool, file.probe, found)
    return found


def _at_home(
    found: list[CaptureFile], prints: dict[Path, Fingerprint], known: Known,
) -> tuple[list[CaptureFile], dict[str, tuple[dict[str, Any], str]]]:
    """Give a folder that was moved or renamed since an earlier ingest the run that it had then.

    A run is the same where a file of it is known by content under another run, and is gone from its old path. Returns the files,
    and by old path the rows of `files` that this makes obsolete, with why.
    """
    here = {path_text(f.path) for f in found}
    gone = {row["fingerprint"]: row for row in known.files
            if row["profile_id"] and row["path"] not in here and not path_of(row["path"]).exists()}
    matches = [(f, gone[prints[f.path].text]) for f in found if f.path in prints and prints[f.path].text in gone]
    homes = {f.run: row["run"] for f, row in matches if f.run not in known.runs and not (f.sidecar and f.sidecar.run)}
    moved = {row["path"]: (row, f"it lies at {path_text(f.path)} now") for f, row in matches
             if homes.get(f.run, f.run) == row["run"]}
    return [replace(f, run=homes.get(f.run, f.run)) for f in found], moved


def _settle(plan: Plan, grouping: Grouping, found: Sequence[CaptureFile]) -> tuple[Change, IngestReport]:
    """Return what changes in the store, and the report."""
    change, report = Change(), IngestReport(plan.writing.store, files_seen=len(found),
                                       duplicates={path: twin for (_, path), twin in grouping.duplicates.items()})
    places: dict[tuple[str, Path], tuple[str, int]] = {}
    before = {(row["run"], row["path"]): row["profile_id"] for row in plan.known.files}
    for name, one in plan.groups.items():
        paths = tuple(f.path for f in one.files)
        if name in plan.errors:
            report.refused.append(plan.errors[name])
            report.outcomes.append(Outcome(name, one.run, one.tool, paths, "refused"))
            continue
        for code, message in one.notes:
            note(change, one.first, "warning" if code in _WARNINGS else "info", code, message)
        places |= {(f.run, f.path): (name, i) for i, window in enumerate(one.windows) for f in window}
        earlier = {before[key] for p in paths if before.get(key := (one.run, path_text(p)))}
        change.removed |= earlier - {name}
        if name in plan.unchanged:
            report.outcomes.append(Outcome(name, one.run, one.tool, paths, "unchanged"))
            continue
        for file in one.files:
            if not file.path.exists():
                note(change, file, "warning", "changed_while_read", "it disappeared while it was read; its rows are kept")
        change.added.append((name, one.run, plan.signatures[name], plan.folder(name), plan.written[name]))
        rows = {table: count for table, count in plan.written[name].items() if table in TABLES}
        again = name in plan.known.signatures or bool(earlier)
        report.outcomes.append(Outcome(name, one.run, one.tool, paths, "replaced" if again else "new", rows))
    change.matched = plan.matched
    change.removed -= plan.groups.keys() - plan.errors.keys()
    refused = {path_of(e.path): e for e in plan.errors.values()}
    for file in found:
        _settle_file(file, places, refused, grouping, plan, change, report)
    change.runs = {f.run: (path_text(f.root), plan.known.patterns.get(f.run)) for f in found}
    return change, report


def _settle_file(
    file: CaptureFile, places: dict[tuple[str, Path], tuple[str, int]], errors: dict[Path, ReadError], grouping: Grouping,
    plan: Plan,
    change: Change, report: IngestReport,
) -> None:
    row: dict[str, Any] = {"path": path_text(file.path), "run": file.run, "tool": file.tool, "kind": file.kind,
                           "bytes": file.bytes, "modified_ns": file.modified_ns, "outcome": "ignored", "reason": None,
                           "profile_id": None,
                           "fingerprint": plan.prints[file.path].text if file.path in plan.prints else None}
    refused = file.refused or errors.get(file.path)
    if (file.run, file.path) in places:
        row["profile_id"], row["window_index"] = places[file.run, file.path]
        row["outcome"] = _read_or_partial(plan, row)
    elif (file.run, file.path) in grouping.duplicates:
        other, why = grouping.duplicates[file.run, file.path]
        row |= {"outcome": "duplicate", "reason": f"{why}{instead_of(path_text(other))}"}
        note(change, file, "info", "duplicate", row["reason"])
    elif refused:
        earlier = next((r["profile_id"] for r in plan.known.files if (r["run"], r["path"]) == (row["run"], row["path"])), None)
        row |= {"outcome": "refused", "reason": f"{refused.reason}. {refused.what_to_do}", "profile_id": earlier}
        note(change, file, "error" if file.tool else "warning", refused.code, row["reason"])
        if file.refused:
            report.refused.append(refused)
    if file.sidecar_problem:
        note(change, file, "warning", "bad_sidecar", file.sidecar_problem)
    for complaint in file.sidecar.complaints() if file.sidecar else ():
        note(change, file, "warning", "capture_problem", complaint)
    change.files.append(row)


def _read_or_partial(plan: Plan, row: dict[str, Any]) -> str:
    if row["profile_id"] in plan.unchanged:
        return "partial" if row["profile_id"] in plan.known.cut else "read"
    with pq.ParquetFile(plan.folder(row["profile_id"]) / "profiles.parquet") as file:
        row = file.read(columns=["truncated", "events_lost"]).to_pylist()[0]
    return "partial" if row["truncated"] and row["events_lost"] != 0 else "read"


def note(change: Change, file: CaptureFile, severity: str, code: str, message: str) -> None:
    """Add a diagnostic about a file as a whole."""
    change.diagnostics.append({"path": path_text(file.path), "run": file.run, "tool": file.tool, "severity": severity,
                               "code": code, "count": 1, "message": message})


def read_one(path: str | Path) -> dict[str, pa.Table]:
    """Return the tables of one capture by name, as `ingest` would store them. Raises ReadError (or UsageError: no such file)."""
    found = find([path])
    if len(found) != 1:
        what = f"{sum(file.tool is not None for file in found)} captures" if found else "no file"
        raise UsageError(f"{path}: a folder with {what}, and one capture is read: nl.read(FILE); all into a store: "
                         f"nl.ingest({str(path)!r})", subject="path", value=str(path))
    (file,) = found
    if file.refused or not file.tool:
        what_to_do = "Give an nsys export, an ncu report or CSV, or a PyTorch-profiler trace"
        raise file.refused or UnknownFormatError(path, f"it is no capture ({file.kind})", what_to_do)
    one = Group(file.run, file.tool, ((file,),))
    with TemporaryDirectory(prefix="nsightlens-") as folder:
        prints = {file.path: fingerprint(file.path)}
        profile = ProfileInput(profile_id(one, prints), one.run, one.tool, ((file.path,),), file.sidecar, file.rank_hint)
        export = Path(folder) / f"export{file.report.suffix}" if file.report else None
        rows = read_profile(Task(profile, Path(folder) / "parts", file.report, export), workers.available())
        if has_changed(file):
            raise still_written(file)
        return {
            name: pq.read_table(Path(folder) / "parts" / f"{name}.parquet").drop_columns([TEMPLATE] if table.varying else [])
            for name, table in TABLES.items() if name in rows
        }


def _rows_known(known: Known, change: Change) -> list[dict[str, Any]]:
    """Return the store's rows of the files that `change` names, in its order, reduced to the columns it fills."""
    rows = {(row["run"], row["path"]): row for row in known.files}
    return [{key: rows.get((new["run"], new["path"]), {}).get(key) for key in new} for new in change.files]
