"""Views that several others read: in a small store, computed once for a connection.

DuckDB plans a view again wherever it is named, with all that lies below: a question about the true roofline names the launches
of ncu 33 times, and in a small store planning is nearly all of its cost. So the views below a question that more than one view
or analysis reads become temporary tables before it is asked; they hide the catalog's views of their names, below other views too.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache

import duckdb

from nsightlens.views import registry
from nsightlens.views.header import View

MOST_ROWS = 500_000
"""Rows of all tables up to which a store is small: above, a filter that reaches the rows saves more than planning costs."""


def is_small(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether the store of a catalog is small."""
    ((rows,),) = connection.execute("SELECT coalesce(sum(row_count), 0)::BIGINT FROM _parts").fetchall()
    return bool(rows <= MOST_ROWS)


class SharedViews:
    """What a connection has computed of the views in its current database. own: a user's views beside ours."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, own: Mapping[str, View]) -> None:
        self._connection = connection
        self._own = own
        ((self._database,),) = connection.execute("SELECT current_database()").fetchall()
        self._seen: set[str] = set()

    def compute(self, query: str) -> None:
        """Compute the shared views that a query stands upon and that are not there yet.

        One that cannot be computed is left as it is: a query that reads it says why.
        """
        for name in self._below(query):
            with contextlib.suppress(duckdb.Error):
                self._connection.execute(f"CREATE TEMP TABLE {name} AS FROM {self._database}.{name}")

    def _below(self, query: str) -> list[str]:
        """Return the shared views that a query stands upon and that were not asked for before, each after those it reads."""
        named = set(re.findall(r"\w+", query))
        named |= {name for one in named & self._own.keys() for name in self._own[one].requires}
        reached = {name for one in named & registry.load().keys() for name in (one, *_under(one))} - self._seen
        self._seen |= reached
        return [name for name in registry.load() if name in reached & _shared()]


@cache
def _under(name: str) -> frozenset[str]:
    """Return the views that a view reads, directly or not."""
    views = registry.load()
    direct = {other for other in (*views[name].requires, *views[name].optional) if other in views}
    return frozenset(direct.union(*(_under(other) for other in direct)))


@cache
def _shared() -> frozenset[str]:
    """Return the views that several views or analyses read.

    A macro cannot be computed without its parameters: what reads it reads, in its place, the views that it stands upon.
    """
    views = registry.load()
    readers: dict[str, set[str]] = defaultdict(set)
    for view in (*views.values(), *registry.analyses().values()):
        for other in (*view.requires, *view.optional):
            readers[other].add(view.name)

    @cache
    def uses(name: str) -> int:
        return sum(1 + uses(reader) if reader in views and views[reader].is_macro else 1 for reader in readers[name])

    return frozenset(name for name, view in views.items() if not view.is_macro and uses(name) > 1)
