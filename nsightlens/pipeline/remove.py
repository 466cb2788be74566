"""A run, or a capture of one, taken out of a store: its rows go, and all that was remembered of its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsightlens.discovery.export import REPORTS
from nsightlens.discovery.files import path_text
from nsightlens.discovery.remote import RemotePath, path_of
from nsightlens.errors import UsageError, no_store, other_schema
from nsightlens.pipeline import memory
from nsightlens.pipeline.superseded import instead_of, note_broken_parts
from nsightlens.schema import SCHEMA_VERSION
from nsightlens.store import no_links
from nsightlens.store.catalog import Change
from nsightlens.store.filter_values import listed
from nsightlens.store.store import Store, is_store, locate
from nsightlens.store.writer import StoreWriter
from nsightlens.views.figures import counted, spans

Row = dict[str, Any]
_HELD = """
SELECT profile_id, tool, kernels FROM profiles
WHERE run = $1 AND ($3 OR profile_id IN (SELECT unnest($2::VARCHAR[]))) ORDER BY ALL
"""
_RANKS = """
SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL AND profile_id IN (SELECT unnest(?::VARCHAR[])) ORDER BY rank
"""


@dataclass(frozen=True, slots=True)
class Removed:
    """What was taken out of a store; printed, a sentence.

    store: its path. run: whose captures they were; whole_run: no capture of it is left. files: the captures' paths. profiles: how
    many they made; tools, ranks, kernels: what these held. dry_run: nothing was removed, this is what would be.
    """

    store: Path
    run: str
    whole_run: bool
    files: tuple[str, ...]
    profiles: int
    tools: tuple[str, ...]
    ranks: tuple[int, ...]
    kernels: int
    dry_run: bool

    def __str__(self) -> str:
        held = [counted(len(self.files), "file"), f"{counted(self.profiles, 'profile')} ({', '.join(self.tools) or 'none read'})"]
        if self.ranks:
            held.append(f"rank{'s' * (len(self.ranks) > 1)} {spans(map(str, self.ranks))}")
        what = f"run {self.run}" if self.whole_run else f"captures of run {self.run}"
        return f"{'would remove' if self.dry_run else 'removed'} {what}: {', '.join([*held, counted(self.kernels, 'kernel')])}"

    __repr__ = __str__


def remove(
    store: str | Path | None = None, *, run: str | None = None, file: str | Path | None = None, dry_run: bool = False,
    on_wait: Callable[[str], None] | None = None,
) -> Removed:
    """Take a run, or one capture, out of a store; return what was removed. The captures themselves are not touched.

    run: the run. file: a capture's path, or the end of it that no other capture has; with it goes what was read together with it
    as one profile (the pages of an ncu report), and with the last capture of a run the run. With both, `file` is looked for in
    `run`. dry_run: only return what would be removed.
    All of it or nothing: whoever reads, or a kill at any moment, finds the old store or the new one. A later ingest of the same
    files brings their rows back.
    Raises UsageError for a run or file that the store does not have, and where neither is given; StoreError where there is no
    store, it can't be written, or it is of an older schema.
    """
    path = locate(store)
    if not is_store(path):
        raise no_store(path)
    if dry_run:
        with Store(path) as opened:
            return _picked(opened, run, file, dry_run=True)[0]
    with StoreWriter(path, on_wait=on_wait) as writing:
        known = writing.known()
        if known.older_schema is not None:
            raise other_schema(writing.store, known.older_schema, SCHEMA_VERSION)
        with Store(writing.path) as opened:
            removed, change = _picked(opened, run, file, dry_run=False)
        note_broken_parts(writing.store, known, change)
        memory.give_back()
        writing.commit(change)
        _forget_exports(writing.path, known.files, change)
    return removed


def _picked(store: Store, run: str | None, file: str | Path | None, *, dry_run: bool) -> tuple[Removed, Change]:
    """Return what is to go, and the change that takes it out."""
    if store.older_schema is not None:
        raise other_schema(store.path, store.older_schema, SCHEMA_VERSION)
    runs = [row["run"] for row in store.sql("SELECT run FROM _runs ORDER BY run").to_pylist()]
    if run is None and file is None:
        raise UsageError(f"name what to remove, a run or a file: the store has {listed(runs, '')}", subject="run", choices=runs)
    if run is not None and run not in runs:
        raise UsageError(f"run {run}: the store has {listed(runs, run)}", subject="run", value=run, choices=runs)
    files = store.sql("SELECT run, path, outcome, profile_id, reason FROM files ORDER BY run, path").to_pylist()
    rows = [row for row in files if run in (None, row["run"])]
    if file is not None:
        rows = _capture_rows(rows, file, run)
    name = run or str(rows[0]["run"])
    left = [row for row in files if row["run"] == name and row["outcome"] != "ignored" and row not in rows]
    if not left:
        rows = [row for row in files if row["run"] == name]
    held = store.sql(_HELD, [name, sorted({row["profile_id"] for row in rows if row["profile_id"]}), not left]).to_pylist()
    profiles = [row["profile_id"] for row in held]
    ranks = [row["rank"] for row in store.sql(_RANKS, [profiles]).to_pylist()]
    captures = tuple(row["path"] for row in rows if row["outcome"] != "ignored")
    removed = Removed(store.path, name, not left, captures, len(held), tuple(sorted({row["tool"] for row in held})), tuple(ranks),
                      sum(row["kernels"] or 0 for row in held), dry_run)
    return removed, Change(removed=set(profiles), forgotten=[(name, row["path"]) for row in rows],
                           runs_gone=set() if left else {name})


def _capture_rows(rows: Sequence[Row], file: str | Path, run: str | None) -> list[Row]:
    """Return the rows of `files` that go with a capture: its own, those of its profile, and those of duplicates of these."""
    text = str(file)
    here = text if isinstance(path_of(file), RemotePath) else path_text(Path(file).absolute())
    named = [row for row in rows if row["path"] in (text, here)] or [row for row in rows if row["path"].endswith(f"/{text}")]
    if not named:
        paths = [row["path"] for row in rows if row["outcome"] != "ignored"]
        where = "the store" if run is None else f"run {run}"
        raise UsageError(f"file {text}: {where} has {listed(paths, text)}", subject="file", value=text, choices=paths)
    paths, runs = sorted({row["path"] for row in named}), sorted({row["run"] for row in named})
    if len(paths) > 1:
        raise UsageError(f"file {text}: it could be {listed(paths, text)}", subject="file", value=text, choices=paths)
    if len(runs) > 1:
        raise UsageError(f"file {text}: the runs {listed(runs, '')} have it; name one of them", subject="run", choices=runs)
    (one,) = named
    alike = [row for row in rows if row is one or (row["run"] == one["run"] and one["profile_id"]
                                                   and row["profile_id"] == one["profile_id"])]
    instead = tuple(instead_of(row["path"]) for row in alike)
    return [row for row in rows if row in alike or (row["run"] == one["run"] and row["outcome"] == "duplicate"
                                                    and row["reason"].endswith(instead))]


def _forget_exports(store: Path, files: Sequence[Row], change: Change) -> None:
    """Remove what was converted from reports that no run has any more."""
    left = {row["fingerprint"] for row in files if (row["run"], row["path"]) not in change.forgotten}
    for fingerprint in {row["fingerprint"] for row in files} - left - {None}:
        for report in REPORTS:
            no_links.remove(store, f"converted/{fingerprint}{report.suffix}")
