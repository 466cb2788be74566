"""Writing a store: its one writer holds the lock, keeps parts by rename, and replaces the catalog as a whole."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, ClassVar

import duckdb
import pyarrow.parquet as pq

from nsightlens.discovery import looks
from nsightlens.discovery.remote import RemotePath
from nsightlens.errors import StoreError, other_schema
from nsightlens.schema import SCHEMA_VERSION
from nsightlens.store import across, answers, catalog, compaction, damage, part_files, remote, template
from nsightlens.store.bundle import Bundle, Part, standing
from nsightlens.store.catalog import Change
from nsightlens.store.lock import FOLDER, Lock, has_locks
from nsightlens.store.store import CATALOG, Store

OLDER = "nsightlens.schema-{}.duckdb"
"""Name of the catalog of an older schema that a rebuild leaves, where not all of its captures could be read again."""


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


class Writing:
    """The one writer of a store: holds its lock, and replaces the catalog as a whole.

    A new catalog is built beside the old one and takes its place by one rename, so whoever reads sees the old store or the
    new one, and a writer that is killed leaves the old one.

    store: where it lies, also at a URL. path: the folder in which it is written: the same, or one in the cache (store/remote.py).
    commits: how many changes this process has made to stores.
    """

    commits: ClassVar[int] = 0

    def __init__(self, store: Path, *, materialise: bool = True, on_wait: Callable[[str], None] | None = None) -> None:
        self.store = store
        self.path = remote.folder_of(store)
        self._far = remote.Far(store) if isinstance(store, RemotePath) else None
        self._materialise = materialise
        self._lock = Lock(self.path, on_wait)

    def __enter__(self) -> Writing:
        self._lock.acquire()
        try:
            if self._far:
                self._far.pull(self.path / CATALOG)
            self._tidy()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._empty_staging()
        is_store = (self.path / CATALOG).exists()
        self._lock.release(remove=not is_store)
        if not is_store:
            with contextlib.suppress(OSError):  # not empty: another writer came, or converted reports lie in it
                self.path.rmdir()

    @property
    def staging(self) -> Path:
        """Return the folder for parts in the making; it is emptied when the next writer comes."""
        return self.path / "staging"

    def _empty_staging(self) -> None:
        """Remove what lies in staging; a file that a failed reading has open still gives its room back."""
        for file in self.staging.glob("*/*"):
            with contextlib.suppress(OSError):
                os.truncate(file, 0)
        shutil.rmtree(self.staging, ignore_errors=True)

    def _tidy(self) -> None:
        """Remove what a killed writer left: half-made parts, catalogs and exports; `known` removes parts without a catalog."""
        shutil.rmtree(self.staging, ignore_errors=True)
        halves = (f".{CATALOG}.*", f".{looks.FILE}.*", "converted/.*")
        for stray in (stray for half in halves for stray in self.path.glob(half)):
            stray.unlink(missing_ok=True)
        for stray in self.path.glob(f".{FOLDER}.*"):
            shutil.rmtree(stray, ignore_errors=True)

    def _live_parts(self) -> set[str]:
        """Return the parts that the catalog names, or one of an older schema that a rebuild left."""
        current = self.path / CATALOG
        return (_parts_of(current) if current.is_file() else set()) | self._older_parts()

    def _older_parts(self) -> set[str]:
        return {part for path in self.path.glob(OLDER.format("*")) for part in _parts_of(path)}

    def _remove_parts_but(self, live: set[str]) -> None:
        """Remove the other parts; what cannot be removed is left to the next writer."""
        for part in (self.path / "parts").glob("*/*/*.parquet"):
            if part.relative_to(self.path).as_posix() not in live:
                with contextlib.suppress(OSError):
                    part.unlink()
        self._remove_empty_folders()

    def _remove_empty_folders(self) -> None:
        parts = self.path / "parts"
        for folder in [*parts.glob("*/*"), *parts.glob("*"), parts]:
            with contextlib.suppress(OSError):
                folder.rmdir()

    def known(self) -> Known:
        """Return what the store holds now, and remove the parts that it does not name, which a killed writer left.

        Raises StoreError for a store of a newer schema version.
        """
        if not (self.path / CATALOG).is_file():
            self._remove_parts_but(set())
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
            parts = store.sql("SELECT table_name, run, profile_id, path, row_count FROM _parts").to_pylist()
            answered = answers.answered(store._connection)
            materialised = store.sql("SELECT materialised FROM _store").to_pylist()[0]["materialised"]
            cut = store.sql("SELECT profile_id FROM profiles WHERE truncated AND events_lost IS DISTINCT FROM 0").to_pylist()
        paths = {part["path"] for part in parts}
        self._remove_parts_but(set() if self._far else paths | self._older_parts())
        there = self._far.parts() if self._far else {path for path in paths if damage.is_whole(self.path / path)}
        broken = {(part["path"], part["profile_id"]) for part in parts if part["path"] not in there}
        unsure = {name for _, name in broken}
        kept = {r["profile_id"]: r["signature"] for r in signatures if r["profile_id"] not in unsure}
        return Known(files, kept, roots, patterns, has_views, None, {r["profile_id"] for r in cut}, broken, materialised,
                     [] if self._far else [tuple(part.values()) for part in parts], answered)

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
        with contextlib.closing(catalog.attach(self.path / CATALOG)) as connection:
            self._materialise = catalog.is_materialised(connection)
        self._commit(change, rebuild=True, kept=None if keep_as is None else self.path / keep_as)

    def _commit(self, change: Change, *, rebuild: bool, kept: Path | None = None, few: int = compaction.FEW) -> None:
        before = self._live_parts()
        fresh = self.path / f".{CATALOG}.{os.getpid()}"
        made: list[str] = []
        try:
            if kept is not None:
                shutil.copyfile(self.path / CATALOG, kept)
            old = [] if rebuild else self._bundles(change.lost)
            if self._far:
                self._far.download(self.path, compaction.rewritten(old, change, few))
            new, every = compaction.renewed(old, change, self.path, few)
            after = {file.relative_to(self.path).as_posix() for one in every for file in one.files.values()}
            if self._far:
                made = sorted(after - before)
                self._far.upload(self.path, made)
            self._make(fresh, lambda place: self._build(place, change, Bundles(new, every), rebuild))
            self._put(fresh)
        except BaseException as exc:
            _unlink([*self.path.glob(f"{fresh.name}*"), *([kept] if kept else [])])
            self._remove_parts_but(set() if self._far else before)
            if self._far:
                self._far.discard(made)
            if isinstance(exc, OSError | duckdb.Error):
                why = damage.of_catalog(self.path / CATALOG, exc) or (
                    f"{self.store}: could not be written, and is as it was before. Is the disk full? ({exc})")
                raise StoreError(why, self.store) from exc
            raise
        with contextlib.suppress(OSError):  # not every file system can sync a folder
            _sync(self.path)
        if self._far:
            self._far.clean(after | self._older_parts(), before)
        self._remove_parts_but(set() if self._far else after | self._older_parts())

    def _bundles(self, lost: set[str]) -> list[Bundle]:
        """Return the bundles of the store now; parts that are lost are in none."""
        if not (self.path / CATALOG).is_file():
            return []
        with contextlib.closing(catalog.attach(self.path / CATALOG)) as connection:
            parts = connection.execute("SELECT table_name, run, profile_id, path, row_count FROM _parts ORDER BY ALL").fetchall()
        return standing([part for part in parts if part[3] not in lost], self.path)

    def keep(self, rows: across.Rows) -> None:
        """Have the catalog keep answers across profiles, and no others. Raises OSError, duckdb.Error: it is as before then."""
        fresh = self.path / f".{CATALOG}.{os.getpid()}"

        def build(place: Path) -> None:
            shutil.copyfile(self.path / CATALOG, place)
            with contextlib.closing(catalog.open_for_writing(place, self.staging, catalog.WRITE_MEMORY)) as connection:
                with catalog.transaction(connection):
                    across.keep(connection, rows)
                connection.execute("CHECKPOINT")

        try:
            self._make(fresh, build)
            self._put(fresh)
        except BaseException:
            _unlink(self.path.glob(f"{fresh.name}*"))
            raise

    def _make(self, fresh: Path, build: Callable[[Path], None]) -> None:
        """Have `build` make the new catalog, where DuckDB can lock it, and bring it to `fresh`."""
        fresh.touch()
        here = has_locks(fresh)
        fresh.unlink()
        if here:
            build(fresh)
            return
        with TemporaryDirectory(prefix="nsightlens-") as folder:  # DuckDB writes no file that it cannot lock
            build(Path(folder) / CATALOG)
            shutil.copyfile(Path(folder) / CATALOG, fresh)

    def _put(self, fresh: Path) -> None:
        """Let the new catalog take the place of the old one."""
        _sync(fresh)
        self._lock.check()
        if self._far:
            self._far.commit(fresh)
        fresh.replace(self.path / CATALOG)
        Writing.commits += 1

    def _build(self, fresh: Path, change: Change, parts: Bundles, rebuild: bool) -> None:
        """Make the new catalog at `fresh`: from the old one and the change, or, to rebuild, from the change alone."""
        try:
            self._build_within(_memory(parts.new), fresh, change, parts, rebuild)
        except duckdb.Error:  # too little memory for rows as wide as these, say: once more, with what DuckDB takes by itself,
            # and with nothing from outside
            self._build_within(None, fresh, change, parts, rebuild)

    def _build_within(self, memory: str | None, fresh: Path, change: Change, parts: Bundles, rebuild: bool) -> None:
        for stray in fresh.parent.glob(f"{fresh.name}*"):
            stray.unlink()
        old = self.path / CATALOG
        if old.is_file() and not rebuild:
            shutil.copyfile(old, fresh)
        else:
            template.place(fresh, self.staging, materialise=self._materialise, memory=memory, cached=memory is not None)
        with contextlib.closing(catalog.open_for_writing(fresh, self.staging, memory)) as connection:
            if isinstance(self.store, RemotePath):
                part_files.let_read(connection, self.store)
            attached = answers.attach(connection, change.answers)
            with catalog.transaction(connection):
                catalog.make_views(connection)
                answers.forget(connection, change.gone)
                if change != Change():  # else parts are merged: their rows stay
                    across.forget(connection)
                catalog.apply(connection, change, parts.new, [part for one in parts.every for part in one.parts(self.path)])
                catalog.show_parts(connection, self.store)
                catalog.renew_matches(connection, change.runs_to_match)
                answers.take_in(connection, attached)
            connection.execute("CHECKPOINT")


def _parts_of(path: Path) -> set[str]:
    """Return the parts that a catalog names."""
    with contextlib.closing(catalog.attach(path)) as connection:
        return {part for (part,) in connection.execute("SELECT path FROM _parts").fetchall()}


def _memory(new: Sequence[Bundle]) -> str:
    """Return what DuckDB may take to write bundles."""
    parts = [pq.read_metadata(one.files["kernels"]) for one in new if "kernels" in one.files and one.files["kernels"].is_file()]
    widest = max((sum(part.row_group(at).total_byte_size for at in range(part.num_row_groups)) / max(part.num_rows, 1)
                  for part in parts), default=0)
    return catalog.WRITE_MEMORY_WIDE if widest > catalog.WIDE_BYTES else catalog.WRITE_MEMORY


def _unlink(files: Iterable[Path]) -> None:
    for file in files:
        with contextlib.suppress(OSError):
            file.unlink()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
