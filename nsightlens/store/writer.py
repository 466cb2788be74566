"""Writing a store: its one writer holds the lock, keeps parts by rename, and replaces the catalog as a whole."""

from __future__ import annotations

import contextlib
import filecmp
import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, ClassVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from nsightlens.discovery.remote import RemotePath
from nsightlens.errors import StoreError, other_schema
from nsightlens.schema import SCHEMA_VERSION
from nsightlens.store import (
    across,
    answers,
    catalog,
    catalog_opening,
    compaction,
    damage,
    lock,
    no_links,
    remote,
    store_folder,
    template,
)
from nsightlens.store.bundle import Bundle, Part, standing
from nsightlens.store.catalog import Change
from nsightlens.store.journal import Journal
from nsightlens.store.lock import Lock, has_locks
from nsightlens.store.store import CATALOG, Store


@dataclass(slots=True)
class Known:
    """What the store holds before an ingest: rows of files, signature of each profile that is whole, folder of each run.

    patterns: the rank pattern that a run was read with, where it was. has_views: whether its views are those of this version.
    older_schema: version of its schema, where that is an older one; signatures are then left out. None for this version's.
    cut: profiles that lack records. broken: the parts that are missing or damaged, each with the profiles in it.
    materialised: False where the catalog has only views of the parts of large tables.
    parts: all parts; none of a store at a URL, for they are not here.
    answered: for each profile, the views whose rows are kept (store/answers.py).
    """

    files: list[dict[str, Any]] = field(default_factory=list)
    signatures: dict[str, str] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)
    patterns: dict[str, str] = field(default_factory=dict)
    has_views: bool = True
    older_schema: int | None = None
    cut: set[str] = field(default_factory=set)
    broken: set[tuple[str, str]] = field(default_factory=set)
    materialised: bool = True
    parts: list[Part] = field(default_factory=list)
    answered: dict[str, set[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bundles:
    """The bundles of a store after a commit, and those among them, or merged into them, that it brings."""

    new: list[Bundle]
    every: list[Bundle]


class StoreWriter:
    """The one writer of a store: holds its lock, and replaces the catalog as a whole.

    A new catalog is built beside the old one and takes its place by one rename, so whoever reads sees the old store or the
    new one, and a writer that is killed leaves the old one. What is not the store's is not touched (store/journal.py).

    store: where it lies, also at a URL. path: the folder in which it is written: the same, or one in the cache (store/remote.py).
    commits: how many changes this process has made to stores.
    """

    commits: ClassVar[int] = 0

    def __init__(self, store: Path, *, materialise: bool = True, on_wait: Callable[[str], None] | None = None) -> None:
        self.store = store
        self.path = remote.folder_of(store)
        self._far = remote.Far(store) if isinstance(store, RemotePath) else None
        self._materialise = materialise
        self._lock = Lock(self.path, on_wait, lambda: store_folder.confirm(self.path))
        self._journal = Journal(self.path, self._lock.check)

    def __enter__(self) -> StoreWriter:
        self._lock.acquire()
        try:
            store_folder.confirm_no_links(self.path)
            if self._far:
                self._far.pull(self.path / CATALOG)
            leftovers = self._journal.begin()
            if leftovers:
                self._journal.remove(leftovers, self._live_parts())
        except OSError as exc:
            self._end()
            why = f"{self.path}: the store cannot be written ({exc.strerror})"
            raise StoreError(why, self.path, "Choose another with --store") from exc
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if isinstance(error, OSError | duckdb.Error) and not isinstance(error, ConnectionError):
                raise self._failed(error) from error
        finally:
            self._end()

    def check(self) -> None:
        """Raise StoreError where the store was moved or replaced: nothing is written into what stands in its place."""
        self._lock.check()

    def _end(self) -> None:
        if not self._lock.is_in_place:
            self._lock.release()
            return
        self._journal.end()
        is_empty = False
        with contextlib.suppress(OSError):
            is_empty = not set(os.listdir(self.path)) - {lock.FILE, lock.FOLDER}
        self._lock.release(remove=is_empty)

    def _failed(self, error: OSError | duckdb.Error | pa.ArrowException) -> StoreError:
        """Return the error for a fault while the store is written, which leaves it as it was."""
        self.check()
        space = " Is the disk full?" if damage.is_of_space(error) else ""
        return StoreError(damage.catalog_damage(self.path / CATALOG, error) or (
            f"{self.store}: could not be written, and is as it was before.{space} ({error})"), self.store)

    @property
    def staging(self) -> Path:
        """Return the folder for parts in the making, of this writer alone. Raises StoreError where it went with the store."""
        self.check()
        return self._journal.scratch

    @property
    def _root(self) -> Path:
        """Return the folder whose `parts` hold those of the store; of one at a URL, those that are fetched or made."""
        return self.staging / "far" if self._far else self.path

    def _live_parts(self) -> set[str]:
        """Return the parts that the catalog names, or one of an older schema that a rebuild left."""
        current = self.path / CATALOG
        return (_parts_of(current) if current.is_file() else set()) | self._older_parts()

    def _older_parts(self) -> set[str]:
        return {part for path in store_folder.older_catalogs(self.path) for part in _parts_of(path)}

    def known(self) -> Known:
        """Return what the store holds now. Raises StoreError for a store of a newer schema, or one that names foreign files."""
        if not (self.path / CATALOG).is_file():
            return Known()
        with Store(self.path) as store:
            files = store.sql("SELECT * FROM files").to_pylist()
            runs = store.sql("SELECT * FROM _runs").to_pylist()
            roots = {row["run"]: row["root"] for row in runs}
            patterns = {row["run"]: row["rank_pattern"] for row in runs if row.get("rank_pattern")}
            if store.older_schema is not None:
                return Known(files, {}, roots, patterns, False, store.older_schema)
            has_views = store.has_views_of_this_version
            signatures = store.sql("SELECT profile_id, signature FROM _signatures").to_pylist()
            parts = catalog_opening.parts(store._connection, self.store)
            answered = answers.answered(store._connection)
            materialised = store.sql("SELECT materialised FROM _store").to_pylist()[0]["materialised"]
            cut = store.sql("SELECT profile_id FROM profiles WHERE truncated AND events_lost IS DISTINCT FROM 0").to_pylist()
        paths = {path for *_, path, _ in parts}
        parts_there = self._far.parts() if self._far else {path for path in paths if damage.is_whole(self.path / path)}
        broken = {(path, profile) for _, _, profile, path, _ in parts if path not in parts_there}
        unsure = {name for _, name in broken}
        signature_of = {r["profile_id"]: r["signature"] for r in signatures if r["profile_id"] not in unsure}
        return Known(files, signature_of, roots, patterns, has_views, None, {r["profile_id"] for r in cut}, broken, materialised,
                     [] if self._far else parts, answered)

    def commit(self, change: Change) -> None:
        """Make `change` part of the store, all of it or nothing. Raises StoreError where it cannot be written."""
        self._commit(change, rebuild=False)

    def compact(self) -> None:
        """Merge all parts that may be merged. Raises StoreError where there is no store, or one of an older schema."""
        older = self.known().older_schema if (self.path / CATALOG).is_file() else None
        if older is not None:
            raise other_schema(self.store, older, SCHEMA_VERSION)
        self._commit(Change(), rebuild=False, few=0)

    def rebuild(self, change: Change, keep_as: str | None) -> None:
        """Make `change` the whole store, in the place of one of an older schema; all of it or nothing.

        keep_as: file name under which the older catalog stays, with its parts; None: it goes.
        """
        with contextlib.closing(catalog_opening.attach(self.path / CATALOG)) as connection:
            self._materialise = catalog.is_materialised(connection)
        self._commit(change, rebuild=True, kept=None if keep_as is None else self.path / keep_as)

    def _commit(self, change: Change, *, rebuild: bool, kept: Path | None = None, few: int = compaction.FEW) -> None:
        before = self._live_parts()
        made: set[str] = set()
        try:
            old = [] if rebuild else self._bundles(change.lost)
            if self._far:
                self._far.download(self._root, compaction.rewritten(old, change, few))
            new, every = compaction.renewed(old, change, self.staging, few)
            new, every = self._placed(new, every, made)
            after = {file.relative_to(self._root).as_posix() for one in every for file in one.files.values()}
            if self._far:
                self._far.upload(self._root, made, before - after)
            fresh = self._make(lambda place: self._build(place, change, Bundles(new, every), rebuild))
            if kept is not None:
                self._keep_older(kept)
            if not self._far:
                self._journal.note(sorted(before - after))
            self._put(fresh)
        except BaseException as exc:
            self._undo(before, made, kept)
            if isinstance(exc, OSError | duckdb.Error | pa.ArrowException):
                raise self._failed(exc) from exc
            raise
        with contextlib.suppress(OSError):  # not every file system can sync a folder
            _sync(self.path)
        if self._far:
            self._far.clean(after, before)
        else:
            self._journal.remove(before | made, after | self._older_parts())

    def _placed(self, new: list[Bundle], every: list[Bundle], made: set[str]) -> tuple[list[Bundle], list[Bundle]]:
        """Bring the parts in the making to their places, which are added to `made` before; return the same bundles there."""
        moves = {id(one): [(table, one.files[table], place) for table, place in compaction.places(one).items()
                           if not one.files[table].is_relative_to(self._root / "parts")] for one in every}
        made |= {place for each in moves.values() for *_, place in each}
        if self._far:
            self._root.mkdir(exist_ok=True)
        else:
            self._journal.note(sorted(made))
        placed = {}
        for one in every:
            for _, draft, place in moves[id(one)]:
                no_links.move(draft, self._root, place)
            files = {**one.files, **{table: self._root / place for table, _, place in moves[id(one)]}}
            placed[id(one)] = replace(one, files=files)
        return [placed.get(id(one), one) for one in new], list(placed.values())

    def _undo(self, before: set[str], made: set[str], kept: Path | None) -> None:
        """Delete what a commit that failed has made; where it came through, and was interrupted only then, what it replaced."""
        if self._far:
            self._far.discard(made)
            return
        with contextlib.suppress(StoreError, OSError):  # then the next writer sees to it: the journal names them
            self.check()
            if kept is not None and not kept.is_symlink() and filecmp.cmp(self.path / CATALOG, kept, shallow=False):
                kept.unlink()
            self._journal.remove(before | made, self._live_parts())

    def _keep_older(self, kept: Path) -> None:
        """Let the catalog stay under another name. Raises StoreError where there is another file of that name."""
        if os.path.lexists(kept):
            no_links.confirm_file(kept)
            if not filecmp.cmp(self.path / CATALOG, kept, shallow=False):
                raise StoreError(f"{kept}: this catalog of an earlier rebuild would be replaced", self.path, "Move it away")
            return
        draft = self.staging / kept.name
        shutil.copyfile(self.path / CATALOG, draft)
        draft.rename(kept)

    def _bundles(self, lost: set[str]) -> list[Bundle]:
        """Return the bundles of the store now; parts that are lost are in none."""
        if not (self.path / CATALOG).is_file():
            return []
        with contextlib.closing(catalog_opening.attach(self.path / CATALOG)) as connection:
            parts = catalog_opening.parts(connection, self.store)
        return standing([part for part in parts if part[3] not in lost], self._root)

    def keep(self, rows: across.Rows) -> None:
        """Have the catalog keep answers across profiles, and no others. Raises OSError, duckdb.Error: it is as before then."""
        def build(place: Path) -> None:
            shutil.copyfile(self.path / CATALOG, place)
            with contextlib.closing(catalog_opening.open_for_writing(place, self.staging, catalog.WRITE_MEMORY)) as connection:
                with catalog.transaction(connection):
                    across.keep(connection, rows)
                connection.execute("CHECKPOINT")

        self._put(self._make(build))

    def _make(self, build: Callable[[Path], None]) -> Path:
        """Have `build` make a new catalog, where DuckDB can lock it; return where it lies, beside the store's."""
        fresh = self.staging / f"{secrets.token_hex(4)}.duckdb"
        fresh.touch()
        locks_here = has_locks(fresh)
        fresh.unlink()
        if locks_here:
            build(fresh)
            return fresh
        with TemporaryDirectory(prefix="nsightlens-") as folder:  # DuckDB writes no file that it cannot lock
            build(Path(folder) / CATALOG)
            shutil.copyfile(Path(folder) / CATALOG, fresh)
        return fresh

    def _put(self, fresh: Path) -> None:
        """Let the new catalog take the place of the old one."""
        _sync(fresh)
        self.check()
        if self._far:
            self._far.commit(fresh)
        fresh.replace(self.path / CATALOG)
        StoreWriter.commits += 1

    def _build(self, fresh: Path, change: Change, parts: Bundles, rebuild: bool) -> None:
        """Make the new catalog at `fresh`: from the old one and the change, or, to rebuild, from the change alone."""
        try:
            self._build_within(_memory(parts.new), fresh, change, parts, rebuild)
        except duckdb.Error:  # too little memory for rows as wide as these, say: once more, with what DuckDB takes by itself,
            # and with nothing from outside
            self._build_within(None, fresh, change, parts, rebuild)

    def _read_by(self, change: Change, parts: Bundles) -> list[Path]:
        """Return the files that DuckDB reads to make the catalog: parts where they lie here and at the store, answers."""
        new_files = {file for one in (*parts.new, *parts.every) for file in one.files.values()}
        far_files = {self.store / file.relative_to(self._root) for file in new_files} if self._far else set()
        return [*new_files, *far_files,
                *(file for answer in change.answers for file in (answer, answer.with_name(f"{answer.name}.wal")))]

    def _build_within(self, memory: str | None, fresh: Path, change: Change, parts: Bundles, rebuild: bool) -> None:
        for stray in fresh.parent.glob(f"{fresh.name}*"):
            stray.unlink()
        old = self.path / CATALOG
        is_old = old.is_file() and not rebuild
        if is_old:
            shutil.copyfile(old, fresh)
        else:
            template.place(fresh, self.staging, materialise=self._materialise, memory=memory, cached=memory is not None)
        far = self.store if isinstance(self.store, RemotePath) else None
        files = self._read_by(change, parts)
        with contextlib.closing(catalog_opening.open_for_writing(
                fresh, self.staging, memory, files, far, is_blank=not is_old)) as connection:
            attached = answers.attach(connection, change.answers)
            with catalog.transaction(connection):
                if is_old:
                    catalog.make_views(connection)
                answers.forget(connection, change.gone)
                if change != Change():  # else parts are merged: their rows stay
                    across.forget(connection)
                catalog.apply(connection, change, parts.new, [part for one in parts.every for part in one.parts(self._root)])
                catalog.show_parts(connection, self.store)
                catalog.renew_matches(connection, change.runs_to_match)
                answers.take_in(connection, attached)
            connection.execute("CHECKPOINT")


def _parts_of(path: Path) -> set[str]:
    """Return the parts that a catalog names."""
    with contextlib.closing(catalog_opening.attach(path)) as connection:
        return {path for *_, path, _ in catalog_opening.parts(connection, path.parent)}


def _memory(new: Sequence[Bundle]) -> str:
    """Return what DuckDB may take to write bundles."""
    parts = [pq.read_metadata(one.files["kernels"]) for one in new if "kernels" in one.files and one.files["kernels"].is_file()]
    widest = max((sum(part.row_group(at).total_byte_size for at in range(part.num_row_groups)) / max(part.num_rows, 1)
                  for part in parts), default=0)
    return catalog.WRITE_MEMORY_WIDE if widest > catalog.WIDE_BYTES else catalog.WRITE_MEMORY


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
