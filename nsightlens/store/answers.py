"""Answers: the rows of each view of scope profile at its default parameters, computed once per profile and kept.

A kept view has its rows in the table _answer_NAME, with the column _place for their order within a profile. NAME itself then
reads that table, and where a parameter has another value it asks _computed_NAME, which is the view as its file has it. So plain
DuckDB and all views that require this one read the answer, too. _answers says which view is answered for which profile, under
which signature: a view is read from its answers only where that is today's for every profile of the store, else it is computed.
Analyses are no objects of the catalog: their answers are for Store.view alone.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa

from nsightlens import analyses
from nsightlens.errors import NsightlensError
from nsightlens.schema import TABLES
from nsightlens.store import catalog, catalog_opening, template
from nsightlens.views import registry
from nsightlens.views.header import PACKAGE, View
from nsightlens.views.signature import digest, signatures

MEMORY = "200MB"
"""What DuckDB may take while it computes answers: 5 million launches fit; what does not goes to disk."""
WORTH_IT = 1_000_000
"""Events (launches, calls, ranges) from which on a store is answered: below, to compute what is asked costs less than to keep it
all. A profile of as many is a batch of its own."""
EVENTS = ("kernels", "memory_ops", "api_calls", "ranges")
SELDOM = frozenset({
    "_overlap_by_name", "cpu_sample_summary", "cpu_sample_tree", "critical_path_summary", "exposed_communication",
    "frequent_kernel_sequences", "gpu_time_util", "idle_by_range", "idle_causes", "kernel_breakdown",
    "launch_statistics", "nccl_overlap", "serving_summary", "stack_summary", "stack_tree"})
"""Views that neither `summary` nor `compare` reads and that take seconds per million launches, or have as many rows as there are
frames of stacks: kept where that is asked for."""
MEANWHILE = frozenset({"_step_states"})
"""Views that are computed for others and not kept: of what reads them, the rows are kept."""
PLACE = "_place"
BY = ("run", "tool", "rank", "profile_id", PLACE)
"""How the rows of several profiles are ordered, by those columns of these that there are."""
_SWEEPS = ("intervals/disjoint.py", "intervals/coverage.py", "intervals/order.py", "statistics/sweeps.py", "store/gpu_bins.py",
           "store/host_steps.py", "store/profile_parts.py", "store/stream_work.py", "store/swept.py")
_TABLE = "_answer_{}"
_COMPUTED = "_computed_{}"
_ANSWERED = """
WITH today AS (SELECT unnest(?) AS view_name, unnest(?) AS signature),
    of_profile AS (SELECT profile_id, list(view_name ORDER BY view_name) AS views
                   FROM catalog._answers JOIN today USING (view_name, signature) GROUP BY profile_id)
SELECT views, list(profile_id) FROM of_profile GROUP BY views
"""
Sources = Mapping[str, Mapping[str, Sequence[Path]]]
"""Table -> run -> its parts."""


def events(connection: duckdb.DuckDBPyConnection) -> int:
    """Return how many events (of EVENTS) the store holds."""
    query = "SELECT coalesce(sum(row_count), 0)::BIGINT FROM catalog._parts WHERE table_name IN (SELECT unnest(?))"
    ((count,),) = connection.execute(query, [EVENTS]).fetchall()
    return int(count)


@cache
def _of_profiles() -> dict[str, View]:
    """Return the views that are computed for a profile alone, each after those it requires; analyses last."""
    every = {**registry.load(), **registry.analyses()}
    return {name: view for name, view in every.items() if view.scope == "profile"}


@cache
def answerable() -> dict[str, View]:
    """Return the views that are kept, private ones included."""
    return {name: view for name, view in _of_profiles().items() if name not in MEANWHILE}


@cache
def _signatures() -> dict[str, str]:
    """Return the signature of each view, and the code of the sweeps: an answer may have its rows from them."""
    found = signatures({**registry.load(), **{name: view for name, view in _of_profiles().items() if not view.sql}})
    code = [(PACKAGE / name).read_text(encoding="utf-8") for name in _SWEEPS]
    return {name: digest([found[name], *code]) for name in _of_profiles()}


def batches(names: Sequence[str], events: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield profiles in batches, the largest first; small ones together: DuckDB spends more on a view than on their rows.

    Small ones stay in their order, in which those that share parts follow each other.
    """
    batch: list[str] = []
    held = 0
    for name in sorted(names, key=lambda name: -events[name] if events[name] >= WORTH_IT else 0):
        batch.append(name)
        held += events[name]
        if held >= WORTH_IT:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def compute(
    sources: Sources, names: Collection[str], target: Path, threads: int, only: Sequence[str] | None, *,
    on_answer: Callable[[], None] = lambda: None,
) -> None:
    """Make `target`, a DuckDB file with the answers of views for all profiles of the parts. Raises duckdb.Error, OSError.

    only: the profiles that are meant, where the parts hold rows of others too. on_answer: called after each of `names`.
    A view that cannot be computed (for want of memory, say) is left out: it is computed when it is asked for. The file appears
    by rename; it is made where DuckDB can lock it.
    """
    from nsightlens.store import swept  # whoever only asks does without

    with TemporaryDirectory(prefix="nsightlens-") as folder:
        made = Path(folder) / target.name
        with _over_parts(made, sources, only) as connection:
            connection.execute(f"SET threads = {threads}")
            rows = swept.sweep(connection, {} if only else _of_one_profile(sources))
            for name, view in _of_profiles().items():
                if name in names or name in MEANWHILE:
                    with contextlib.suppress(duckdb.Error, pa.ArrowException, NsightlensError), catalog.transaction(connection):
                        _answer(connection, view, rows.get(name))
                if name in names:
                    on_answer()
            for name in MEANWHILE:
                connection.execute(f"DROP TABLE IF EXISTS {_TABLE.format(name)}")
                connection.execute("DELETE FROM _answers WHERE view_name = ?", [name])
            connection.execute("CHECKPOINT")
        draft = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
        shutil.copyfile(made, draft)
        draft.replace(target)


@contextlib.contextmanager
def _over_parts(
    made: Path, sources: Sources, only: Sequence[str] | None, memory: str = MEMORY,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to a catalog at `made` whose tables are views of the parts."""
    template.place(made, made.parent, materialise=False)
    parts = [path for by_run in sources.values() for paths in by_run.values() for path in paths]
    with contextlib.closing(catalog_opening.open_for_writing(made, made.parent, memory, parts, is_blank=True)) as connection:
        connection.execute("SET preserve_insertion_order = true")
        connection.execute("SET checkpoint_threshold = '16MB'")  # one per view would write all views of the catalog each time
        with catalog.transaction(connection):
            _show_parts(connection, sources, only)
        yield connection


def _show_parts(connection: duckdb.DuckDBPyConnection, sources: Sources, only: Sequence[str] | None) -> None:
    """Make each table that has parts a view of them, or of the rows of some profiles in them."""
    which = f" WHERE profile_id IN ({', '.join(catalog.literal(profile) for profile in only)})" if only else ""
    for table, by_run in sources.items():
        if table not in TABLES:
            continue
        columns = ", ".join(f'"{column.name}"' for column in TABLES[table].columns if column.name != "run")
        parts = " UNION ALL ".join(
            f"SELECT {catalog.literal(run)} AS run, {columns} FROM read_parquet([{', '.join(_text(p) for p in paths)}], "
            f"hive_partitioning = false, union_by_name = true){which}" for run, paths in by_run.items())
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"CREATE VIEW {table} AS {parts}")


def _of_one_profile(sources: Sources) -> dict[str, Path]:
    """Return the parts by table where they are of one profile; of several, which SQL takes together, none."""
    found = {table: [path for paths in by_run.values() for path in paths] for table, by_run in sources.items()}
    return {table: paths[0] for table, paths in found.items()} if all(len(paths) == 1 for paths in found.values()) else {}


def _text(path: Path) -> str:
    return catalog.literal(str(path))


def _answer(connection: duckdb.DuckDBPyConnection, view: View, rows: pa.Table | None) -> None:
    """Compute one view into its table, note it, and let the views after it read that. rows: what a sweep has found already."""
    began = time.perf_counter()
    table = _TABLE.format(view.name)
    asked = f"{view.name}()" if view.is_macro else view.name
    if rows is not None:
        # Not AS SELECT … LIMIT 0: DuckDB 2.0 with several threads then finds no row of more than a row group in this transaction.
        columns = connection.execute(f"DESCRIBE FROM {asked}").fetchall()
        listed = ", ".join(f'"{name}" {type_}' for name, type_, *_ in columns)
        connection.execute(f"CREATE TABLE {table} ({listed}, _place BIGINT)")
        connection.register("incoming", rows)
        connection.execute(f"INSERT INTO {table} BY NAME SELECT *, row_number() OVER () AS _place FROM incoming")
        connection.unregister("incoming")
    elif view.sql:
        place = "0::BIGINT" if view.name.startswith("_") else "row_number() OVER ()"
        connection.execute(f"CREATE TABLE {table} AS SELECT *, {place} AS _place FROM {asked}")
    else:
        found = analyses.run(view, {}, lambda sql, values: connection.sql(sql, params=values or None).to_arrow_table())
        connection.register("incoming", found)
        connection.execute(f"CREATE TABLE {table} AS SELECT *, row_number() OVER () AS _place FROM incoming")
        connection.unregister("incoming")
    connection.execute(
        f"INSERT INTO _answers SELECT $1, profile_id, $2, (SELECT count(*) FROM {table} AS a "
        "WHERE a.profile_id = p.profile_id), $3 FROM profiles AS p",
        [view.name, _signatures()[view.name], time.perf_counter() - began])
    if view.sql:
        _read(connection, view)


def _read(connection: duckdb.DuckDBPyConnection, view: View) -> None:
    """Let a view read its answers."""
    if view.is_macro:
        registry.execute(connection, view, computing(view))
    connection.execute(reading(view))


def computing(view: View) -> str:
    """Return the statement that creates _computed_NAME, a macro as its file has it."""
    return view.sql.replace(f"CREATE MACRO {view.name}", f"CREATE MACRO {_COMPUTED.format(view.name)}", 1)


def reading(view: View, database: str = "") -> str:
    """Return the statement that creates or replaces a view by one of its answers. database: where these are, with its point."""
    if not view.is_macro:
        return f"CREATE OR REPLACE VIEW {view.name} AS FROM {rows_of(view, database)}"
    shown = [(param.name, registry.literal(param.default)) for param in view.params]
    face = ", ".join(f"{name} := {default}" for name, default in shown)
    given = ", ".join(f"{name} := {name}" for name, _ in shown)
    default = " AND ".join(f"{name} IS NOT DISTINCT FROM {default}" for name, default in shown)
    return (f"CREATE OR REPLACE MACRO {view.name}({face}) AS TABLE FROM {rows_of(view, database)} WHERE {default} "
            f"UNION ALL SELECT * FROM {_COMPUTED.format(view.name)}({given}) WHERE NOT ({default})")


def _read_no_more(connection: duckdb.DuckDBPyConnection, view: View) -> None:
    """Let a view compute its rows again."""
    if view.is_macro:
        connection.execute(f"DROP MACRO TABLE {_COMPUTED.format(view.name)}")
    registry.execute(connection, view, view.sql.replace("CREATE ", "CREATE OR REPLACE ", 1))


def attach(connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> list[str]:
    """Attach files of answers to a connection, outside of any transaction; return the names that they have there."""
    names = [f"answered_{number}" for number in range(len(files))]
    for name, file in zip(names, files, strict=True):
        connection.execute(f"ATTACH {_text(file)} AS {name} (READ_ONLY)")
    return names


def take_in(connection: duckdb.DuckDBPyConnection, attached: Sequence[str]) -> None:
    """Move the answers of attached files into the catalog, and have each view read or compute as these are complete or not."""
    _drop_outdated(connection)
    for name in attached:
        again = f"SELECT view_name, list(profile_id) FROM _answers SEMI JOIN {name}._answers USING (view_name, profile_id)"
        for view, profiles in connection.execute(f"{again} GROUP BY view_name ORDER BY ALL").fetchall():
            connection.execute(f"DELETE FROM {_TABLE.format(view)} WHERE profile_id IN (SELECT unnest(?))", [profiles])
            connection.execute("DELETE FROM _answers WHERE view_name = ? AND profile_id IN (SELECT unnest(?))", [view, profiles])
        there = set(_tables(connection))
        for (view,) in connection.execute(f"SELECT DISTINCT view_name FROM {name}._answers ORDER BY ALL").fetchall():
            table = _TABLE.format(view)
            into = f"INSERT INTO {table}" if table in there else f"CREATE TABLE {table} AS"
            connection.execute(f"{into} FROM {name}.{table}")
        connection.execute(f"INSERT INTO _answers FROM {name}._answers")
    _show(connection)


def forget(connection: duckdb.DuckDBPyConnection, profiles: Sequence[str]) -> None:
    """Drop the answers of profiles."""
    for table in ["_answers", *_tables(connection)]:
        connection.execute(f"DELETE FROM {table} WHERE profile_id IN (SELECT unnest(?))", [list(profiles)])


def _drop_outdated(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop what was answered by views of another signature."""
    held = connection.execute("SELECT DISTINCT view_name, signature FROM _answers ORDER BY ALL").fetchall()
    for view in sorted({view for view, signature in held if _signatures().get(view) != signature}):
        connection.execute(f"DROP TABLE IF EXISTS {_TABLE.format(view)}")
        connection.execute("DELETE FROM _answers WHERE view_name = ?", [view])


def _show(connection: duckdb.DuckDBPyConnection) -> None:
    """Have each view read its answers where they are complete, and only there."""
    kept = complete(connection)
    views = registry.load()
    for name in sorted((kept ^ _reading(connection)) & views.keys()):
        (_read if name in kept else _read_no_more)(connection, views[name])
        registry.document(connection, views[name])


def _tables(connection: duckdb.DuckDBPyConnection) -> list[str]:
    query = ("SELECT table_name FROM system.main.duckdb_tables() WHERE database_name = 'catalog' "
             "AND starts_with(table_name, '_answer_') ORDER BY ALL")
    return [name for (name,) in connection.execute(query).fetchall()]


def _reading(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the views that read their answers now."""
    query = ("SELECT view_name FROM system.main.duckdb_views() WHERE database_name = 'catalog' AND NOT internal "
             f"AND contains(sql, '{_TABLE.format('')}')")
    prefix = _COMPUTED.format("")
    macros = {name.removeprefix(prefix) for name in catalog.macros(connection) if name.startswith(prefix)}
    return macros.union(name for (name,) in connection.execute(query).fetchall())


def complete(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the views that are answered, by their definition of today, for every profile of the store."""
    query = """SELECT view_name, any_value(signature) FROM catalog._answers SEMI JOIN catalog.profiles USING (profile_id)
        GROUP BY view_name HAVING count(*) = (SELECT count(*) FROM catalog.profiles)"""
    return {view for view, signature in connection.execute(query).fetchall() if _signatures().get(view) == signature}


def kept(connection: duckdb.DuckDBPyConnection, view: str) -> tuple[int, int, float] | None:
    """Return for how many profiles a view is kept, with how many rows, and the seconds that these took; None where it is not."""
    if view not in complete(connection):
        return None
    query = "SELECT count(*), sum(row_count)::BIGINT, sum(seconds) FROM catalog._answers WHERE view_name = ?"
    ((profiles, rows, seconds),) = connection.execute(query, [view]).fetchall()
    return profiles, rows, seconds


def answered(connection: duckdb.DuckDBPyConnection) -> dict[str, set[str]]:
    """Return, for each profile that has any, the views that are answered for it by their definition of today."""
    if not connection.execute("FROM catalog._answers LIMIT 1").fetchall():
        return {}
    today = _signatures()
    alike = connection.execute(_ANSWERED, [list(today), list(today.values())]).fetchall()
    return {profile: set(views) for views, profiles in alike for profile in profiles}


def rows_of(view: View, database: str = "") -> str:
    """Return the SQL for the answers of a view, in its order; of a private one, which only views read, in none."""
    table = database + _TABLE.format(view.name)
    if view.name.startswith("_"):
        return f"(SELECT * EXCLUDE (_place) FROM {table})"
    columns = {name for name, _ in view.columns}
    by = ", ".join(name for name in BY if name in columns or name == PLACE)
    return f"(SELECT * EXCLUDE (_place) FROM {table} ORDER BY {by})"
