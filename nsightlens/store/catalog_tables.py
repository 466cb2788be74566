"""Tables of a catalog: DuckDB types and SQL of ours; those of a file, StoreError where it holds what no store of ours does.

A catalog is input. What it may run is refused before anything of it is read: a table is columns of plain types, without defaults,
generated columns, checks or indexes, and those that we know have the columns that they have in a store of ours. What DuckDB lists
of a catalog it lists without running any of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import duckdb

from nsightlens import schema
from nsightlens.errors import StoreError
from nsightlens.schema import SCHEMA_VERSION, TABLES, TEMPLATE, Table, templates_of

PRIVATE = """
CREATE TABLE _store (schema_version INTEGER, materialised BOOLEAN, views_signature VARCHAR);
CREATE TABLE _parts (table_name VARCHAR, run VARCHAR, profile_id VARCHAR, path VARCHAR, row_count BIGINT);
CREATE TABLE _signatures (profile_id VARCHAR, signature VARCHAR);
CREATE TABLE _runs (run VARCHAR, root VARCHAR, rank_pattern VARCHAR);
CREATE TABLE _answers (view_name VARCHAR, profile_id VARCHAR, signature VARCHAR, row_count BIGINT, seconds DOUBLE);
"""
SMALL = ("files", "profiles", "processes", "devices", "diagnostics", "matches")
"""The tables that every catalog holds, also where the others are views of their parts."""
_TYPES = {
    schema.TEXT: "VARCHAR", schema.STRING: "VARCHAR", schema.INT16: "SMALLINT", schema.INT32: "INTEGER",
    schema.INT64: "BIGINT", schema.FLOAT64: "DOUBLE", schema.BOOL: "BOOLEAN", schema.METRICS: "MAP(VARCHAR, DOUBLE)",
    schema.COUNTS: "MAP(VARCHAR, BIGINT)", schema.SETTINGS: "MAP(VARCHAR, VARCHAR)",
}
_OF_ANY_SCHEMA = ("files", "_runs", "_store")
_VERSION = "schema_version INTEGER"
_LISTED = """
SELECT table_name, sql, index_count FROM system.main.duckdb_tables() WHERE database_name = 'catalog' AND schema_name = 'main'
"""
_MORE_THAN_COLUMNS = re.compile(r"\b(AS|CHECK|COLLATE|CONSTRAINT|DEFAULT|GENERATED|NOT NULL|PRIMARY|REFERENCES|UNIQUE)\b|'")
_NAME = re.compile(r'"(?:[^"]|"")*"')
_PLAIN = re.compile(r'"\w+"', re.ASCII)
"""A quoted name that is the same without its quotes."""


def types(table: Table) -> dict[str, str]:
    """Return DuckDB's type of each column of a table."""
    return {column.name: _TYPES[column.type] for column in table.columns}


def ddl(table: Table) -> str:
    """Return the statement that creates a table."""
    columns = ", ".join(f'"{name}" {type_}' for name, type_ in types(table).items())
    return f"CREATE TABLE {table.name} ({columns})"


def facts_of(table: str) -> str:
    """Return the name of the catalog's table that holds what varies from row to row."""
    return f"_{table}_facts"


def stored(text: str) -> list[str]:
    """Return the columns of a table of facts, as DuckDB lists it."""
    return re.findall(r"(\w+) [A-Z]+(?:\([A-Z, ]*\))?[,)]", text.partition("(")[2])


def confirmed(connection: duckdb.DuckDBPyConnection, path: Path) -> dict[str, str]:
    """Return the tables of the attached catalog at `path`, each as DuckDB lists it, without quotes.

    Raises StoreError where it is no catalog of a store, or one that holds what none of ours does.
    """
    rows = connection.execute(_LISTED).fetchall()
    schemas = {name: text.replace('"', "") for name, text, _ in rows}
    if _VERSION not in schemas.get("_store", ""):
        raise StoreError(f"{path}: this DuckDB file is not an nsightlens store", path.parent)
    for name, text, indexes in rows:
        is_plain = all(map(_PLAIN.fullmatch, _NAME.findall(text)))
        if indexes or not is_plain or _MORE_THAN_COLUMNS.search(_NAME.sub("", text)):
            raise _not_ours(path, name)
    version, is_whole = _described(connection, path)
    if version < SCHEMA_VERSION:
        strange = [name for name in _OF_ANY_SCHEMA if name not in schemas]
    elif version > SCHEMA_VERSION:
        return schemas  # it is refused for that
    else:
        strange = _strange(schemas, is_whole)
    if strange:
        raise _not_ours(path, strange[0])
    return schemas


def _described(connection: duckdb.DuckDBPyConnection, path: Path) -> tuple[int, bool]:
    """Return the version of the schema, and whether the catalog holds all rows itself."""
    rows = connection.execute("FROM catalog.main._store").fetchall()
    if len(rows) != 1 or not isinstance(rows[0][0], int):
        raise _not_ours(path, "_store")
    return rows[0][0], len(rows[0]) > 1 and bool(rows[0][1])


def _strange(found: Mapping[str, str], is_materialised: bool) -> list[str]:
    """Return the tables of this version's schema that are missing, are views, or have other columns than ours."""
    expected = dict(_private())
    strange = []
    for name, table in TABLES.items():
        if is_materialised and table.varying:
            expected[templates_of(name)] = _templates(name)
            if not _facts(name).fullmatch(found.get(facts_of(name), "")) or name in found:
                strange.append(name)
        elif is_materialised or name in SMALL or name in found:
            expected[name] = _plain(name)
    return [*(name for name, text in expected.items() if found.get(name) != text), *strange]


def _not_ours(path: Path, name: str) -> StoreError:
    return StoreError(f"{path}: its table {name!r} is not as nsightlens makes it, so nothing of it is read", path.parent,
                      "Ask for the captures, and ingest them into a new store")


@cache
def _private() -> Mapping[str, str]:
    statements = [line.replace(" (", "(", 1) for line in PRIVATE.strip().splitlines()]
    return {line.split("(")[0].rpartition(" ")[2]: line for line in statements}


@cache
def _plain(name: str) -> str:
    return f"CREATE TABLE {name}({', '.join(_columns(TABLES[name]))});"


@cache
def _templates(name: str) -> str:
    columns = [column for column in _columns(TABLES[name]) if column.partition(" ")[0] not in TABLES[name].varying]
    return f"CREATE TABLE {templates_of(name)}({', '.join([f'{TEMPLATE} INTEGER', *columns])});"


@cache
def _facts(name: str) -> re.Pattern[str]:
    """Return what matches its table of facts: the columns that some profile had a value for, in the order in which they came."""
    columns = [column for column in _columns(TABLES[name]) if column.partition(" ")[0] in TABLES[name].varying]
    either = "|".join(map(re.escape, columns))
    return re.compile(rf"CREATE TABLE {facts_of(name)}\({TEMPLATE} INTEGER(, ({either}))*\);")


def _columns(table: Table) -> list[str]:
    return [f"{name} {type_}" for name, type_ in types(table).items()]
