"""The views that a question stands upon, made in the temporary schema of a connection as questions name them.

A catalog is read for its tables alone: its views and macros may be those of another version, or anybody's. So each view is
created from the text of this version before the first query that names it, or one above it. All of them would take a second.

In a small store, those that more than one view or analysis reads are computed once for a connection, into temporary tables:
DuckDB plans a view again wherever it is named, with all that lies below. A question about the true roofline names the launches of
ncu 33 times, and in a small store planning is nearly all of its cost.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import cache

import duckdb

from nsightlens.schema import TABLES
from nsightlens.store import catalog_tables
from nsightlens.store.content import Content
from nsightlens.store.fence import names
from nsightlens.views import registry
from nsightlens.views.header import View

MOST_ROWS = 500_000
"""Rows of all tables up to which a store is small: above, a filter that reaches the rows saves more than planning costs."""

_LISTS = {"show", "describe"}
"""Words of the statements that list all tables."""


def is_small(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether the store of a catalog is small."""
    ((rows,),) = connection.execute("SELECT coalesce(sum(row_count), 0)::BIGINT FROM catalog._parts").fetchall()
    return bool(rows <= MOST_ROWS)


class SharedViews:
    """What a connection has made and computed of the views. own: a user's views beside ours.

    content: the catalog below them. None: the connection's database has all tables and views already, and they are ours.
    failures: why a view or table could not be made, by name.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, own: Mapping[str, View], content: Content | None = None) -> None:
        self._connection = connection
        self._own = own
        self._content = content
        self._made: set[str] = set()
        self._seen: set[str] = set()
        self.failures: dict[str, duckdb.Error] = {}

    def make(self, query: str) -> None:
        """Make the views and tables that a query names, and those below them.

        One that cannot be made is left out: a query that reads it says why, by `failures`.
        """
        views, tables = self._below(query)
        for name in set(tables) - TABLES.keys():  # nothing stands in for these
            self._make_table(name)
        with self._stood_in_for(tables if views else ()):
            for view in views:
                self._make_view(view)
        for name in tables:
            self._make_table(name)

    def compute(self, query: str) -> None:
        """Make what a query stands upon, and compute of it, once, what several views read."""
        views, tables = self._below(query)
        for name in tables:
            self._make_table(name)
        for view in views:
            if view.name in _shared() and view.name not in self._seen and self._compute(view):
                self._made.add(view.name)
            else:
                self._make_view(view)
        self._seen |= {view.name for view in views}

    def _compute(self, view: View) -> bool:
        """Compute a view into a temporary table; return whether that worked."""
        statement = view.sql if self._content is None else self._content.statements(view)[-1].replace(" OR REPLACE", "", 1)
        table = statement.replace(f"CREATE VIEW {view.name}", f"CREATE TEMP TABLE {view.name}", 1)
        with contextlib.suppress(duckdb.Error):
            if view.name in self._made:
                self._connection.execute(f"DROP VIEW IF EXISTS temp.{view.name}")
                self._made.discard(view.name)
            self._connection.execute(table)
            return True
        return False

    def _make_view(self, view: View) -> None:
        if self._content is None or view.name in self._made:
            return
        self._made.add(view.name)
        for statement in self._content.statements(view):
            temporary = statement.replace(" OR REPLACE", "", 1).replace("CREATE ", "CREATE OR REPLACE TEMP ", 1)
            try:
                self._connection.execute(temporary)
            except duckdb.Error as exc:
                self.failures[view.name] = exc

    def _make_table(self, name: str) -> None:
        if self._content is None or name in self._made:
            return
        self._made.add(name)
        try:
            self._content.make(name)
        except duckdb.Error as exc:
            self.failures[name] = exc

    @contextlib.contextmanager
    def _stood_in_for(self, tables: Collection[str]) -> Iterator[None]:
        """Have empty tables in the places of those that are not made yet: views over these bind faster than over parts."""
        standing = [name for name in tables if name in TABLES and name not in self._made] if self._content else []
        for name in standing:
            self._connection.execute(catalog_tables.ddl(TABLES[name]).replace("CREATE ", "CREATE TEMP ", 1))
        yield
        for name in standing:
            self._connection.execute(f"DROP TABLE temp.{name}")

    def _below(self, query: str) -> tuple[list[View], list[str]]:
        """Return the views that a query stands upon, each after those it reads, and the tables."""
        named = names(query)
        known = set(self._content.names) if self._content else set()
        views = {} if named.isdisjoint(self._own.keys() | registry.file_names() | _LISTS) else registry.load()
        if "show" in named or named == {"describe"}:
            named |= known | registry.public(views).keys()
        waiting = [*named, *(name for one in named & self._own.keys() for name in self._own[one].requires)]
        reached: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in reached or (name not in views and name not in known):
                continue
            reached.add(name)
            if view := views.get(name):
                waiting += self._content.below(view) if self._content else view.requires
        return [view for name, view in views.items() if name in reached], sorted(reached & known)


@cache
def _shared() -> frozenset[str]:
    """Return the views that several views or analyses read.

    A macro cannot be computed without its parameters: what reads it reads, in its place, the views that it stands upon.
    """
    views = registry.load()
    readers: dict[str, set[str]] = defaultdict(set)
    for view in (*views.values(), *registry.analyses().values()):
        for other in view.requires:
            readers[other].add(view.name)

    @cache
    def uses(name: str) -> int:
        return sum(1 + uses(reader) if reader in views and views[reader].is_macro else 1 for reader in readers[name])

    return frozenset(name for name, view in views.items() if not view.is_macro and uses(name) > 1)
