"""The road itself: discover -> group -> read and normalise (in parallel) -> store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from nsightlens import normalise, parts, vendor, workers
from nsightlens.catalogue import Change
from nsightlens.discover import Fingerprint, Found, find, fingerprint, look_at, path_text
from nsightlens.errors import OverlapError, ReadError, UnknownFormatError
from nsightlens.grouping import Group, Grouping, group, profile_id
from nsightlens.kinds import KIND
from nsightlens.readers.ncu import mergeable
from nsightlens.schema import SCHEMA_VERSION, TABLES
from nsightlens.store import Known, Writing, locate

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
class Report:
    """What an ingest did, for the person who waits for it."""

    store: Path
    outcomes: list[Outcome] = field(default_factory=list)
    refused: list[ReadError] = field(default_factory=list)
    duplicates: dict[Path, tuple[Path, str]] = field(default_factory=dict)
    files_seen: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """A step of an ingest: `done` of `total` profiles are read, and what was the last one."""

    done: int
    total: int
    label: str


OnProgress = Callable[[Progress], None]


def ingest(
    roots: Iterable[str | Path], store: str | Path | None = None, *, run: str | None = None, rank_pattern: str | None = None,
    jobs: int | None = None, materialise: bool = True, executor: Executor | None = None,
    on_progress: OnProgress | None = None, on_wait: Callable[[str], None] | None = None,
) -> Report:
    """Read every capture below `roots` into the store, and return what was done.

    Only what is new or has changed is read. One unreadable file never stops the others. `executor` replaces our own worker
    processes (say, a cluster's). Raises UsageError for a path that does not exist, StoreError where the store can't be written.
    """
    roots = list(roots)
    jobs = jobs or workers.available()
    with Writing(locate(store), materialise=materialise, on_wait=on_wait) as writing:
        known = writing.known()
        found = find(roots, run=run, rank_pattern=rank_pattern, taken=known.runs)
        found += _files_of_known_runs(found, known)
        prints, failed = _fingerprints(found, known)
        found = [replace(f, tool=None, refused=failed[f.path]) if f.path in failed else f for f in found]
        found, moved = (found, {}) if run is not None else _at_home(found, prints, known)
        grouping = group(found, prints, mergeable)
        plan = _Plan(writing, known, prints)
        for one in grouping.groups:
            plan.add(one)
        while plan.waiting():
            plan.read(jobs, executor, on_progress)
        change, report = _settle(plan, grouping, found)
        change.files += [{**row, "outcome": "missing", "profile_id": None, "reason": reason} for row, reason in moved.values()]
        change.files += plan.gone
        nothing = not (known.files or report.outcomes or report.refused)
        if not nothing and (change.added or change.removed or change.files != _rows_known(known, change)):
            workers.give_back()
            writing.commit(change)
    return report


def _files_of_known_runs(found: Sequence[Found], known: Known) -> list[Found]:
    """Return the files of the same runs that earlier ingests read and that are still there: a late page joins them."""
    runs, seen = {f.run for f in found}, {f.path for f in found}
    return [
        look_at(Path(row["path"]), Path(known.runs.get(row["run"], Path(row["path"]).parent)), row["run"], run_is_given=True)
        for row in known.files
        if row["run"] in runs and row["profile_id"] and Path(row["path"]) not in seen and Path(row["path"]).exists()
    ]


def _fingerprints(found: Sequence[Found], known: Known) -> tuple[dict[Path, Fingerprint], dict[Path, ReadError]]:
    prints: dict[Path, Fingerprint] = {}
    failed: dict[Path, ReadError] = {}
    for file in found:
        if file.tool:
            try:
                prints[file.path] = fingerprint(file.path)
            except OSError as exc:
                failed[file.path] = ReadError(file.path, f"it cannot be read ({exc.strerror})", "Check the disk", "unreadable")
    return prints, failed


def _at_home(
    found: list[Found], prints: dict[Path, Fingerprint], known: Known,
) -> tuple[list[Found], dict[str, tuple[dict[str, Any], str]]]:
    """Give a folder that was moved or renamed since an earlier ingest the run that it had then.

    A run is the same where a file of it is known by content under another run, and is gone from its old path. Returns the files,
    and by old path the rows of `files` that this makes obsolete, with why.
    """
    gone = {row["fingerprint"]: row for row in known.files if row["profile_id"] and not Path(row["path"]).exists()}
    matches = [(f, gone[prints[f.path].text]) for f in found if f.path in prints and prints[f.path].text in gone]
    homes = {f.run: row["run"] for f, row in matches if f.run not in known.runs and not (f.sidecar and f.sidecar.run)}
    moved = {row["path"]: (row, f"it lies at {path_text(f.path)} now") for f, row in matches
             if homes.get(f.run, f.run) == row["run"]}
    return [replace(f, run=homes.get(f.run, f.run)) for f in found], moved


class _Plan:
    """The profiles to read, and those that can stay as they are."""

    def __init__(self, writing: Writing, known: Known, prints: dict[Path, Fingerprint]) -> None:
        self.writing = writing
        self.prints = prints
        self.known = known
        self.groups: dict[str, Group] = {}
        self.signatures: dict[str, str] = {}
        self.unchanged: set[str] = set()
        self.written: dict[str, dict[str, int]] = {}
        self.errors: dict[str, ReadError] = {}
        self.gone: list[dict[str, Any]] = []
        self._by_content = {(r["run"], r["fingerprint"]): r["profile_id"] for r in known.files if r["profile_id"]}

    def add(self, one: Group) -> None:
        """Take in a profile: under the id that one of its files has in the store, else under a new one."""
        ids = [self._by_content.get((f.run, self.prints[f.path].text)) for f in one.files]
        name = next((i for i in ids if i and i not in self.groups), None) or profile_id(one, self.prints)
        if self._lost_files(name, one):
            one = replace(one, notes=(*one.notes, ("files_gone", "some files of this profile are gone; the rows that were read "
                                                   "from all of them are kept")))
            self.unchanged.add(name)
        self.groups[name] = one
        self.signatures[name] = self._signature(one)
        if self.known.signatures.get(name) == self.signatures[name]:
            self.unchanged.add(name)

    def _lost_files(self, name: str, one: Group) -> bool:
        """Say whether all that changed about a profile is that some of its files are no longer there."""
        before = [r for r in self.known.files if r["profile_id"] == name and r["outcome"] in ("read", "partial", "missing")]
        here = {self.prints[f.path].text for f in one.files}
        missing = [r for r in before if r["fingerprint"] not in here]
        if name not in self.known.signatures or not missing or any(Path(r["path"]).exists() for r in missing):
            return False
        if not here < {r["fingerprint"] for r in before}:
            return False
        self.gone += [{**row, "outcome": "missing", "reason": "it is gone; its rows are kept"} for row in missing]
        return True

    def _signature(self, one: Group) -> str:
        """Return a digest of all that the rows of a profile follow from: contents, order, sidecars, our versions."""
        said = [SCHEMA_VERSION, normalise.RULES_VERSION]
        content = [(i, self.prints[f.path].text, f.rank, replace(f.sidecar, path=Path()) if f.sidecar else None)
                   for i, window in enumerate(one.windows) for f in window]
        return blake2b(repr((said, content)).encode(), digest_size=16).hexdigest()

    def waiting(self) -> list[str]:
        """Return the profiles that are new or have changed and were not tried yet, largest first."""
        settled = self.unchanged | self.written.keys() | self.errors.keys()
        waiting = [name for name in self.groups if name not in settled]
        return sorted(waiting, key=lambda name: -sum(f.bytes for f in self.groups[name].files))

    def read(self, jobs: int, executor: Executor | None, on_progress: OnProgress | None) -> None:
        """Read the profiles that wait; afterwards new ones may wait, made of what could not be read as one."""
        waiting = self.waiting()
        if on_progress:
            on_progress(Progress(0, len(waiting), ""))
        if executor is None and (jobs == 1 or len(waiting) <= 1):
            for done, name in enumerate(waiting):
                self._finish(name, _Now(_read, self._task(name), jobs), done + 1, len(waiting), on_progress)
            return
        with ExitStack() as stack:
            pool = executor or stack.enter_context(workers.Pool(min(jobs, len(waiting))))
            share = max(1, jobs // len(waiting))
            futures = {pool.submit(_read, self._task(name), share): name for name in waiting}
            for done, future in enumerate(as_completed(futures)):
                self._finish(futures[future], future, done + 1, len(waiting), on_progress)

    def _split(self, name: str) -> None:
        """Make a profile of each window: they overlap, so they are not windows of one process."""
        one = self.groups.pop(name)
        why = "another file names the same host and process id at the same time: read as two processes"
        for window in one.windows:
            self.add(Group(one.run, one.tool, (window,), (("windows_overlap", why),)))

    def folder(self, name: str) -> Path:
        """Return where the parts of a profile are made."""
        return self.writing.staging / name

    def _task(self, name: str) -> _Task:
        one = self.groups[name]
        windows = tuple(tuple(f.path for f in window) for window in one.windows)
        profile = parts.Profile(name, one.run, one.tool, windows, one.first.sidecar, one.first.rank_hint)
        report = one.first.report
        export = self.writing.path / "converted" / f"{self.prints[one.first.path].text}{report.suffix}" if report else None
        return _Task(profile, self.folder(name), report, export)

    def _finish(self, name: str, future: Future[Any] | _Now, done: int, total: int, on_progress: OnProgress | None) -> None:
        path = self.groups[name].first.path
        try:
            self.written[name] = future.result()
        except ReadError as exc:
            self.errors[name] = exc
        except OverlapError:
            self._split(name)
        except (BrokenProcessPool, MemoryError) as exc:
            self.errors[name] = ReadError(path, "the process that read it died, most likely for want of memory",
                                          "Try again with --jobs 1, or on a machine with more memory", "worker_died")
            self.errors[name].__cause__ = exc
        except Exception as exc:  # noqa: BLE001 - a defect of ours in one file must not cost the user the others
            what = f"nsightlens failed on it ({type(exc).__name__}: {exc}): a defect of nsightlens, not of the file"
            self.errors[name] = ReadError(path, what, "Please report it, with the file if you can", "internal_error")
            self.errors[name].__cause__ = exc
        if on_progress:
            on_progress(Progress(done, total, path.name))


@dataclass(frozen=True, slots=True)
class _Task:
    """A profile to read in some process: into which folder, and first converted from which report."""

    profile: parts.Profile
    folder: Path
    report: vendor.Report | None
    export: Path | None


class _Now:
    """A call made at once, with the face of a Future."""

    def __init__(self, call: Callable[..., dict[str, int]], *arguments: object) -> None:
        self._call = call
        self._arguments = arguments

    def result(self) -> dict[str, int]:
        """Return what the call returns."""
        return self._call(*self._arguments)


def _read(task: _Task, jobs: int) -> dict[str, int]:
    profile = task.profile
    if task.report and task.export:
        export = vendor.convert(task.report, profile.windows[0][0], task.export)
        profile = replace(profile, windows=((export,),))
    return parts.write(profile, task.folder, jobs=jobs)


def _settle(plan: _Plan, grouping: Grouping, found: Sequence[Found]) -> tuple[Change, Report]:
    """Return what changes in the store, and the report."""
    change, report = Change(), Report(plan.writing.path, files_seen=len(found), duplicates=grouping.duplicates)
    places: dict[Path, tuple[str, int]] = {}
    before = {row["path"]: row["profile_id"] for row in plan.known.files}
    for name, one in plan.groups.items():
        paths = tuple(f.path for f in one.files)
        if name in plan.errors:
            report.refused.append(plan.errors[name])
            report.outcomes.append(Outcome(name, one.run, one.tool, paths, "refused"))
            continue
        for code, message in one.notes:
            note(change, one.first, "warning" if code in _WARNINGS else "info", code, message)
        places |= {f.path: (name, i) for i, window in enumerate(one.windows) for f in window}
        change.removed |= {before[path_text(p)] for p in paths if before.get(path_text(p)) not in (None, name)}
        if name in plan.unchanged:
            report.outcomes.append(Outcome(name, one.run, one.tool, paths, "unchanged"))
            continue
        change.added.append((name, one.run, plan.signatures[name], plan.folder(name), plan.written[name]))
        rows = {table: count for table, count in plan.written[name].items() if table in TABLES}
        again = name in plan.known.signatures or any(before.get(path_text(p)) for p in paths)
        report.outcomes.append(Outcome(name, one.run, one.tool, paths, "replaced" if again else "new", rows))
    change.removed -= plan.groups.keys() - plan.errors.keys()
    refused = {Path(e.path): e for e in plan.errors.values()}
    for file in found:
        _settle_file(file, places, refused, grouping, plan, change, report)
    change.runs = {f.run: path_text(f.root) for f in found}
    return change, report


def _settle_file(
    file: Found, places: dict[Path, tuple[str, int]], errors: dict[Path, ReadError], grouping: Grouping, plan: _Plan,
    change: Change, report: Report,
) -> None:
    row: dict[str, Any] = {"path": path_text(file.path), "run": file.run, "tool": file.tool, "kind": file.kind,
                           "bytes": file.bytes, "modified_ns": file.modified_ns, "outcome": "ignored", "reason": None,
                           "profile_id": None,
                           "fingerprint": plan.prints[file.path].text if file.path in plan.prints else None}
    refused = file.refused or errors.get(file.path)
    if file.path in places:
        row["profile_id"], row["window_index"] = places[file.path]
        row["outcome"] = _read_or_partial(plan, row)
    elif file.path in grouping.duplicates:
        other, why = grouping.duplicates[file.path]
        row |= {"outcome": "duplicate", "reason": f"{why}: {path_text(other)} is read instead"}
        note(change, file, "info", "duplicate", row["reason"])
    elif refused:
        earlier = next((r["profile_id"] for r in plan.known.files if r["path"] == path_text(file.path)), None)
        row |= {"outcome": "refused", "reason": f"{refused.reason}. {refused.what_to_do}", "profile_id": earlier}
        note(change, file, "error" if file.tool else "warning", refused.code, row["reason"])
        if file.refused:
            report.refused.append(refused)
    if file.sidecar_problem:
        note(change, file, "warning", "bad_sidecar", file.sidecar_problem)
    for complaint in file.sidecar.complaints() if file.sidecar else ():
        note(change, file, "warning", "capture_problem", complaint)
    change.files.append(row)


def _read_or_partial(plan: _Plan, row: dict[str, Any]) -> str:
    part = plan.folder(row["profile_id"]) / "profiles.parquet"
    if not part.is_file():
        return next((r["outcome"] for r in plan.known.files if r["path"] == row["path"]), "read")
    with pq.ParquetFile(part) as file:
        row = file.read(columns=["truncated", "events_lost"]).to_pylist()[0]
    return "partial" if row["truncated"] and row["events_lost"] != 0 else "read"


def note(change: Change, file: Found, severity: str, code: str, message: str) -> None:
    """Add a diagnostic about a file as a whole."""
    change.diagnostics.append({"path": path_text(file.path), "run": file.run, "tool": file.tool, "severity": severity,
                               "code": code, "count": 1, "message": message})


def read_one(path: str | Path) -> dict[str, pa.Table]:
    """Return the tables of one capture by name, as `ingest` would store them. Raises ReadError (or UsageError: no such file)."""
    file = find([path])[0]
    if file.refused or not file.tool:
        what_to_do = "Give an nsys export, an ncu CSV or a PyTorch-profiler trace"
        raise file.refused or UnknownFormatError(path, f"it is no capture ({file.kind})", what_to_do)
    one = Group(file.run, file.tool, ((file,),))
    with TemporaryDirectory(prefix="nsightlens-") as folder:
        prints = {file.path: fingerprint(file.path)}
        profile = parts.Profile(profile_id(one, prints), one.run, one.tool, ((file.path,),), file.sidecar, file.rank_hint)
        export = Path(folder) / f"export{file.report.suffix}" if file.report else None
        rows = _read(_Task(profile, Path(folder) / "parts", file.report, export), workers.available())
        return {
            name: pq.read_table(Path(folder) / "parts" / f"{name}.parquet").drop_columns([KIND] if table.varying else [])
            for name, table in TABLES.items() if name in rows
        }


def _rows_known(known: Known, change: Change) -> list[dict[str, Any]]:
    """Return the store's rows of the files that `change` names, in its order, reduced to the columns it fills."""
    rows = {row["path"]: row for row in known.files}
    return [{key: rows.get(new["path"], {}).get(key) for key in new} for new in change.files]
