"""A store brought up to this version's rules: what they changed is read again, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nsightlens.discovery.files import path_text
from nsightlens.discovery.remote import RemotePath, path_of
from nsightlens.errors import StoreError, no_store
from nsightlens.pipeline import memory, workers
from nsightlens.pipeline.answer import answer
from nsightlens.pipeline.answer_across import answer_across
from nsightlens.pipeline.ingest import IngestReport, is_needed, look_again, read_new
from nsightlens.pipeline.meter import OnProgress
from nsightlens.pipeline.plan import Resources
from nsightlens.pipeline.superseded import is_at_its_path
from nsightlens.store import rules
from nsightlens.store.catalog import Change
from nsightlens.store.store import is_store, locate
from nsightlens.store.store_folder import OLDER
from nsightlens.store.writer import Known, StoreWriter

_GONE = "it is gone; its rows are kept"


@dataclass(slots=True)
class Refreshed:
    """What a refresh did: which profiles it read again (report), and in how many it only made the matches again.

    gone: captures that are no longer at their paths; what was read from them is kept.
    rebuilt_from: the older schema version that the store had, else None. kept: the catalog of that schema, where it holds rows
        that could not be read again.
    """

    report: IngestReport
    gone: list[str] = field(default_factory=list)
    matched: int = 0
    rebuilt_from: int | None = None
    kept: Path | None = None


def refresh(
    store: str | Path | None = None, *, jobs: int | None = None, executor: Executor | None = None,
    on_progress: OnProgress | None = None, on_wait: Callable[[str], None] | None = None,
) -> Refreshed:
    """Read the profiles again that are older than the rules, make matches again where only these are, and store the views.

    A store of an older schema is rebuilt from its captures. Raises StoreError where there is no store, or it can't be written or
    rebuilt; it is then as it was.
    """
    path = locate(store)
    if not is_store(path):
        raise no_store(path)
    resources = Resources(jobs or workers.available(), executor, on_progress)
    with StoreWriter(path, on_wait=on_wait) as writing:
        known = writing.known()
        done = _refresh if known.older_schema is None else _rebuild
        return done(writing, known, resources)


def _refresh(writing: StoreWriter, known: Known, resources: Resources) -> Refreshed:
    captures = [row for row in known.files if row["profile_id"]]
    here = [row for row in captures if _is_here(row)]
    gone = [row for row in captures if not _is_here(row)]
    older = {row["run"] for row in captures
             if rules.is_read_by_older(known.signatures.get(row["profile_id"], ""), row["tool"])}
    found = look_again((row for row in here if row["run"] in older), known)
    change, report = read_new(found, writing, known, True, resources)
    _match_again(change, captures, known)
    report.answers_s = answer(change, known, writing, resources, None)
    named = {(row["run"], row["path"]) for row in change.files}
    change.files += [{**row, "outcome": "missing", "reason": _GONE} for row in gone
                     if is_at_its_path(row) and (row["run"], row["path"]) not in named]
    if is_needed(change, known):
        memory.give_back()
        writing.commit(change)
    report.across_s = answer_across(writing, change, True if report.answers_s is not None else None, resources.on_progress)
    return Refreshed(report, sorted(row["path"] for row in gone), len(change.matched))


def _is_here(row: dict[str, Any]) -> bool:
    return is_at_its_path(row) and path_of(row["path"]).exists()


def _match_again(change: Change, captures: list[dict[str, Any]], known: Known) -> None:
    """Have the matches made again of all profiles that are not read again and have those of an older rule."""
    read = {name for name, *_ in change.added}
    for row in captures:
        name = row["profile_id"]
        before = known.signatures.get(name)
        if before and name not in read and (now := rules.matched_now(before, row["tool"])) != before:
            change.matched.setdefault(name, (row["run"], now))


def _rebuild(writing: StoreWriter, known: Known, resources: Resources) -> Refreshed:
    """Read all captures of a store of an older schema again; the older catalog stays where some of its rows would be lost."""
    captures = {row["path"] for row in known.files if row["profile_id"]}
    gone = sorted({row["path"] for row in known.files if row["profile_id"] and not _is_here(row)})
    here = (row for row in known.files if row["outcome"] != "replaced")
    change, report = read_new(look_again(here, known), writing, Known(patterns=known.patterns), True, resources)
    if not change.added:
        raise StoreError(f"{writing.store}: of the {len(captures)} captures that it was made from, {len(gone)} are gone and none "
                         f"could be read: it stays as it is. They were at {', '.join(sorted(captures)[:3])}", writing.store)
    lost = gone or captures & {path_text(error.path) for error in report.refused}
    keep_as = OLDER.format(known.older_schema) if lost else None
    if lost and isinstance(writing.store, RemotePath):
        raise StoreError(f"{writing.store}: some of its captures are gone or cannot be read, and at a URL their rows of schema "
                         f"{known.older_schema} cannot be kept", writing.store,
                         "Copy the store to a disk (docs/store.md) and refresh it there")
    report.answers_s = answer(change, Known(), writing, resources, None)
    memory.give_back()
    writing.rebuild(change, keep_as)
    report.across_s = answer_across(writing, change, None, resources.on_progress)
    return Refreshed(report, gone, 0, known.older_schema, writing.path / keep_as if keep_as else None)
