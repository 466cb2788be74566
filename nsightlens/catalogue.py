"""The DuckDB catalogue of a store: its tables, and how the parts of a profile get into it and out of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from importlib import resources
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from nsightlens import crossing, schema, star, views
from nsightlens.conflicts import CONFLICTS
from nsightlens.errors import StoreError
from nsightlens.schema import SCHEMA_VERSION, TABLES, Table
from nsightlens.star import Part

STORAGE_VERSION = "v1.2.0"
WRITE_MEMORY = "128MB"
"""What DuckDB may take while it writes: more makes it no faster."""
_PRIVATE = """
CREATE TABLE _store (schema_version INTEGER, materialised BOOLEAN, views_signature VARCHAR);
CREATE TABLE _parts (table_name VARCHAR, run VARCHAR, profile_id VARCHAR, path VARCHAR, row_count BIGINT);
CREATE TABLE _signatures (profile_id VARCHAR, signature VARCHAR);
CREATE TABLE _runs (run VARCHAR, root VARCHAR);
"""
_SMALL = ("files", "profiles", "processes", "devices", "diagnostics", "matches")
_TYPES = {
    schema.TEXT: "VARCHAR", schema.STRING: "VARCHAR", schema.INT16: "SMALLINT", schema.INT32: "INTEGER",
    schema.INT64: "BIGINT", schema.FLOAT64: "DOUBLE", schema.BOOL: "BOOLEAN", schema.METRICS: "MAP(VARCHAR, DOUBLE)",
    schema.SETTINGS: "MAP(VARCHAR, VARCHAR)",
}


@dataclass(slots=True)
class Change:
    """What one ingest changes: profiles gone, profiles come (id, run, signature, folder of parts, rows), files, notes."""

    removed: set[str] = field(default_factory=set)
    added: list[tuple[str, str, str, Path, dict[str, int]]] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    diagnostics: list[dict[str, Any]] = field(default_factory=list)
    runs: dict[str, str] = field(default_factory=dict)


def attach(path: Path) -> duckdb.DuckDBPyConnection:
    """Return a connection of its own to the catalogue at `path`, read-only. Raises StoreError where DuckDB cannot open it."""
    connection = duckdb.connect()
    connection.execute("SET autoinstall_known_extensions = false")
    try:
        connection.execute(f"ATTACH {_literal(str(path))} AS catalogue (READ_ONLY)")
    except duckdb.Error as exc:
        connection.close()
        raise StoreError(f"{path}: cannot be opened. {_why(exc)}") from exc
    connection.execute("USE catalogue")
    return connection


def _why(error: duckdb.Error) -> str:
    said = str(error).splitlines()[0]
    if "lock" in said:
        return f"Another program has it open for writing: close it there, or copy the store ({said})"
    if "newer version" in said or "storage version" in said:
        return f"It was written by a newer DuckDB: update duckdb ({said})"
    return f"It is damaged, or no DuckDB file: ingest the captures again into a new store ({said})"


def open_for_writing(path: Path, scratch: Path, memory: str | None) -> duckdb.DuckDBPyConnection:
    """Return a connection to the catalogue at `path`, made in the oldest storage version that has what we need.

    memory: DuckDB's limit (None: its own); what does not fit goes to `scratch`.
    """
    connection = duckdb.connect()
    if memory:
        connection.execute(f"SET memory_limit = '{memory}'")
    connection.execute("SET temp_directory = ?", [str(scratch)])
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET checkpoint_threshold = '1B'")  # a commit writes the tables at once, not all of it to a log first
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute(f"ATTACH {_literal(str(path))} AS catalogue (STORAGE_VERSION '{STORAGE_VERSION}')")
    connection.execute("USE catalogue")
    return connection


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Make what the block does one transaction: DuckDB waits for the disk once, and changes each entry of its lists once."""
    connection.execute("BEGIN")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def create(connection: duckdb.DuckDBPyConnection, materialise: bool) -> None:
    """Create the empty tables of a new store; `make_views` adds what is a view, and the documentation."""
    for table in TABLES.values():
        if materialise and table.varying:
            star.create(connection, table, _types(table))
        else:
            connection.execute(_table_ddl(table))
    connection.execute(_PRIVATE)
    connection.execute("INSERT INTO _store VALUES (?, ?, NULL)", [SCHEMA_VERSION, materialise])
    with resources.as_file(resources.files("nsightlens") / "gpus.csv") as peaks:
        connection.execute("CREATE TABLE gpu_peaks AS SELECT * FROM read_csv(?, header = true)", [str(peaks)])


def _document(connection: duckdb.DuckDBPyConnection, table: Table, *, is_view: bool) -> None:
    connection.execute(f"COMMENT ON {'VIEW' if is_view else 'TABLE'} {table.name} IS {_literal(table.doc)}")
    for column in table.columns:
        unit = f" [{column.unit}]" if column.unit else ""
        connection.execute(f'COMMENT ON COLUMN {table.name}."{column.name}" IS {_literal(column.doc + unit)}')


def _views(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the names of all views in the catalogue."""
    query = "SELECT view_name FROM duckdb_views() WHERE database_name = 'catalogue' AND NOT internal"
    return {name for (name,) in connection.execute(query).fetchall()}


def _macros(connection: duckdb.DuckDBPyConnection) -> set[str]:
    query = ("SELECT function_name FROM duckdb_functions() WHERE database_name = 'catalogue' AND NOT internal "
             "AND function_type = 'table_macro'")
    return {name for (name,) in connection.execute(query).fetchall()}


def _types(table: Table) -> dict[str, str]:
    return {c.name: _TYPES[c.type] for c in table.columns}


def _table_ddl(table: Table) -> str:
    columns = ", ".join(f'"{name}" {type_}' for name, type_ in _types(table).items())
    return f"CREATE TABLE {table.name} ({columns})"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def apply(
    connection: duckdb.DuckDBPyConnection, change: Change, moved: list[Part], root: Path,
) -> None:
    """Delete the rows of the profiles that go, insert those that come, and replace the rows of the files looked at."""
    materialised = _materialised(connection)
    flat = [name for name, table in TABLES.items() if name != "files" and (materialised or name in _SMALL)]
    stars = star.tables() if materialised else []
    flat = [name for name in flat if name not in {table.name for table in stars}]
    gone = sorted(change.removed | {added[0] for added in change.added})
    known = connection.execute("SELECT DISTINCT profile_id FROM _parts WHERE profile_id IN (SELECT unnest(?))", [gone]).fetchall()
    if known:
        for table in stars:
            star.delete(connection, table, [name for (name,) in known])
        for name in [*flat, "_parts", "_signatures"]:
            connection.execute(f"DELETE FROM {name} WHERE profile_id IN (SELECT unnest(?))", [gone])
    for table in stars:
        if star.insert(connection, table, _types(table), moved, root):
            star.create_view(connection, table, _types(table))
            _document(connection, table, is_view=True)
    _insert_flat(connection, flat, moved, root)
    if moved:
        connection.executemany("INSERT INTO _parts VALUES (?, ?, ?, ?, ?)", moved)
    if change.added:
        connection.executemany("INSERT INTO _signatures VALUES (?, ?)", [(a[0], a[2]) for a in change.added])
    _replace_files(connection, change)
    for code, query in CONFLICTS.items():
        connection.execute("DELETE FROM diagnostics WHERE code = ?", [code])
        connection.execute(f"INSERT INTO diagnostics BY NAME {query}")


def renew_matches(connection: duckdb.DuckDBPyConnection, runs: set[str]) -> None:
    """Make the rows of `matches` anew for runs whose profiles have changed."""
    connection.execute("DELETE FROM matches WHERE run IN (SELECT unnest(?)) "
                       "OR other_profile_id NOT IN (SELECT profile_id FROM profiles)", [sorted(runs)])
    found = crossing.matches(lambda query, values: connection.sql(query, params=values).to_arrow_table(), runs)
    if found.num_rows:
        connection.register("incoming", found)
        connection.execute("INSERT INTO matches BY NAME FROM incoming")
        connection.unregister("incoming")


def _insert_flat(connection: duckdb.DuckDBPyConnection, tables: list[str], moved: list[Part], root: Path) -> None:
    """Insert parts as they are, those of one run together."""
    found: dict[tuple[str, str], list[str]] = {}
    for table, run, _, path, _ in moved:
        found.setdefault((table, run), []).append(str(root / path))
    for (table, run), paths in found.items():
        if table in tables:
            connection.execute(f"INSERT INTO {table} BY NAME SELECT *, ? AS run FROM read_parquet(?, hive_partitioning = false)",
                               [run, paths])


def _materialised(connection: duckdb.DuckDBPyConnection) -> bool:
    found = connection.execute("SELECT materialised FROM _store").fetchone()
    return bool(found and found[0])


def _replace_files(connection: duckdb.DuckDBPyConnection, change: Change) -> None:
    paths = [row["path"] for row in change.files]
    connection.execute("DELETE FROM files WHERE path IN (SELECT unnest(?))", [paths])
    connection.execute("DELETE FROM diagnostics WHERE profile_id IS NULL AND path IN (SELECT unnest(?))", [paths])
    for table, rows in (("files", change.files), ("diagnostics", change.diagnostics)):
        if rows:
            batch = schema.rows_to_batch(rows, TABLES[table].schema, table)
            connection.register("incoming", pa.Table.from_batches([batch]))
            connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming")
            connection.unregister("incoming")
    for run, folder in change.runs.items():
        connection.execute("DELETE FROM _runs WHERE run = ?", [run])
        connection.execute("INSERT INTO _runs VALUES (?, ?)", [run, folder])


def make_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the views, with the documentation of all tables, where they are not there or no longer those of this version."""
    signature = signature_of_views()
    if connection.execute("SELECT views_signature FROM _store").fetchone() != (signature,):
        _make_views_anew(connection, star.tables() if _materialised(connection) else [])
        connection.execute("UPDATE _store SET views_signature = ?", [signature])


@cache
def signature_of_views() -> str:
    """Return a digest of all that an empty catalogue follows from: to make its views takes half a second."""
    package = resources.files("nsightlens")
    files = [package / name for name in ("catalogue.py", "star.py", "views.py", "schema.py", "gpus.csv")]
    files += sorted((package / "sql").iterdir(), key=lambda file: file.name)
    digest = blake2b(digest_size=16)
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _make_views_anew(connection: duckdb.DuckDBPyConnection, stars: list[Table]) -> None:
    """Replace all views. stars: the tables that are kept as rows and kinds.

    The views are made while the tables below them are empty tables: DuckDB binds them faster than views of kinds or parts.
    """
    existing = _views(connection)
    for kind, names in (("VIEW", existing), ("MACRO TABLE", _macros(connection))):
        for name in sorted(names):
            connection.execute(f"DROP {kind} {name}")
    for name in (existing | {table.name for table in stars}) & TABLES.keys():
        connection.execute(_table_ddl(TABLES[name]))
    views.create(connection)
    for name, table in TABLES.items():
        if table in stars:
            connection.execute(f"DROP TABLE {name}")
            star.create_view(connection, table, _types(table))
        _document(connection, table, is_view=table in stars)


def show_parts(connection: duckdb.DuckDBPyConnection, root: Path) -> None:
    """In a store that is not materialised, make the large tables views of their parts.

    Such a view finds its parts through the variable nsightlens_store, else where they lay at the last ingest.
    """
    if _materialised(connection):
        return
    existing = _views(connection)
    for name in TABLES.keys() - set(_SMALL):
        is_view = _view_of_parts(connection, name, root, name in existing)
        _document(connection, TABLES[name], is_view=is_view)


def _view_of_parts(connection: duckdb.DuckDBPyConnection, name: str, root: Path, is_view: bool) -> bool:
    """Make a large table a view of its parts, or an empty table where it has none; return whether it is a view now."""
    found = connection.execute("SELECT path FROM _parts WHERE table_name = ? ORDER BY path", [name]).fetchall()
    if not found and not is_view:
        return False
    connection.execute(f"DROP {'VIEW' if is_view else 'TABLE'} {name}")
    if not found:
        connection.execute(_table_ddl(TABLES[name]))
        return False
    connection.execute("SET VARIABLE nsightlens_store = ?", [str(root.resolve())])
    where = f"coalesce(getvariable('nsightlens_store'), {_literal(str(root.resolve()))})"
    paths = ", ".join(f"{where} || {_literal('/' + path)}" for (path,) in found)
    columns = ", ".join(f'"{c.name}"' for c in TABLES[name].columns)
    connection.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM read_parquet([{paths}], hive_partitioning = true, "
                       "hive_types = {'run': VARCHAR}, union_by_name = true)")
    return True
