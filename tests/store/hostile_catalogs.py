"""Stores that somebody else made, to harm whoever opens them: `HOSTILE` has what is done to an honest one, by name.

Beside each store lies `canary.txt`, whose text no output may hold, and `victim.txt`, which nothing may write.
To have them all in a folder: python -m tests.store.hostile_catalogs FOLDER
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import nsightlens as nl
from nsightlens.schema import SCHEMA_VERSION
from nsightlens.store import answers
from nsightlens.views.signature import code_digest
from tests.captures import kineto

CANARY = "CANARY-7f3a"
CATALOG = "nsightlens.duckdb"
Harm = Callable[[Path], None]
"""What is done to the store at a path."""

PAYLOADS = {
    "profiling": "SELECT NULL FROM enable_profiling(format := 'json', save_location := '{victim}')",
    "logging": "SELECT NULL FROM enable_logging(storage := 'file', storage_path := '{world}/log')",
    "text": "SELECT content FROM read_text('{canary}')",
    "csv": "FROM read_csv('{canary}', header := false)",
    "glob": "FROM glob('{world}/*')",
    "query": "FROM query('FROM read_text(''{canary}'')')",
    "url": "SELECT 'x' FROM range(1) WHERE EXISTS (FROM glob('/etc/pass*'))",
}
_PRIVATE = ("_store", "_parts", "_signatures", "_runs", "_answers", "files", "profiles", "diagnostics")
_VIEWS = ("kernels", "api_calls", "kernel_summary", "profile_overview", "_gpu_work", "unified_memory_totals")
_BUILT_INS = ("sum(x)", "count(x)", "lower(x)", "list(x)", "round(x, y := 1)", "starts_with(x, y)", "error(x)",
              "regexp_matches(x, y, z := '')", "concat_ws(x, y)", '"||"(x, y)', '"+"(x, y)', "getvariable(x)",
              "current_setting(x)")
_TABLE_FUNCTIONS = ("duckdb_tables()", "duckdb_views()", "duckdb_functions()", "read_parquet(x)", "range(x)", "top_kernels()",
                    "busy_time(per := 1)")


def _sql(*statements: str) -> Harm:
    """Let plain DuckDB change the catalog."""
    def harm(store: Path) -> None:
        world = store.parent
        names = {"world": world, "canary": world / "canary.txt", "victim": world / "victim.txt", "store": store}
        with duckdb.connect(str(store / CATALOG)) as connection:
            for statement in statements:
                connection.execute(statement.format(**names))
    return harm


def _as_view(table: str, payload: str) -> Harm:
    """Make a table a view of a payload: with the columns that it had, the first of them from the payload."""
    def harm(store: Path) -> None:
        with duckdb.connect(str(store / CATALOG)) as connection:
            columns = connection.execute(f"DESCRIBE {table}").fetchall()
            is_view = connection.execute("SELECT count(*) FROM duckdb_views() WHERE view_name = ?", [table]).fetchone() == (1,)
            if is_view:
                connection.execute(f"DROP VIEW {table}")
            else:
                connection.execute(f"ALTER TABLE {table} RENAME TO _was_{table}")
        typed = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind, *_ in columns)
        old = "" if is_view else f"FROM _was_{table} UNION ALL BY NAME "
        _sql(f"CREATE VIEW {table} AS {old}SELECT {typed} FROM ({PAYLOADS[payload]})")(store)
    return harm


def _part(name: str) -> Harm:
    """Let the catalog name another part for the kernels."""
    return _sql(f"UPDATE _parts SET path = '{name}' WHERE table_name = 'kernels'")


def _linked(place: str, target: str) -> Harm:
    """Put a link at a place in the store, or at the first file of a pattern."""
    def harm(store: Path) -> None:
        path = next(iter(sorted(store.glob(place))), store / place)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        path.symlink_to(target.format(world=store.parent))
    return harm


def _moved_behind_a_link(store: Path) -> None:
    (store / "parts").rename(store.parent / "elsewhere")
    (store / "parts").symlink_to(store.parent / "elsewhere")


def _other_part(write: Callable[[Path], object]) -> Harm:
    def harm(store: Path) -> None:
        write(next(iter(sorted(store.glob("parts/kernels/*/*.parquet")))))
    return harm


def _answered_by_a_view(store: Path) -> None:
    signature = answers._signatures()["busy_time"]
    _sql("CREATE VIEW _answer_busy_time AS SELECT content AS run, 0 AS _place FROM read_text('{canary}')",
         f"INSERT INTO _answers SELECT 'busy_time', profile_id, '{signature}', 1, 0 FROM profiles")(store)


def _across(rows: str) -> Harm:
    return _sql("DROP TABLE IF EXISTS _across", f"CREATE {rows}".replace("CODE", code_digest()))


def _of_schema(version: str, *statements: str) -> Harm:
    return _sql(f"UPDATE _store SET schema_version = {version}", *statements)


def _beside(name: str, content: bytes) -> Harm:
    def harm(store: Path) -> None:
        (store / name).write_bytes(content)
    return harm


def _with_a_log(store: Path) -> None:
    """Leave a change in the log beside the catalog, as a process that was killed does."""
    with duckdb.connect(str(store / CATALOG)) as connection:
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute("SET checkpoint_threshold = '1TB'")
        connection.execute("DROP VIEW kernel_summary")
        connection.execute(f"CREATE VIEW kernel_summary AS FROM read_text('{store.parent / 'canary.txt'}')")
        connection.execute("CREATE TABLE more (a INTEGER DEFAULT 1)")


def _both(first: Harm, second: Harm) -> Harm:
    def harm(store: Path) -> None:
        first(store)
        second(store)
    return harm


def _catalog_behind_a_link(store: Path) -> None:
    (store / CATALOG).rename(store.parent / "moved")
    (store / CATALOG).symlink_to(store.parent / "moved")


def _only_store(store: Path) -> None:
    (store / CATALOG).unlink()
    _sql(f"CREATE TABLE _store AS SELECT {SCHEMA_VERSION} AS schema_version, true AS materialised, '' AS views_signature")(store)


def _narrow(part: Path) -> None:
    pq.write_table(pa.table({"kernel_id": ["x"]}), part)


HOSTILE: dict[str, Harm] = {
    **{f"{table} is a view of {payload}": _as_view(table, payload)
       for table, payload in zip(_PRIVATE, [*PAYLOADS, "profiling"], strict=True)},
    "_store is a view of logging": _as_view("_store", "logging"),
    "files is a view of a text": _as_view("files", "text"),
    "_parts is a view of profiling": _as_view("_parts", "profiling"),
    **{f"{view} reads {payload}": _as_view(view, payload)
       for view, payload in zip(_VIEWS, ("profiling", "logging", "text", "csv", "query", "glob"), strict=True)},
    "kernels logs to a file": _as_view("kernels", "logging"),
    **{f"a macro for {name}": _sql(f"CREATE MACRO {name} AS (SELECT content FROM read_text('{{canary}}'))")
       for name in _BUILT_INS},
    **{f"a table macro for {name}": _sql(f"CREATE OR REPLACE MACRO {name} AS TABLE FROM read_text('{{canary}}')")
       for name in _TABLE_FUNCTIONS},
    "a view for duckdb_tables": _sql("CREATE VIEW duckdb_tables AS FROM read_text('{canary}')"),
    "a table's name leads out": _sql("UPDATE _parts SET table_name = '../../../../victim' WHERE table_name = 'kernels'"),
    "a profile's id leads out": _sql(*(f"UPDATE {table} SET profile_id = '../../../../../victim'"
                                       for table in ("profiles", "_parts", "_signatures", "files"))),
    "a run leads out": _sql(*(f"UPDATE {table} SET run = '../../../../../victim'" for table in ("_runs", "_parts", "files"))),
    "a fingerprint leads out": _sql("UPDATE files SET fingerprint = '../../victim'"),
    "a view that nobody knows": _sql("CREATE VIEW mine AS FROM enable_profiling(format := 'json', save_location := '{victim}')"),
    "a schema beside main": _sql("CREATE SCHEMA temp2", "CREATE VIEW temp2.files AS FROM read_text('{canary}')"),
    "a column is generated": _sql("DROP TABLE _runs", "CREATE TABLE _runs (run VARCHAR, root VARCHAR, rank_pattern VARCHAR "
                                  "GENERATED ALWAYS AS (upper(root)))"),
    "a column has a default": _sql("ALTER TABLE _signatures ALTER signature SET DEFAULT current_setting('temp_directory')"),
    "a table has a check": _sql("DROP TABLE _runs", "CREATE TABLE _runs (run VARCHAR, root VARCHAR, rank_pattern VARCHAR, "
                                "CHECK (length(run) < 9))"),
    "a table has an index of an expression": _sql("CREATE INDEX i ON _signatures (lower(signature))"),
    "a column counts on": _sql("CREATE SEQUENCE s", "ALTER TABLE _parts ALTER row_count SET DEFAULT nextval('s')"),
    "a column has a type of its own": _sql("CREATE TYPE mood AS ENUM ('a')",
                                           "ALTER TABLE _runs ALTER rank_pattern TYPE mood USING NULL"),
    "a column has a collation": _sql("DROP TABLE _runs", "CREATE TABLE _runs (run VARCHAR COLLATE NOCASE, root VARCHAR, "
                                     "rank_pattern VARCHAR)"),
    "a column is missing": _sql("ALTER TABLE profiles DROP COLUMN tool"),
    "a column is of another type": _sql("ALTER TABLE profiles ALTER kernels TYPE VARCHAR"),
    "a column has two names in one": _sql("ALTER TABLE _runs DROP COLUMN root",
                                          'ALTER TABLE _runs RENAME run TO "run VARCHAR, root"'),
    "facts have a column of another type": _sql("ALTER TABLE _kernels_facts ADD COLUMN more VARCHAR"),
    "no table _parts": _sql("DROP TABLE _parts"),
    "no table at all but _store": _only_store,
    "two rows in _store": _sql("INSERT INTO _store FROM _store"),
    "no row in _store": _sql("DELETE FROM _store"),
    "the version of the schema is unknown": _of_schema("NULL"),
    "the schema is older, files reads a text": _both(_of_schema("3"), _as_view("files", "text")),
    "the schema is older, _runs is a view": _both(_of_schema("3"), _as_view("_runs", "profiling")),
    "the schema is older, parts lead out": _of_schema("3", "UPDATE _parts SET path = '../canary.txt'"),
    "the schema is newer": _of_schema("999"),
    "it says its rows are in parts": _sql("UPDATE _store SET materialised = false"),
    "it says its rows are unknown": _sql("UPDATE _store SET materialised = NULL"),
    "its views are of an unknown version": _sql("UPDATE _store SET views_signature = 'x'",
                                                "CREATE OR REPLACE VIEW kernel_summary AS FROM read_text('{canary}')"),
    "an answer is a view": _answered_by_a_view,
    "answers across profiles are rubbish": _across("TABLE _across AS SELECT 'profile_overview' AS view_name, '{{}}' AS question, "
                                                   "'CODE' AS code, 'rubbish'::BLOB AS rows"),
    "answers across profiles are a view": _across("VIEW _across AS SELECT 'profile_overview' AS view_name, '{{}}' AS question, "
                                                  "'CODE' AS code, content::BLOB AS rows FROM read_text('{canary}')"),
    "a log beside the catalog": _with_a_log,
    "a log that is a link": _linked(f"{CATALOG}.wal", "{world}/canary.txt"),
    "the catalog is a link": _catalog_behind_a_link,
    "the catalog is text": _beside(CATALOG, b"SELECT 1"),
    "the catalog is SQLite": _beside(CATALOG, b"SQLite format 3\0" + bytes(200)),
    "the catalog is empty": _beside(CATALOG, b""),
}
"""Of stores that hold all rows in the catalog."""
OF_PARTS: dict[str, Harm] = {
    "parts leads to the root": _linked("parts", "/"),
    "parts leads to a neighbour": _moved_behind_a_link,
    "a folder of parts is a link": _linked("parts/kernels", "{world}"),
    "a part is a link": _linked("parts/kernels/*/*.parquet", "{world}/canary.txt"),
    "a part is above": _part("../canary.txt"),
    "a part is above by way of parts": _part("parts/../../canary.txt"),
    "a part is absolute": _part("/etc/passwd"),
    "a part is a URL": _part("http://127.0.0.1:9/x.parquet"),
    "a part is a pattern": _part("parts/*/*/*.parquet"),
    "a part is nothing": _sql("UPDATE _parts SET path = NULL WHERE table_name = 'kernels'"),
    "a part ends the literal": _part("parts/kernels/x''] || read_text(''{canary}"),
    "a part is the catalog": _part(CATALOG),
    "a part is text": _other_part(lambda part: part.write_text("PAR1 no PAR1")),
    "a part has other columns": _other_part(_narrow),
    "a part is gone": _other_part(Path.unlink),
    "the view of parts reads a text": _as_view("kernels", "text"),
    "a variable leads the views away": _sql("DROP VIEW kernels", "CREATE VIEW kernels AS FROM read_text('{canary}')"),
    "it says its rows are all here": _sql("UPDATE _store SET materialised = true"),
}
"""Of stores whose large tables are views of their parts."""


def honest(folder: Path) -> None:
    """Make the two stores that all others begin as, of one tiny capture."""
    run = kineto(folder / "run" / "rank0.json", rank=0).parent
    for name, materialise in (("whole", True), ("parts", False)):
        nl.ingest(run, store=folder / name, materialise=materialise, jobs=1).close()


def make(name: str, stores: Path, world: Path) -> Path:
    """Make the store of that name at world/store, with what it may not touch beside it. stores: where `honest` made its own."""
    base = "whole" if name in HOSTILE else "parts"
    world.mkdir(parents=True, exist_ok=True)
    for file in ("canary.txt", "victim.txt"):
        (world / file).write_text(f"{CANARY}\n")
    store = Path(shutil.copytree(stores / base, world / "store"))
    {**HOSTILE, **OF_PARTS}[name](store)
    return store


if __name__ == "__main__":
    target = Path(sys.argv[1])
    honest(target / "honest")
    for each in (*HOSTILE, *OF_PARTS):
        make(each, target / "honest", target / each.replace("/", "_"))
