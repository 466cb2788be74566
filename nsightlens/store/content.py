"""What the catalog of a store holds, as the views of this version stand upon it: each of its tables by a query of ours.

No view and no macro of a catalog is ever run: this says, for each name that ours read, the statements that make it in the
temporary schema of a connection.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

import duckdb

from nsightlens.schema import TABLES
from nsightlens.store import answers, catalog, catalog_tables, fact_tables
from nsightlens.store.bundle import Part
from nsightlens.store.catalog_opening import Tables
from nsightlens.views import registry
from nsightlens.views.header import View

PEAKS = "gpu_peaks"
_HERE = "catalog.main."


class Content:
    """The tables of an attached catalog. parts: those that are not in it, of the store at `root`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, tables: Tables, parts: Sequence[Part], root: Path) -> None:
        self._connection = connection
        self._tables = tables
        self._parts: Mapping[str, Collection[str]] = _by_table(parts)
        self._root = root.resolve()
        self.is_materialised = bool(connection.execute("SELECT materialised FROM catalog._store").fetchall()[0][0])

    @property
    def names(self) -> set[str]:
        """Return the names of all tables."""
        return {*TABLES, PEAKS, *self._tables}

    def make(self, name: str) -> None:
        """Make a table, by its name, in the connection's temporary schema. Raises duckdb.Error."""
        if name == PEAKS:
            catalog.create_gpu_peaks(self._connection, "TEMP TABLE")
        else:
            self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {registry.identifier(name)} AS {self._rows(name)}")

    def _rows(self, name: str) -> str:
        table = TABLES.get(name)
        if table and self.is_materialised and table.varying:
            stored = catalog_tables.stored(self._tables[catalog_tables.facts_of(name)])
            return fact_tables.joined(table, catalog_tables.types(table), stored, _HERE)
        if table and not self.is_materialised and name not in catalog_tables.SMALL:
            if paths := self._parts.get(name):
                return catalog.parts_query(table, [registry.literal(str(self._root / path)) for path in paths])
            nothing = ", ".join(f'NULL::{kind} AS "{column}"' for column, kind in catalog_tables.types(table).items())
            return f"SELECT {nothing} WHERE false"
        return f"FROM {_HERE}{registry.identifier(name)}"

    @cached_property
    def answered(self) -> set[str]:
        """Return the views and analyses that are answered for every profile."""
        has_any = self._connection.execute("FROM catalog._answers LIMIT 1").fetchall()
        return answers.complete(self._connection) if has_any else set()

    def statements(self, view: View) -> list[str]:
        """Return the statements that create a view or macro."""
        if view.name not in self.answered:
            return [view.sql]
        return [answers.computing(view), answers.reading(view, _HERE)] if view.is_macro else [answers.reading(view, _HERE)]

    def below(self, view: View) -> Collection[str]:
        """Return the views and tables that a view reads itself."""
        return () if view.name in self.answered and not view.is_macro else (*view.requires, *_tables_of(view.sql))


@cache
def _tables_of(query: str) -> frozenset[str]:
    """Return the tables that the text of a view names."""
    return frozenset(re.findall(r"\w+", query)) & {*TABLES, PEAKS}


def _by_table(parts: Sequence[Part]) -> dict[str, list[str]]:
    paths_by_table: dict[str, dict[str, None]] = defaultdict(dict)
    for table, _, _, path, _ in parts:
        paths_by_table[table][path] = None
    return {table: sorted(paths) for table, paths in paths_by_table.items()}
