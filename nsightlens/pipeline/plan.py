"""Which profiles of an ingest must be read, and the reading of them, in this process or in others."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, as_completed, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from nsightlens.discovery.export import PACKED_SQLITE, VendorReport, convert
from nsightlens.discovery.files import has_changed, still_written
from nsightlens.discovery.profiles import Group, profile_id
from nsightlens.discovery.remote import path_of
from nsightlens.discovery.sniff_cache import Fingerprint
from nsightlens.errors import OverlapError, ReadError, StoreError, UsageError
from nsightlens.pipeline import executors, workers
from nsightlens.pipeline.meter import Meter, OnProgress, counter
from nsightlens.pipeline.profile_rows import ProfileInput
from nsightlens.readers.measure import count_into
from nsightlens.store import damage, rules
from nsightlens.store.writer import Known, StoreWriter

_LOG = logging.getLogger(__name__)
_HOLDS_ROWS = ("read", "partial", "missing", "replaced")


@dataclass(frozen=True, slots=True)
class Resources:
    """What an ingest may use, and whom it keeps posted."""

    jobs: int
    executor: Executor | None
    on_progress: OnProgress | None


class Plan:
    """The profiles to read, and those that can stay as they are."""

    def __init__(self, writing: StoreWriter, known: Known, prints: dict[Path, Fingerprint]) -> None:
        self.writing = writing
        self.prints = prints
        self.known = known
        self.groups: dict[str, Group] = {}
        self.signatures: dict[str, str] = {}
        self.unchanged: set[str] = set()
        self.matched: dict[str, tuple[str, str]] = {}
        self.written: dict[str, dict[str, int]] = {}
        self.errors: dict[str, ReadError] = {}
        self.gone: list[dict[str, Any]] = []
        self._by_content = {(r["run"], r["fingerprint"]): r["profile_id"] for r in known.files if r["profile_id"]}
        self._rows_before: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in known.files:
            if row["profile_id"] and row["outcome"] in _HOLDS_ROWS:
                self._rows_before[row["profile_id"]].append(row)

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
        if rules.rows_of(self.known.signatures.get(name, "")) == rules.rows_of(self.signatures[name]):
            self.unchanged.add(name)
            if self.known.signatures[name] != self.signatures[name]:
                self.matched[name] = one.run, self.signatures[name]

    def _lost_files(self, name: str, one: Group) -> bool:
        """Say whether all that changed about a profile is that some of its files are no longer there."""
        before = self._rows_before[name]
        here = {self.prints[f.path].text for f in one.files}
        lost = [r for r in before if r["fingerprint"] not in here]
        missing = [r for r in lost if r["outcome"] != "replaced"]
        if name not in self.known.signatures or not lost or any(path_of(r["path"]).exists() for r in missing):
            return False
        if not here < {r["fingerprint"] for r in before}:
            return False
        self.gone += [{**row, "outcome": "missing", "reason": "it is gone; its rows are kept"} for row in missing]
        return True

    def _signature(self, one: Group) -> str:
        """Return a digest of all that the rows of a profile follow from (contents, order, sidecars), and the rules' versions."""
        content = [(i, self.prints[f.path].text, f.rank, replace(f.sidecar, path=Path()) if f.sidecar else None)
                   for i, window in enumerate(one.windows) for f in window]
        return rules.signature(blake2b(repr(content).encode(), digest_size=16).hexdigest(), one.tool)

    def waiting(self) -> list[str]:
        """Return the profiles that are new or have changed and were not tried yet, largest first."""
        settled = self.unchanged | self.written.keys() | self.errors.keys()
        waiting = [name for name in self.groups if name not in settled]
        return sorted(waiting, key=lambda name: -sum(f.bytes for f in self.groups[name].files))

    def read(self, resources: Resources) -> None:
        """Read the profiles that wait; afterwards new ones may wait, made of what could not be read as one."""
        jobs, executor, waiting = resources.jobs, resources.executor, self.waiting()
        sizes = {name: (self.groups[name].first.path.name, sum(f.bytes for f in self.groups[name].files)) for name in waiting}
        with ExitStack() as stack:
            meter = stack.enter_context(Meter(self.writing.staging, sizes, resources.on_progress))
            if executor is None and (jobs == 1 or len(waiting) <= 1):
                for name in waiting:
                    self._finish(name, _Now(read_profile, self._task(name), jobs), meter)
                return
            pool = executor or stack.enter_context(workers.Pool(min(jobs, len(waiting))))
            share = max(1, jobs // len(waiting))
            futures = {pool.submit(read_profile, self._task(name), share): name for name in waiting}
            if executor:
                stack.callback(_end, futures)
            for future in as_completed(futures):
                self._finish(futures[future], future, meter)

    def _split(self, name: str) -> None:
        """Make a profile of each window: they overlap, so they are not windows of one process."""
        one = self.groups.pop(name)
        why = "another file names the same host and process id at the same time: read as two processes"
        for window in one.windows:
            self.add(Group(one.run, one.tool, (window,), (("windows_overlap", why),)))

    def folder(self, name: str) -> Path:
        """Return where the parts of a profile are made."""
        return self.writing.staging / name

    def _task(self, name: str) -> Task:
        one = self.groups[name]
        windows = tuple(tuple(f.path.absolute() for f in window) for window in one.windows)
        profile = ProfileInput(name, one.run, one.tool, windows, one.first.sidecar, one.first.rank_hint)
        report = one.first.report
        export = Path(f"{self.prints[one.first.path].text}{report.suffix}") if report else None
        if export and report != PACKED_SQLITE:
            export = (self.writing.path / "converted" / export).absolute()
        return Task(profile, self.folder(name).absolute(), report, export)

    def _finish(self, name: str, future: Future[Any] | _Now, meter: Meter) -> None:
        path = self.groups[name].first.path
        try:
            self.written[name] = future.result()
            _LOG.info("read %s: %s", ", ".join(str(file.path) for file in self.groups[name].files), _describe(self.written[name]))
        except ReadError as exc:
            self.errors[name] = exc
        except OverlapError:
            self._split(name)
        except UsageError:  # the workers' nsightlens is another one
            raise
        except Exception as exc:  # a defect of ours in one file must not cost the user the others
            self.writing.check()
            if isinstance(exc, OSError) and damage.is_of_space(exc):
                raise StoreError(f"{self.writing.store}: no room for what {path.name} holds ({exc.strerror}); the store is as it "
                                 "was before", self.writing.store,
                                 "Free space there, or choose another folder with --store") from exc
            self.errors[name] = _died(path) if executors.has_died(exc) else _defect(path, exc)
            self.errors[name].__cause__ = exc
        self._refuse_if_changed(name)
        meter.finished(name, path.name)

    def _refuse_if_changed(self, name: str) -> None:
        """Refuse a profile of which a file was written to, or swapped, since it was looked at: its fingerprint is of another
        content than its rows. One that is gone was read as it was, or was refused for that."""
        files = self.groups[name].files if name in self.groups else []
        changed = next((file for file in files if has_changed(file) and file.path.exists()), None)
        if changed:
            self.written.pop(name, None)
            self.errors[name] = still_written(changed)
            if (export := self._task(name).export) and export.is_absolute():  # kept, under the name of another content
                export.unlink(missing_ok=True)


def _describe(rows: dict[str, int]) -> str:
    """Return the parts of a profile that have rows, with how many."""
    return ", ".join(f"{count:,} {part}" for part, count in rows.items() if count and not part.startswith("_"))


def _died(path: Path) -> ReadError:
    return ReadError(path, "the process that read it died, most likely out of memory",
                     "Try again with --jobs 1, or on a machine with more memory", "worker_died")


def _defect(path: Path, error: Exception) -> ReadError:
    what = f"nsightlens failed on it ({type(error).__name__}: {error}): a bug in nsightlens, not in the file"
    return ReadError(path, what, "Please report it, with the file if you can", "internal_error")


def _end(futures: Iterable[Future[Any]]) -> None:
    """Start none of them any more, and wait for those that run: they write below the staging folder."""
    wait([future for future in futures if not future.cancel()])


@dataclass(frozen=True, slots=True)
class Task:
    """A profile to read in some process: into which folder, and first converted from which report.

    export: where the converted report is kept; a bare name for one that goes again once it is read.
    """

    profile: ProfileInput
    folder: Path
    report: VendorReport | None
    export: Path | None


class _Now:
    """A call made at once, with the face of a Future."""

    def __init__(self, call: Callable[..., dict[str, int]], *arguments: object) -> None:
        self._call = call
        self._arguments = arguments

    def result(self) -> dict[str, int]:
        """Return what the call returns."""
        return self._call(*self._arguments)


def read_profile(task: Task, jobs: int) -> dict[str, int]:
    """Read a profile, converted first where it is a vendor's report; return the rows of each part. Raises ReadError."""
    from nsightlens.pipeline.profile import write_parts  # where nothing is new, nothing that derives rows is imported

    profile = task.profile
    draft = task.folder.with_name(f"{task.folder.name}.{secrets.token_hex(4)}")  # another worker may be at the same task
    if task.report and task.export:
        profile = replace(profile, windows=((_exported(task.report, profile.windows[0][0], draft, task.export),),))
    with count_into(counter(task.folder.parent, profile.profile_id)):
        rows = write_parts(profile, draft, jobs=jobs)
    try:
        draft.rename(task.folder)
    except OSError:
        if not task.folder.is_dir():
            raise
        shutil.rmtree(draft)  # that one was first
    return rows


def _exported(report: VendorReport, path: Path, draft: Path, kept: Path) -> Path:
    """Return the converted report: the one that is kept, else one made in `draft` and kept from now on. Raises ReadError."""
    if not kept.is_absolute():
        return convert(report, path, draft / kept)
    if kept.is_file() and not kept.is_symlink():
        return kept
    made = convert(report, path, draft / kept.name)
    if os.path.lexists(kept):
        return made  # it is not ours
    kept.parent.mkdir(exist_ok=True)
    return made.rename(kept)
