"""The DuckDB catalog of a store: its tables, and how the parts of a profile get into it and out of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from nsightlens.readers.batches import rows_to_batch
from nsightlens.schema import SCHEMA_VERSION, TABLES, Table
from nsightlens.store import fact_tables
from nsightlens.store.bundle import Bundle, Part
from nsightlens.store.catalog_tables import PRIVATE, SMALL, ddl, types
from nsightlens.views import registry
from nsightlens.views.header import PACKAGE
from nsightlens.views.signature import digest

WRITE_MEMORY = "128MB"
WRITE_MEMORY_WIDE = "320MB"
WIDE_BYTES = 1000
"""What DuckDB may take while it writes: more makes it no faster, but where a row has hundreds of counters, and so as many bytes:
then it would move its blocks to the disk and back for three times as long."""


@dataclass(slots=True)
class Change:
    """What one ingest changes: profiles gone, profiles come (id, run, signature, folder of parts, rows), files, notes.

    bundles: the parts of the profiles that come, small profiles together (store/compaction.py).
    answers: files with the answers for profiles that come or have stayed without (store/answers.py).
    lost: parts that are broken and that the catalog names no more.
    matched: profiles that stay, but whose matches are to be made by newer rules: id -> (run, signature).
    runs: run -> (folder, rank pattern).
    forgotten: (run, path) of files that are known no more. runs_gone: runs that are not.
    """

    removed: set[str] = field(default_factory=set)
    added: list[tuple[str, str, str, Path, dict[str, int]]] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    matched: dict[str, tuple[str, str]] = field(default_factory=dict)
    diagnostics: list[dict[str, Any]] = field(default_factory=list)
    runs: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    bundles: list[Bundle] = field(default_factory=list)
    answers: list[Path] = field(default_factory=list)
    forgotten: list[tuple[str, str]] = field(default_factory=list)
    runs_gone: set[str] = field(default_factory=set)

    @property
    def gone(self) -> list[str]:
        """Return the profiles whose rows leave the store, those that are read again included."""
        return sorted(self.removed | {added[0] for added in self.added})

    @property
    def runs_to_match(self) -> set[str]:
        """Return the runs whose matches must be made again."""
        return ({run for _, run, *_ in self.added} | {run for run, _ in self.matched.values()}
                | {run for run, _ in self.forgotten})


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Make what the block does one transaction: DuckDB waits for the disk once, and changes each entry of its lists once."""
    connection.execute("BEGIN")
    try:
        yield
    except BaseException:
        with suppress(duckdb.Error):  # an interrupt has undone it, or closed the connection: the interrupt is raised
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def create(connection: duckdb.DuckDBPyConnection, materialise: bool) -> None:
    """Create the empty tables of a new store; `make_views` adds what is a view, and the documentation."""
    for table in TABLES.values():
        if materialise and table.varying:
            fact_tables.create(connection, table, types(table))
        else:
            connection.execute(ddl(table))
    connection.execute(PRIVATE)
    connection.execute("INSERT INTO _store VALUES (?, ?, NULL)", [SCHEMA_VERSION, materialise])
    create_gpu_peaks(connection)


def create_gpu_peaks(connection: duckdb.DuckDBPyConnection, kind: str = "TABLE") -> None:
    """Make the peaks of GPUs that the code has a table."""
    connection.execute(f"CREATE OR REPLACE {kind} gpu_peaks AS SELECT * FROM read_csv(?, header = true)",
                       [str(PACKAGE / "gpus.csv")])


def _document(connection: duckdb.DuckDBPyConnection, table: Table, *, is_view: bool) -> None:
    connection.execute(f"COMMENT ON {'VIEW' if is_view else 'TABLE'} {table.name} IS {literal(table.doc)}")
    for column in table.columns:
        unit = f" [{column.unit}]" if column.unit else ""
        connection.execute(f'COMMENT ON COLUMN {table.name}."{column.name}" IS {literal(column.doc + unit)}')


def views(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the names of all views in the catalog."""
    query = "SELECT view_name FROM system.main.duckdb_views() WHERE database_name = 'catalog' AND NOT internal"
    return {name for (name,) in connection.execute(query).fetchall()}


def macros(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the names of all table macros in the catalog."""
    query = ("SELECT function_name FROM system.main.duckdb_functions() WHERE database_name = 'catalog' AND NOT internal "
             "AND function_type = 'table_macro'")
    return {name for (name,) in connection.execute(query).fetchall()}


def literal(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def apply(connection: duckdb.DuckDBPyConnection, change: Change, new: Sequence[Bundle], parts: Sequence[Part]) -> None:
    """Delete the rows of the profiles that go, insert those that come, and replace the rows of the files looked at.

    new: the bundles that come. parts: all parts of the store then.
    """
    materialised = is_materialised(connection)
    flat = [name for name, table in TABLES.items() if name != "files" and (materialised or name in SMALL)]
    split = fact_tables.tables() if materialised else []
    flat = [name for name in flat if name not in {table.name for table in split}]
    gone = change.gone
    if change.lost:
        connection.execute("DELETE FROM _signatures WHERE profile_id IN "
                           "(SELECT profile_id FROM _parts WHERE path IN (SELECT unnest(?)))", [sorted(change.lost)])
    known = connection.execute("SELECT DISTINCT profile_id FROM _parts WHERE profile_id IN (SELECT unnest(?))", [gone]).fetchall()
    if known:
        for table in split:
            fact_tables.delete(connection, table, [name for (name,) in known])
        for name in [*flat, "_signatures"]:
            connection.execute(f"DELETE FROM {name} WHERE profile_id IN (SELECT unnest(?))", [gone])
    for table in split:
        if fact_tables.insert(connection, table, types(table), new):
            _replace_view(connection, table)
    _insert_flat(connection, flat, new)
    _replace_parts(connection, parts)
    if change.added:
        connection.executemany("INSERT INTO _signatures VALUES (?, ?)", [(a[0], a[2]) for a in change.added])
    if change.matched:
        connection.executemany("UPDATE _signatures SET signature = ? WHERE profile_id = ?",
                               [(signature, name) for name, (_, signature) in change.matched.items()])
    _replace_files(connection, change)
    _check(connection)


def _replace_view(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    fact_tables.create_view(connection, table, types(table))
    _document(connection, table, is_view=True)


def _check(connection: duckdb.DuckDBPyConnection) -> None:
    """Remake the diagnostics that only the whole store can tell."""
    from nsightlens.discovery import mixed_workloads  # whoever only reads a store does without
    from nsightlens.store import checks

    connection.execute("DELETE FROM diagnostics WHERE code = ?", [mixed_workloads.CODE])
    _insert(connection, "diagnostics", checks.mixed(lambda query: connection.sql(query).to_arrow_table()))
    for code, query in (checks.CONFLICTS | (checks.MATERIALISED if is_materialised(connection) else {})).items():
        connection.execute("DELETE FROM diagnostics WHERE code = ?", [code])
        connection.execute(f"INSERT INTO diagnostics BY NAME {query}")


def renew_matches(connection: duckdb.DuckDBPyConnection, runs: set[str]) -> None:
    """Remake the rows of `matches` for runs whose profiles have changed."""
    from nsightlens.matching import cross_tool  # whoever only reads a store does without

    connection.execute("DELETE FROM matches WHERE run IN (SELECT unnest(?)) "
                       "OR other_profile_id NOT IN (SELECT profile_id FROM profiles)", [sorted(runs)])
    matches = cross_tool.matches(lambda query, values: connection.sql(query, params=values).to_arrow_table(), runs)
    if matches.num_rows:
        connection.register("incoming", matches)
        connection.execute("INSERT INTO matches BY NAME FROM incoming")
        connection.unregister("incoming")


def _replace_parts(connection: duckdb.DuckDBPyConnection, parts: Sequence[Part]) -> None:
    connection.execute("DELETE FROM _parts")
    columns = ("table_name", "run", "profile_id", "path", "row_count")
    connection.register("incoming", pa.table([pa.array(values) for values in zip(*parts, strict=True)] or [[]] * 5, columns))
    connection.execute("INSERT INTO _parts BY NAME FROM incoming")
    connection.unregister("incoming")


def _insert_flat(connection: duckdb.DuckDBPyConnection, tables: list[str], new: Sequence[Bundle]) -> None:
    """Insert parts as they are, those of one run together."""
    paths_of: dict[tuple[str, str], list[str]] = {}
    for one in new:
        for table, part in one.files.items():
            paths_of.setdefault((table, one.run), []).append(str(part))
    for (table, run), paths in paths_of.items():
        if table in tables:
            connection.execute(f"INSERT INTO {table} BY NAME SELECT *, ? AS run FROM read_parquet(?, hive_partitioning = false)",
                               [run, paths])


def is_materialised(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether the catalog holds the rows themselves, not views of their parts."""
    return connection.execute("SELECT materialised FROM catalog._store").fetchall() == [(True,)]


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: list[dict[str, Any]]) -> None:
    from nsightlens.store.secret_free_rows import without_secrets_in_prose  # whoever only reads a store does without

    if rows:
        batch = without_secrets_in_prose(rows_to_batch(rows, TABLES[table].schema, table), TABLES[table])
        connection.register("incoming", pa.Table.from_batches([batch]))
        connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming")
        connection.unregister("incoming")


def _replace_files(connection: duckdb.DuckDBPyConnection, change: Change) -> None:
    of_change = "(run, path) IN (SELECT unnest(?), unnest(?))"
    renewed = [(row["run"], row["path"]) for row in change.files] + change.forgotten
    keys = [[run for run, _ in renewed], [path for _, path in renewed]]
    connection.execute(f"DELETE FROM files WHERE {of_change}", keys)
    connection.execute(f"DELETE FROM diagnostics WHERE profile_id IS NULL AND {of_change}", keys)
    _insert(connection, "files", change.files)
    _insert(connection, "diagnostics", change.diagnostics)
    for table in ("_runs", "diagnostics") if change.runs_gone else ():
        connection.execute(f"DELETE FROM {table} WHERE run IN (SELECT unnest(?))", [sorted(change.runs_gone)])
    for run, (folder, pattern) in change.runs.items():
        connection.execute("DELETE FROM _runs WHERE run = ?", [run])
        connection.execute("INSERT INTO _runs VALUES (?, ?, ?)", [run, folder, pattern])


def has_views_of_this_version(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether the views in the catalog are those that this version of the code would make."""
    return connection.execute("SELECT views_signature FROM catalog._store").fetchall() == [(signature_of_views(),)]


def make_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the views, with the documentation of all tables, where they are not there or no longer those of this version."""
    split = fact_tables.tables() if is_materialised(connection) else []
    if not has_views_of_this_version(connection):
        create_gpu_peaks(connection)
        _make_views_anew(connection, split)
        connection.execute("UPDATE _store SET views_signature = ?", [signature_of_views()])
    else:
        for table in split:  # an ingest reads these, so that they are to be ours whatever the catalog says
            if not fact_tables.has_view(connection, table, types(table)):
                _replace_view(connection, table)


@cache
def signature_of_views() -> str:
    """Return a digest of all that an empty catalog follows from: to make its views takes half a second."""
    names = ("store/catalog.py", "store/catalog_tables.py", "store/fact_tables.py", "views/registry.py", "views/header.py",
             "schema.py", "gpus.csv")
    files = [*(PACKAGE / name for name in names), *registry.sql_files()]
    return digest([duckdb.__version__.partition(".")[0], *(file.read_text(encoding="utf-8") for file in files)])


def _make_views_anew(connection: duckdb.DuckDBPyConnection, split: list[Table]) -> None:
    """Replace all views. split: the tables that are kept as facts and templates.

    The views are made while the tables below them are empty tables: DuckDB binds them faster than views of facts or parts.
    """
    existing = views(connection)
    for kind, names in (("VIEW", existing), ("MACRO TABLE", macros(connection))):
        for name in sorted(names):
            connection.execute(f"DROP {kind} {name}")
    for name in (existing | {table.name for table in split}) & TABLES.keys():
        connection.execute(ddl(TABLES[name]))
    registry.create(connection)
    for name, table in TABLES.items():
        if table in split:
            connection.execute(f"DROP TABLE {name}")
            fact_tables.create_view(connection, table, types(table))
        _document(connection, table, is_view=table in split)


def show_parts(connection: duckdb.DuckDBPyConnection, root: Path) -> None:
    """In a store that is not materialised, make the large tables views of their parts.

    Such a view finds its parts through the variable nsightlens_store, else where they lay at the last ingest.
    """
    if is_materialised(connection):
        return
    existing = views(connection)
    for name in TABLES.keys() - set(SMALL):
        is_view = _view_of_parts(connection, name, root, name in existing)
        _document(connection, TABLES[name], is_view=is_view)


def _view_of_parts(connection: duckdb.DuckDBPyConnection, name: str, root: Path, is_view: bool) -> bool:
    """Make a large table a view of its parts, or an empty table where it has none; return whether it is a view now."""
    part_paths = connection.execute("SELECT DISTINCT path FROM _parts WHERE table_name = ? ORDER BY path", [name]).fetchall()
    if not part_paths and not is_view:
        return False
    connection.execute(f"DROP {'VIEW' if is_view else 'TABLE'} {name}")
    if not part_paths:
        connection.execute(ddl(TABLES[name]))
        return False
    connection.execute("SET VARIABLE nsightlens_store = ?", [str(root.resolve())])
    where = f"coalesce(getvariable('nsightlens_store'), {literal(str(root.resolve()))})"
    paths = [f"{where} || {literal('/' + path)}" for (path,) in part_paths]
    connection.execute(f"CREATE VIEW {name} AS {parts_query(TABLES[name], paths)}")
    return True


def parts_query(table: Table, paths: Sequence[str]) -> str:
    """Return the query for the rows of a large table from its parts, each an SQL expression."""
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    return (f"SELECT {columns} FROM read_parquet([{', '.join(paths)}], hive_partitioning = true, "
            "hive_types = {'run': VARCHAR}, union_by_name = true)")
