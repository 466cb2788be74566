"""Store: immutable Parquet parts and the DuckDB catalogue over them, read-only for everyone but `ingest`."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import socket
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any
from urllib.parse import quote

import duckdb
import pyarrow as pa

from nsightlens import analyses, blank, catalogue, reconcile, views
from nsightlens.catalogue import Change
from nsightlens.errors import BalanceWarning, StoreError, UsageError
from nsightlens.schema import SCHEMA_VERSION
from nsightlens.views import View

CATALOGUE = "nsightlens.duckdb"
_QUERIES = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}
DEFAULT = "nsightlens-store"
VARIABLE = "NSIGHTLENS_STORE"

def locate(path: str | Path | None) -> Path:
    """Return the store's folder: `path`, else the environment's NSIGHTLENS_STORE, else ./nsightlens-store."""
    return Path(path or os.environ.get(VARIABLE) or DEFAULT)


class Store:
    """A store opened for reading. Use it as a context manager, or close() it."""

    def __init__(self, path: str | Path) -> None:
        self.path = locate(path)
        where = self.path / CATALOGUE
        if not where.is_file():
            raise StoreError(f"{self.path}: no store here. Make one with: nsightlens ingest RUN_DIR --store {self.path}")
        self._connection = catalogue.attach(where)
        try:
            found = self._connection.execute("SELECT schema_version FROM _store").fetchone()
        except duckdb.Error as exc:
            self.close()
            raise StoreError(f"{where}: this DuckDB file is no nsightlens store") from exc
        if found is None or found[0] != SCHEMA_VERSION:
            self.close()
            raise StoreError(f"{self.path}: written with schema {found and found[0]}, this nsightlens has {SCHEMA_VERSION}. "
                             "Ingest the captures again into a new store")
        self._connection.execute("SET VARIABLE nsightlens_store = ?", [str(self.path.resolve())])
        _fence(self._connection, self.path)
        self._fenced = True

    @property
    def views(self) -> dict[str, View]:
        """Return the public views and analyses by name; each has .doc, .columns, .params and .sql."""
        return views.known()

    def view(self, name: str, **parameters: object) -> pa.Table:
        """Return a view as an Arrow table. Raises UsageError for an unknown view or parameter.

        Warns (BalanceWarning) where the view states books (`@balance`) that its rows do not keep.
        """
        found = self.views
        if name not in found:
            raise UsageError(views.did_you_mean("view", name, found))
        table = self._answer(found[name], parameters)
        self._check_books(found[name], parameters, table)
        return table

    def _answer(self, view: View, parameters: Mapping[str, object]) -> pa.Table:
        return self._run(*views.query(view, parameters)) if view.sql else analyses.run(view, parameters, self._run)

    def _check_books(self, view: View, parameters: Mapping[str, object], table: pa.Table) -> None:
        """Warn where the rows of a view do not keep its books; a filter that leaves parts of a book out is lifted first."""
        filters = views.filtered(parameters)
        for balance in view.balances:
            if balance.per and set(filters) - set(balance.per):
                others = {name: value for name, value in parameters.items() if not name.startswith("only_")}
                table = self._answer(view, others)
                filters = {}
            for said in reconcile.unbalanced(table, [balance]):
                warnings.warn(f"{view.name}: {said}", BalanceWarning, stacklevel=3)

    def sql(self, query: str, parameters: Sequence[object] | Mapping[str, object] | None = None) -> pa.Table:
        """Return the result of one SQL query. The store cannot be changed, and no other file read or written.

        Raises UsageError for what DuckDB refuses, for several statements, and for anything but a query.
        """
        try:
            statements = self._connection.extract_statements(query)
        except duckdb.Error as exc:
            raise UsageError(f"DuckDB: {exc}") from exc
        kinds = {statement.type for statement in statements}
        if len(statements) != 1:
            raise UsageError(f"one statement is wanted, here are {len(statements)}")
        if self._fenced and not kinds <= _QUERIES:
            raise UsageError(f"a store is read-only, and {kinds.pop().name} is no query; "
                             "to let the statement touch other files: allow_files(), or --allow-files")
        return self._run(query, parameters)

    def _run(self, query: str, parameters: Sequence[object] | Mapping[str, object] | None) -> pa.Table:
        try:
            relation = self._connection.sql(query, params=parameters or None)
            return pa.table({}) if relation is None else _plain_integers(relation.to_arrow_table())
        except (duckdb.Error, pa.ArrowException) as exc:
            raise UsageError(_asked_wrongly(str(exc)) or f"DuckDB: {exc}") from exc

    def allow_files(self) -> None:
        """Let sql() read and write other files from now on."""
        self._connection.close()
        self._connection = catalogue.attach(self.path / CATALOGUE)
        self._connection.execute("SET VARIABLE nsightlens_store = ?", [str(self.path.resolve())])
        self._fenced = False

    def __repr__(self) -> str:
        """Return where the store is."""
        return f"<nsightlens store {str(self.path)!r}>"

    def close(self) -> None:
        """Close the catalogue."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _asked_wrongly(message: str) -> str | None:
    """Return how to ask for the view that DuckDB does not find; None where the message is of something else."""
    missing = re.search(r"Table (?:Function )?with name (\w+) does not exist", message)
    view = views.known().get(missing[1]) if missing else None
    if view is None:
        return None
    name = view.name
    if view.sql:
        return f"{name} has parameters: FROM {name}()" if view.is_macro else f"{name} has no parameters: FROM {name}"
    return (f"{name} is computed in Python, where SQL cannot ask for it: nsightlens show {name} --output {name}.parquet "
            f"(in Python: store.view({name!r})), then nsightlens sql --allow-files \"FROM '{name}.parquet'\"")


def _plain_integers(table: pa.Table) -> pa.Table:
    """Return the table with whole decimals (DuckDB's sums of integers) as int64, where they fit."""
    for index, column in enumerate(table.columns):
        if pa.types.is_decimal(column.type) and column.type.scale == 0:
            with contextlib.suppress(pa.ArrowInvalid):
                table = table.set_column(index, table.column_names[index], column.cast(pa.int64()))
    return table


def _fence(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Keep the connection off every file but the store's parts, and off the network, for good."""
    connection.execute("SET allowed_directories = [?]", [str(path.resolve() / "parts") + "/"])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


@dataclass(slots=True)
class Known:
    """What the store holds before an ingest: rows of files, signature of each profile that is whole, folder of each run."""

    files: list[dict[str, Any]] = field(default_factory=list)
    signatures: dict[str, str] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)


class Writing:
    """The one writer of a store: holds its lock, and replaces the catalogue as a whole.

    A new catalogue is built beside the old one and takes its place by one rename, so whoever reads sees the old store or the
    new one, and a writer that is killed leaves the old one.
    """

    def __init__(self, path: Path, *, materialise: bool = True, on_wait: Callable[[str], None] | None = None) -> None:
        self.path = path
        self._materialise = materialise
        self._on_wait = on_wait
        self._lock: IO[str] | None = None

    def __enter__(self) -> Writing:
        path = self.path / "lock"
        while self._lock is None:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                lock = path.open("a+")
            except OSError as exc:
                why = f"{self.path}: the store cannot be written ({exc.strerror}). Choose another with --store"
                raise StoreError(why) from exc
            self._acquire(lock)
            if path.exists() and os.fstat(lock.fileno()).st_ino == path.stat().st_ino:
                self._lock = lock
            else:  # the one we waited for took its empty folder away
                lock.close()
        self._tidy()
        return self

    def _acquire(self, lock: IO[str]) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            if self._on_wait:
                self._on_wait(lock.read().strip() or "another ingest")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        lock.truncate()
        lock.write(f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M:%S')}")
        lock.flush()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)
        if self._lock:
            self._lock.truncate(0)
            self._lock.close()
        if not (self.path / CATALOGUE).exists():
            self._leave_nothing()

    def _leave_nothing(self) -> None:
        """Take a folder away in which no store came to be."""
        for stray in self.path.glob(f".{CATALOGUE}.*"):
            stray.unlink(missing_ok=True)
        if {entry.name for entry in self.path.iterdir()} <= {"lock"}:
            shutil.rmtree(self.path, ignore_errors=True)

    @property
    def staging(self) -> Path:
        """Return the folder for parts in the making; it is emptied when the next writer comes."""
        return self.path / "staging"

    def _tidy(self) -> None:
        """Remove what a killed writer left: half-made parts and catalogues, and parts that no catalogue names."""
        shutil.rmtree(self.staging, ignore_errors=True)
        for stray in self.path.glob(f".{CATALOGUE}.*"):
            stray.unlink(missing_ok=True)
        live: set[str] = set()
        if (self.path / CATALOGUE).is_file():
            with contextlib.closing(catalogue.attach(self.path / CATALOGUE)) as connection:
                live = {row[0] for row in connection.execute("SELECT path FROM _parts").fetchall()}
        self._remove_parts_but(live)

    def _remove_parts_but(self, live: set[str]) -> None:
        for part in (self.path / "parts").glob("*/*/*.parquet"):
            if part.relative_to(self.path).as_posix() not in live:
                part.unlink(missing_ok=True)

    def known(self) -> Known:
        """Return what the store holds now. Raises StoreError for a store of another schema version."""
        if not (self.path / CATALOGUE).is_file():
            return Known()
        with Store(self.path) as store:
            files = store.sql("SELECT * FROM files").to_pylist()
            signatures = store.sql("SELECT profile_id, signature FROM _signatures").to_pylist()
            runs = store.sql("SELECT run, root FROM _runs").to_pylist()
            parts = store.sql("SELECT profile_id, path FROM _parts").to_pylist()
        lost = {part["profile_id"] for part in parts if not (self.path / part["path"]).is_file()}
        kept = {r["profile_id"]: r["signature"] for r in signatures if r["profile_id"] not in lost}
        return Known(files, kept, {r["run"]: r["root"] for r in runs})

    def commit(self, change: Change) -> None:
        """Make `change` part of the store, all of it or nothing."""
        try:
            self._commit(change)
        except (OSError, duckdb.Error) as exc:
            raise StoreError(f"{self.path}: could not be written, and is as it was before. Is the disk full? ({exc})") from exc

    def _commit(self, change: Change) -> None:
        moved = self._move_parts(change)
        fresh = self.path / f".{CATALOGUE}.{os.getpid()}"
        try:
            live = self._build(fresh, change, moved, catalogue.WRITE_MEMORY)
        except duckdb.Error:  # too little memory for rows as wide as these, say: once more, with what DuckDB takes by itself,
            # and with nothing from outside
            live = self._build(fresh, change, moved, None)
        _sync(fresh)
        fresh.replace(self.path / CATALOGUE)
        _sync(self.path)
        self._remove_parts_but(live)

    def _build(self, fresh: Path, change: Change, moved: list[tuple[str, str, str, str, int]], memory: str | None) -> set[str]:
        """Make the new catalogue at `fresh`, and return the parts that it names."""
        for stray in self.path.glob(f"{fresh.name}*"):
            stray.unlink()
        old = self.path / CATALOGUE
        if old.is_file():
            shutil.copyfile(old, fresh)
        else:
            blank.place(fresh, self.staging, materialise=self._materialise, memory=memory, cached=memory is not None)
        with contextlib.closing(catalogue.open_for_writing(fresh, self.staging, memory)) as connection:
            with catalogue.transaction(connection):
                catalogue.make_views(connection)
                catalogue.apply(connection, change, moved, self.path)
                catalogue.show_parts(connection, self.path)
                catalogue.renew_matches(connection, {run for _, run, *_ in change.added})
            connection.execute("CHECKPOINT")
            return {row[0] for row in connection.execute("SELECT path FROM _parts").fetchall()}

    def _move_parts(self, change: Change) -> list[tuple[str, str, str, str, int]]:
        """Move the new parts to their places; return rows of _parts."""
        moved = []
        for profile_id, run, _, folder, rows in change.added:
            generation = secrets.token_hex(4)
            for table, count in rows.items():
                relative = f"parts/{table}/run={quote(run, safe='')}/{profile_id}.{generation}.parquet"
                target = self.path / relative
                target.parent.mkdir(parents=True, exist_ok=True)
                (folder / f"{table}.parquet").replace(target)
                moved.append((table, run, profile_id, relative, count))
        return moved


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


