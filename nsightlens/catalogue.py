"""The DuckDB catalogue of a store: its tables, and how the parts of a profile get into it and out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from nsightlens import schema, star, views
from nsightlens.errors import StoreError
from nsightlens.kinds import kinds_of
from nsightlens.schema import SCHEMA_VERSION, TABLES, Table

STORAGE_VERSION = "v1.2.0"
_WRITE_MEMORY = "192MB"
_PRIVATE = """
CREATE TABLE _store (schema_version INTEGER, materialised BOOLEAN);
CREATE TABLE _parts (table_name VARCHAR, run VARCHAR, profile_id VARCHAR, path VARCHAR, row_count BIGINT);
CREATE TABLE _signatures (profile_id VARCHAR, signature VARCHAR);
CREATE TABLE _runs (run VARCHAR, root VARCHAR);
"""
_SMALL = ("files", "profiles", "processes", "devices", "diagnostics")
_TYPES = {
    schema.TEXT: "VARCHAR", schema.STRING: "VARCHAR", schema.INT16: "SMALLINT", schema.INT32: "INTEGER",
    schema.INT64: "BIGINT", schema.FLOAT64: "DOUBLE", schema.BOOL: "BOOLEAN", schema.METRICS: "MAP(VARCHAR, DOUBLE)",
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


def open_for_writing(path: Path, scratch: Path) -> duckdb.DuckDBPyConnection:
    """Return a connection to the catalogue at `path`, made in the oldest storage version that has what we need."""
    connection = duckdb.connect()
    connection.execute(f"SET memory_limit = '{_WRITE_MEMORY}'")
    connection.execute("SET temp_directory = ?", [str(scratch)])
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute(f"ATTACH {_literal(str(path))} AS catalogue (STORAGE_VERSION '{STORAGE_VERSION}')")
    connection.execute("USE catalogue")
    return connection


def create(connection: duckdb.DuckDBPyConnection, materialise: bool) -> None:
    """Create the empty tables of a new store, with their documentation."""
    for table in TABLES.values():
        if materialise and table.varying:
            star.create(connection, table, _types(table))
        else:
            connection.execute(_table_ddl(table))
        _document(connection, table)
    connection.execute(_PRIVATE)
    connection.execute("INSERT INTO _store VALUES (?, ?)", [SCHEMA_VERSION, materialise])
    with resources.as_file(resources.files("nsightlens") / "gpus.csv") as peaks:
        connection.execute("CREATE TABLE gpu_peaks AS SELECT * FROM read_csv(?, header = true)", [str(peaks)])


def _document(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    kind = "VIEW" if _is_view(connection, table.name) else "TABLE"
    connection.execute(f"COMMENT ON {kind} {table.name} IS {_literal(table.doc)}")
    for column in table.columns:
        unit = f" [{column.unit}]" if column.unit else ""
        connection.execute(f'COMMENT ON COLUMN {table.name}."{column.name}" IS {_literal(column.doc + unit)}')


def _is_view(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    query = "SELECT table_type FROM information_schema.tables WHERE table_catalog = 'catalogue' AND table_name = ?"
    kind = connection.execute(query, [name]).fetchone()
    return bool(kind and kind[0] == "VIEW")


def _types(table: Table) -> dict[str, str]:
    return {c.name: _TYPES[c.type] for c in table.columns}


def _table_ddl(table: Table) -> str:
    columns = ", ".join(f'"{name}" {type_}' for name, type_ in _types(table).items())
    return f"CREATE TABLE {table.name} ({columns})"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def apply(
    connection: duckdb.DuckDBPyConnection, change: Change, moved: list[tuple[str, str, str, str, int]], root: Path,
) -> None:
    """Delete the rows of the profiles that go, insert those that come, and replace the rows of the files looked at."""
    materialised = _materialised(connection)
    gone = sorted(change.removed | {added[0] for added in change.added})
    flat = [name for name, table in TABLES.items() if name != "files" and (materialised or name in _SMALL)]
    if materialised:
        flat = [name for name in flat if not TABLES[name].varying]
        _replace_kinds(connection, gone, moved, root)
    for name in [*flat, "_parts", "_signatures"]:
        connection.execute(f"DELETE FROM {name} WHERE profile_id IN (SELECT unnest(?))", [gone])
    for table, run, _, path, _ in moved:
        if table in flat:
            connection.execute(f"INSERT INTO {table} BY NAME SELECT *, ? AS run FROM read_parquet(?, hive_partitioning = false)",
                               [run, str(root / path)])
    if moved:
        connection.executemany("INSERT INTO _parts VALUES (?, ?, ?, ?, ?)", moved)
    if change.added:
        connection.executemany("INSERT INTO _signatures VALUES (?, ?)", [(a[0], a[2]) for a in change.added])
    _replace_files(connection, change)
    connection.execute("DELETE FROM diagnostics WHERE code = 'rank_conflict'")
    connection.execute(_RANK_CONFLICTS)


def _replace_kinds(
    connection: duckdb.DuckDBPyConnection, gone: list[str], moved: list[tuple[str, str, str, str, int]], root: Path,
) -> None:
    """Replace the profiles in the tables that are stored as kinds."""
    parts = {(table, profile): (run, root / path) for table, run, profile, path, _ in moved}
    for table in star.tables():
        star.delete(connection, table, gone)
        changed = False
        for (name, profile), (run, rows) in parts.items():
            if name == table.name:
                kinds = parts[kinds_of(name), profile][1]
                changed |= star.insert(connection, table, _types(table), run, rows, kinds)
        if changed:
            star.create_view(connection, table, _types(table))
            _document(connection, table)


_RANK_CONFLICTS = """
INSERT INTO diagnostics BY NAME
WITH spans AS (
    SELECT c.run, c.tool, p.execution_id, c.rank, c.process_id, c.profile_id,
        p.origin_epoch_ns + p.gpu_first_ns AS first_ns, p.origin_epoch_ns + p.gpu_last_ns AS last_ns
    FROM processes AS c JOIN profiles AS p USING (profile_id)
    WHERE c.rank IS NOT NULL AND p.origin_epoch_ns IS NOT NULL AND p.gpu_first_ns IS NOT NULL
)
SELECT DISTINCT a.run, a.tool, a.profile_id, 'warning' AS severity, 'rank_conflict' AS code, 1 AS count,
    'rank ' || a.rank || ' is claimed by ' || a.process_id || ' and by ' || b.process_id || ' at the same time; both are kept, '
    || 'so sums over that rank count both. Name the ranks with sidecars or --rank-pattern, or give the runs different names'
    AS message
FROM spans AS a JOIN spans AS b ON a.run = b.run AND a.tool = b.tool AND a.rank = b.rank AND a.process_id < b.process_id
    AND a.execution_id IS NOT DISTINCT FROM b.execution_id AND a.first_ns < b.last_ns AND b.first_ns < a.last_ns
"""


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


def make_views(connection: duckdb.DuckDBPyConnection, root: Path) -> None:
    """Create the views; in a store that is not materialised, the large tables too, as views of their parts.

    Such a view finds its parts through the variable nsightlens_store, else where they lay at the last ingest.
    """
    if not _materialised(connection):
        for name in TABLES:
            if name not in _SMALL:
                _view_of_parts(connection, name, root)
    views.create(connection)


def _view_of_parts(connection: duckdb.DuckDBPyConnection, name: str, root: Path) -> None:
    found = connection.execute("SELECT path FROM _parts WHERE table_name = ? ORDER BY path", [name]).fetchall()
    is_view = _is_view(connection, name)
    if not found and not is_view:
        return
    connection.execute(f"DROP {'VIEW' if is_view else 'TABLE'} {name}")
    if not found:
        connection.execute(_table_ddl(TABLES[name]))
        return
    connection.execute("SET VARIABLE nsightlens_store = ?", [str(root.resolve())])
    where = f"coalesce(getvariable('nsightlens_store'), {_literal(str(root.resolve()))})"
    paths = ", ".join(f"{where} || {_literal('/' + path)}" for (path,) in found)
    columns = ", ".join(f'"{c.name}"' for c in TABLES[name].columns)
    connection.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM read_parquet([{paths}], hive_partitioning = true, "
                       "hive_types = {'run': VARCHAR}, union_by_name = true)")
