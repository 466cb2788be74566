"""Reading a store: its views and SQL, in a connection that can change nothing."""

from __future__ import annotations

import contextlib
import html
import logging
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import duckdb
import pyarrow as pa

from nsightlens import analyses
from nsightlens.discovery.remote import RemotePath, path_given, path_of
from nsightlens.errors import BalanceWarning, StoreError, UsageError, ViewError, no_store, not_a_choice
from nsightlens.public_calls import Exclusive, gated, gated_when_closed
from nsightlens.schema import SCHEMA_VERSION
from nsightlens.store import (
    across,
    answers,
    catalog,
    catalog_opening,
    damage,
    filter_values,
    kept_rows,
    named_rows,
    remote,
    rules,
)
from nsightlens.store.content import Content
from nsightlens.store.fence import fence_refusal, refuse_all_but_queries, single_statement
from nsightlens.store.shared_views import SharedViews, is_small
from nsightlens.store.view_queries import ViewQueries
from nsightlens.terminal.command import Command
from nsightlens.terminal.printable import printable
from nsightlens.views import folder, registry
from nsightlens.views.balance import unbalanced
from nsightlens.views.header import View
from nsightlens.views.html_table import html_table

if TYPE_CHECKING:
    from nsightlens.terminal.text import Text

_LOG = logging.getLogger(__name__)
CATALOG = remote.CATALOG
DEFAULT = "nsightlens-store"
VARIABLE = "NSIGHTLENS_STORE"
_SIGNATURES = """
SELECT profile_id, p.tool, s.signature FROM catalog._signatures AS s JOIN catalog.profiles AS p USING (profile_id)
ANTI JOIN (SELECT profile_id FROM catalog.files WHERE outcome IN ('missing', 'replaced')) USING (profile_id)
"""

_CAPTURES_OF_PART = """
SELECT DISTINCT run, r.root, f.path
FROM catalog.files AS f JOIN catalog._parts AS p USING (run, profile_id) JOIN catalog._runs AS r USING (run)
WHERE ends_with(?, p.path) ORDER BY ALL
"""
_MISSING = re.compile(r"Table (?:Function )?with name \"?(\w+)\"? does not exist")
_OF_CONTENT = (duckdb.BinderException, duckdb.CatalogException, duckdb.InvalidInputException, duckdb.IOException,
               duckdb.PermissionException)
"""Errors that a view of ours meets only where the store does not hold what we write."""
_FEW_CAPTURES = 4
_FIRST_FILES = 200
"""Files below a path that are looked at to say what it is instead of a store: a mistaken path may hold millions."""
_OVERVIEW = ("run", "tool", "ranks", "hosts", "gpus", "gpu_span_ns", "kernels", "kernel_ns")
_OF_OLDER = ("files", "_runs", "_store")
"""What is read of a store of an older schema."""
_BATCH = 5_000
_STREAMED = "120MB"
"""What DuckDB may take for rows that are streamed: sorts of 10 million rows pass with it, at twice the time."""
_AT_FIRST = "800MB"
"""What DuckDB may take for a question to a large store; the rest goes to disk. Where it cannot, there is no limit."""


def locate(path: str | Path | None) -> Path:
    """Return the store's folder or URL: `path`, else the environment's NSIGHTLENS_STORE, else ./nsightlens-store."""
    return path_given(path or os.environ.get(VARIABLE) or DEFAULT)


def is_store(path: Path) -> bool:
    """Return whether there is a store. Raises StoreError for a URL that does not answer."""
    return remote.newest(path).number > 0 if isinstance(path, RemotePath) else (path / CATALOG).is_file()


def holds_captures(path: Path) -> bool:
    """Return whether there is no store at a path but captures, or one."""
    if isinstance(path, RemotePath) or not path.exists() or is_store(path) or (path / "parts").exists():
        return False
    from nsightlens.discovery.files import look_at

    return any(look_at(file, path, "").tool for file in islice(chain([path], path.rglob("*")), _FIRST_FILES))


class Store(ViewQueries, Exclusive):
    """A store opened for reading. Use it as a context manager, or close() it.

    Threads may share it: one call at a time is answered, by as many threads of DuckDB as there are cores, and the others wait.
    path: its folder or URL. catalog: the DuckDB file that is read, of a store at a URL one in the cache.
    views: a folder with views of the user's own (.sql files and Python analyses), asked like ours.
    memory: what DuckDB may take, such as '500MB', in one thread. None: its own limit, but of a large store 800 MB
    and the disk for as long as that is enough.
    Of a store of an older schema only the table `files` can be read; older_schema is its version, else None.
    """

    @gated_when_closed
    def __init__(self, path: str | Path, views: Path | None = None, memory: str | None = None) -> None:
        self.lock = threading.RLock()
        self.path = locate(path)
        self._memory = memory
        self._is_bounded = False
        self._folder_of_views = views
        self.older_schema: int | None = None
        self._own = folder.load(views)
        self._values: dict[str, list[Any]] = {}
        self._fenced = True
        self._connect(_AT_FIRST)

    def _connect(self, of_large: str | None) -> None:
        """Open the catalog. of_large: what DuckDB may take where it is large and nothing else was asked for."""
        self.catalog = where = remote.fetched(self.path) / CATALOG
        _LOG.info("store %s", self.path)
        if not where.is_file():
            raise no_store(self.path)
        self._file = where.stat()
        self._connection, tables = catalog_opening.open_catalog(where, **self._limits)
        try:
            self._check_schema()
            if self.older_schema is None:
                self._open_anew_for_more(of_large)
                self._make_own_views(tables)
        except duckdb.Error as exc:
            self.close()
            raise StoreError(damage.catalog_damage(where, exc) or f"{where}: cannot be read ({exc})", self.path) from exc
        except BaseException:
            self.close()
            raise

    @property
    def _limits(self) -> dict[str, Any]:
        return {} if self._memory is None else {"memory": self._memory, "threads": 1}

    def _open_anew_for_more(self, of_large: str | None) -> None:
        """Open the catalog again where it needs more than itself: its parts, less memory, or files that the user lets it have."""
        self._parts = [] if catalog.is_materialised(self._connection) else catalog_opening.parts(self._connection, self.path)
        is_large = answers.events(self._connection) >= answers.WORTH_IT
        self._is_bounded = of_large is not None and self._memory is None and is_large
        if not self._parts and not self._is_bounded and self._fenced:
            return
        limits = {"memory": of_large} if self._is_bounded else self._limits
        self._connection.close()
        self._connection, _ = catalog_opening.open_catalog(
            self.catalog, {self.path / part[3]: None for part in self._parts}, is_fenced=self._fenced,
            far=self.path if isinstance(self.path, RemotePath) and self._parts else None, **limits)

    def _make_own_views(self, tables: catalog_opening.Tables) -> None:
        """Make the user's own views, over the tables and views of this version."""
        self._across = across.Kept(self._connection)
        self._views = SharedViews(self._connection, self._own, Content(self._connection, tables, self._parts, self.path))
        self._is_small = is_small(self._connection)
        self._views.make(" ".join(name for view in self._own.values() for name in view.requires))
        folder.create(self._connection, self._own)

    @property
    def has_views_of_this_version(self) -> bool:
        """Return whether plain DuckDB sees the views of this version in the catalog; those that answer here are, always."""
        return catalog.has_views_of_this_version(self._connection)

    def _check_schema(self) -> None:
        ((version,),) = self._connection.execute("SELECT schema_version FROM catalog._store").fetchall()
        if version > SCHEMA_VERSION:
            raise StoreError(f"{self.path}: written with schema {version}, this nsightlens has {SCHEMA_VERSION}", self.path,
                             "Update nsightlens, or ingest the captures into a new store")
        self.older_schema = version if version < SCHEMA_VERSION else None
        for name in _OF_OLDER if self.older_schema is not None else ():
            self._connection.execute(f"CREATE TEMP VIEW {name} AS FROM catalog.main.{name}")

    @cached_property
    def views(self) -> dict[str, View]:
        """Return the public views and analyses by name; each has .doc, .columns, .params and .sql."""
        return dict(sorted({**registry.known(), **registry.public(self._own)}.items()))

    @gated
    def values_of(self, column: str) -> list[Any]:
        """Return the values that the store has of run, rank, step, tool, family or kernel (short names)."""
        if column not in self._values:
            self._values[column] = filter_values.values(self.sql, column)
        return self._values[column]

    @gated
    def kept(self, view: str) -> tuple[int, int, float] | None:
        """Return for how many profiles a view's rows at default parameters were computed at ingest, how many they are, and the
        seconds that they took; None where the view is computed when it is asked for."""
        return answers.kept(self._connection, view) if self.older_schema is None else None

    @gated
    def older_than_the_rules(self) -> list[str]:
        """Return the profiles that were read or matched by older rules than this version's, and whose captures are not known
        to be gone."""
        if self.older_schema is not None:
            return []
        rows = self._run(_SIGNATURES, None).to_pylist()
        return sorted(row["profile_id"] for row in rows if rules.is_older(row["signature"], row["tool"]))

    def _view(self, name: str, parameters: dict[str, object]) -> pa.Table:
        if self.older_schema is not None:
            raise self._files_only()
        view, given = registry.named(name, self.views)
        parameters = registry.with_filters(view, parameters)
        began = time.monotonic()
        asked = self._confirmed(view, given, parameters)
        table = self._answer(view, asked)
        if not table.num_rows and (meant := filter_values.found_instead(self, view, given, parameters)):
            table = self._answer(view, asked := meant)
        _LOG.info("view %s %s: %d rows in %.3f s", view.name, asked or "", table.num_rows, time.monotonic() - began)
        self._check_books(view, asked, table)
        return table

    def _confirmed(self, view: View, given: Mapping[str, object], parameters: Mapping[str, object]) -> dict[str, object]:
        """Return all parameters of a view, patterns of names resolved. Raises UsageError for what is not there."""
        filter_values.confirm_of(self, view, {**given, **parameters})
        return filter_values.expanded(self, view, given, parameters)

    @gated
    def totals(self, name: str, by: Sequence[str], of: str, how: str, parameters: Mapping[str, object]) -> pa.Table:
        """Return the sum or count (`how`) of a column of a view by others, for views with a row per step, say.

        These few rows are kept where the many that they follow from are not.
        """
        if how not in ("sum", "count"):
            raise not_a_choice(name, "how", how, ("sum", "count"))
        view, given = registry.named(name, self.views)
        asked = {**given, **parameters}

        def summed() -> pa.Table:
            rows, keys = self._connection.from_arrow(self._view(name, dict(parameters))), ", ".join(by)
            return _plain_integers(rows.aggregate(f"{keys}, {how}({of}) AS {of}", keys).order(keys).to_arrow_table())

        if view.is_shipped and view.scope == "run":
            return self._remembered(view, asked | {"": [*by, of, how]}, summed)
        return summed()

    @gated
    def batches(self, name: str, /, first_rows: int | None = None, **parameters: object) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a view in batches of up to 5,000, one at least, for views with as many rows as events.

        Of a large store, DuckDB reads and sorts them in bounded memory, on disk where need be; where that is too little, and for
        all other views, they are those of `view`. An analysis that has its rows piece by piece (analyses.pieces) computes the
        next ones when they are asked for. first_rows: of a large store, no batch is asked for beyond the one that follows so many
        rows, so that DuckDB need not sort the others. Raises what `view` raises, before the first batch.
        """
        if self.older_schema is not None:
            raise self._files_only()
        view, given = registry.named(name, self.views)
        parameters = registry.with_filters(view, parameters)
        is_large = answers.events(self._connection) >= answers.WORTH_IT
        asked = self._confirmed(view, given, parameters) if is_large else {}
        if is_large and (tables := analyses.pieces(view, asked, self._ask)):
            record_batches = (batch for table in tables for batch in table.to_batches(_BATCH))
            if (piece := next(record_batches, None)) is not None:
                yield piece
                yield from record_batches
                return
        if is_large and view.sql and view.scope == "rows" and not view.balances:
            with Store(self.path, self._folder_of_views, _STREAMED) as other:
                query, values = registry.query(view, asked, None)
                if first_rows is not None:
                    query = f"FROM ({query}) LIMIT {(first_rows // _BATCH + 2) * _BATCH}"
                stream = other._stream(query, values)
                first = next(stream, None)
                if first is not None:
                    if not first.num_rows and (meant := filter_values.found_instead(self, view, given, parameters)):
                        yield from self.batches(view.name, first_rows, **meant)
                        return
                    yield first
                    yield from stream
                    return
        table = self.view(name, **parameters).combine_chunks()
        yield from table.to_batches(_BATCH) or [pa.RecordBatch.from_pylist([], schema=table.schema)]

    def _stream(self, query: str, values: Sequence[object] | Mapping[str, object]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query; nothing where they take more memory than there may be."""
        self._views.make(query)
        try:
            reader = self._connection.sql(query, params=values or None).to_arrow_reader(_BATCH)
            schema = pa.schema([field.with_type(pa.int64()) if _is_whole(field.type) else field for field in reader.schema])
            first = reader.read_next_batch()
        except StopIteration:
            first = pa.RecordBatch.from_pylist([], schema=reader.schema)
        except (duckdb.Error, pa.ArrowException, OSError) as exc:
            if "Out of Memory" in str(exc):
                return
            raise UsageError(f"DuckDB: {exc}") from exc
        yield first.cast(schema)
        yield from (batch.cast(schema) for batch in reader)

    def _answer(self, view: View, parameters: Mapping[str, object]) -> pa.Table:
        if not view.is_shipped or view.scope == "rows" or self._is_kept(view, parameters):
            return self._computed(view, parameters)
        return self._remembered(view, parameters, lambda: self._computed(view, parameters))

    def _remembered(self, view: View, parameters: Mapping[str, object], compute: Callable[[], pa.Table]) -> pa.Table:
        """Return rows from the answers across profiles, or from the user's cache, else those that `compute` returns."""
        remembered = self._across.find(view.name, parameters) if view.scope == "run" else None
        return kept_rows.rows(self._file, view, parameters, compute) if remembered is None else remembered

    def _computed(self, view: View, parameters: Mapping[str, object]) -> pa.Table:
        """Return the rows of a view, by its SQL or its analysis, or from the answers of the store."""
        try:
            if not view.sql and not self._is_kept(view, parameters):
                return analyses.run(view, parameters, self._ask)
            query, values = registry.query(view, parameters, None if view.sql else answers.rows_of(view, "catalog."))
            return self._ask(query, values)
        except UsageError as exc:
            if not view.is_shipped and view.sql:
                raise ViewError(view.file, view.line, str(exc)) from exc
            if view.is_shipped and isinstance(exc.__cause__, _OF_CONTENT):
                raise self._other_content(exc.__cause__) from exc
            raise

    def _is_kept(self, view: View, parameters: Mapping[str, object]) -> bool:
        """Return whether the rows of a view, with these parameters, are among the answers of the store."""
        return (view.is_shipped and view.scope == "profile" and not registry.split_parameters(view, parameters)[0]
                and self.kept(view.name) is not None)

    def _check_books(self, view: View, parameters: Mapping[str, object], table: pa.Table) -> None:
        """Warn where the rows of a view do not keep its books; a filter that leaves parts of a book out is lifted first."""
        filters = registry.filtered(parameters)
        for balance in view.balances:
            if balance.per and set(filters) - set(balance.per):
                others = {name: value for name, value in parameters.items() if not name.startswith("only_")}
                table = self._answer(view, others)
                filters = {}
            for said in unbalanced(table, [balance]):
                warnings.warn(BalanceWarning(view.name, said), stacklevel=4)

    @gated
    def sql(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] | None = None, *, most: int | None = None,
    ) -> pa.Table:
        """Return the result of one SQL query. The store cannot be changed, and no other file read or written.

        most: rows at most, of which no more are computed than need be; None: all.

        It may name tables, and every view like a table, which has its rows at default parameters then.
        Tables hold the rows of all runs and tools: a sum without WHERE or GROUP BY run, tool counts launches once for each.
        Raises UsageError for what DuckDB refuses, for several statements, and for anything but a query.
        """
        if most is not None and most < 0:
            raise UsageError(f"most is 0 or more, not {most}", subject="most", value=most)
        if self._fenced:
            refuse_all_but_queries(self._connection, query)
        else:
            single_statement(self._connection, query)
        return self._run(query, parameters, most=most)

    def _ask(self, query: str, parameters: Sequence[object] | Mapping[str, object] | None) -> pa.Table:
        """Return the result of a query of ours, or of a view or analysis."""
        return self._run(query, parameters, computes=True)

    def _run(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] | None, *, computes: bool = False,
        most: int | None = None,
    ) -> pa.Table:
        """Return the result of a query. computes: whether what several views read may be computed for it."""
        _LOG.debug("SQL: %s %s", query, parameters or "")
        try:
            try:
                return self._fetched(query, parameters, computes, most)
            except duckdb.OutOfMemoryException:
                if not self._is_bounded:
                    raise
                self._lift_the_bound()
                return self._fetched(query, parameters, computes, most)
        except (duckdb.Error, pa.ArrowException) as error:
            exc = self._reason(error)
            broken = damage.catalog_damage(self.catalog, exc) or self._broken_part(exc)
            if broken:
                raise StoreError(broken, self.path) from exc
            if self.older_schema is not None:
                raise self._files_only() from exc
            if isinstance(exc, duckdb.OutOfMemoryException):
                raise UsageError(f"this query needs more memory than is available ({str(exc).partition(chr(10))[0]}). Ask "
                                 "for less, by run, rank or step, or on a larger machine", subject="memory") from exc
            if exc is not error:
                raise self._other_content(exc) from exc
            reason = str(exc).replace('"catalog.', '"')  # where DuckDB found it, and nobody need look for it
            raise UsageError(self._hint_for_unknown_table(reason) or fence_refusal(exc) or f"DuckDB: {reason}") from exc

    def interrupt(self) -> None:
        """End the query that is at work in another thread, which holds the lock: its call raises KeyboardInterrupt there."""
        self._connection.interrupt()

    def confirm_open(self) -> None:
        """Raise StoreError where the store was closed."""
        try:
            self._connection.cursor().close()
        except duckdb.ConnectionException as exc:
            raise StoreError(f"the store {self.path} was closed: open it again with nl.open(...)", self.path) from exc

    def _other_content(self, error: Exception) -> StoreError:
        """Return the error for a view of ours that the tables of the catalog do not fit."""
        return StoreError(f"{self.path}: it does not hold what nsightlens writes ({str(error).splitlines()[0]})", self.path,
                          "Ingest the captures into a new store")

    def _reason(self, error: Exception) -> Exception:
        """Return why the table or view that DuckDB does not find could not be made, else the error itself."""
        missing = _MISSING.search(str(error)) if self.older_schema is None else None
        reason = self._views.failures.get(missing[1]) if missing else None
        return error if reason is None or reason is error else self._reason(reason)  # a view fails for the table below it

    def _fetched(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] | None, computes: bool, most: int | None,
    ) -> pa.Table:
        if self.older_schema is None:
            (self._views.compute if computes and self._is_small else self._views.make)(query)
        return _plain_integers(named_rows.fetched(self._connection, query, parameters, self._rows_of, most))

    def _rows_of(self, name: str) -> pa.Table | None:
        """Return the rows at its default parameters of what a statement names like a table, and is no view in SQL."""
        if not registry.is_named(name, self.views):
            return None
        view = self.views.get(name)
        return None if view and view.sql and not view.is_macro else self.view(name)

    def _lift_the_bound(self) -> None:
        """Let DuckDB take what it takes by itself: its settings are locked, so that takes another connection."""
        _LOG.info("a query needs more than %s", _AT_FIRST)
        self._connect_again(None)

    @gated_when_closed
    def reopen(self) -> None:
        """Open the store as it is now: until then it answers as it was when it was opened."""
        self._values.clear()
        analyses.forget(self)
        self._connect_again(_AT_FIRST)

    def _connect_again(self, of_large: str | None) -> None:
        self._connection.close()
        self._connect(of_large)

    def _files_only(self) -> StoreError:
        return StoreError((f"{self.path}: written with schema {self.older_schema}, this nsightlens has {SCHEMA_VERSION}. Of such "
                           "a store only the list of files can be read (", Command("sql", ("FROM files",)), ")"), self.path,
                          ("To rebuild it from the captures: ", Command("refresh").shell(self.path)))

    def _hint_for_unknown_table(self, message: str) -> Text | None:
        """Return how to ask for the view that DuckDB does not find; None where the message is of something else."""
        missing = _MISSING.search(message)
        view = self.views.get(missing[1]) if missing else None
        if missing and view is None and missing[1] in catalog.views(self._connection) | catalog.macros(self._connection):
            return f"{missing[1]} in the catalog is of another version of nsightlens, or not of any; this one does not have it so"
        if view is None:
            return None
        name = view.name
        if view.sql or not view.params:
            return f"{name} has no parameters: FROM {name}"
        return f"{name} takes no parameters in SQL (FROM {name}); ", Command("show", (name,)), " takes them"

    def _broken_part(self, error: Exception) -> Text | None:
        """Return what to say where the error is that a part is missing or damaged, and how to make it again; else None."""
        part = damage.damaged_part(self.path, error)
        if part is None:
            return None
        if remote.fetched(self.path) / CATALOG != self.catalog or self.catalog.stat().st_ino != self._file.st_ino:
            return f"{part}: gone, because the store was rewritten since it was opened. Open it again (in Python, store.reopen())"
        captures = self._connection.execute(_CAPTURES_OF_PART, [str(part)]).fetchall()
        if not captures:
            return f"{part}: not a part of this store"
        run, root, _ = captures[0]
        paths = [path for *_, path in captures] if len(captures) <= _FEW_CAPTURES else [root]
        again = Command("ingest", (*map(path_of, paths), ("--run", run))).shell(self.path)
        return (f"{part}: this part of the store is {damage.state_of(part)}. Make it again: ", again)

    @gated
    def allow_files(self) -> None:
        """Let sql() read and write other files from now on."""
        self._fenced = False
        self._connect_again(_AT_FIRST)

    def __repr__(self) -> str:
        """Return where the store is."""
        return f"<nsightlens store {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: where the store is, and the profiles of its runs."""
        shown = self.view("profile_overview").select(list(_OVERVIEW))
        return f"<p>nsightlens store {html.escape(printable(str(self.path)))}</p>{html_table(shown)}"

    @gated_when_closed
    def close(self) -> None:
        """Close the catalog."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _plain_integers(table: pa.Table) -> pa.Table:
    """Return the table with whole decimals (DuckDB's sums of integers) as int64, where they fit."""
    for index, column in enumerate(table.columns):
        if _is_whole(column.type):
            with contextlib.suppress(pa.ArrowInvalid):
                table = table.set_column(index, table.column_names[index], column.cast(pa.int64()))
    return table


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) and kind.scale == 0)
