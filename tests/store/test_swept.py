"""Sweeps of one large profile (store/swept.py): the rows that the views have in SQL, for rows of every kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import nsightlens as nl
from nsightlens.schema import TABLES, TEMPLATE, templates_of
from nsightlens.statistics import sweeps
from nsightlens.store import answers, swept
from nsightlens.store.store import CATALOG
from nsightlens.views import registry
from tests.catalogs import catalog
from tests.places import ROOT, sqlite_captures

SWEPT = ["_gpu_bins", "_gpu_load", "_gpu_states", "_idle_by_call", "_queue_lengths", "_step_states", "_steps", "idle_breakdown"]
CAPTURES = [*sqlite_captures(), *sorted(ROOT.parent.glob("shared/data/kineto/[!n]*.json*"))]
BY_STREAM = {"_queue_lengths", "idle_breakdown"}
_MIXED = "(i * 2654435761 + {seed} * 40503 + {salt} * 97) % 1000003"
"""A well-mixed number of row i."""
FILL = """
INSERT INTO profiles BY NAME SELECT 'r' AS run, 'nsys' AS tool, 'P' AS profile_id;
INSERT INTO processes BY NAME SELECT 'r' AS run, 'P' AS profile_id, 'P:' || i AS process_id FROM range(3) AS t(i);
INSERT INTO devices BY NAME SELECT 'r' AS run, 'P' AS profile_id, 'P:' || i AS process_id, 0 AS device, 'gpu' || i AS device_id,
    108 AS sm_count FROM range(2) AS t(i);
INSERT INTO api_calls BY NAME SELECT 'r' AS run, 'nsys' AS tool, 'P' AS profile_id, 'P:' || {a} % 3 AS process_id,
    CASE {a} % 3 WHEN 1 THEN {a} % 2 ELSE 0 END AS window_index, {b} % 2 AS thread, 1000 + i AS launch_id, {c} % 9000 AS start_ns,
    CASE WHEN {d} % 11 > 0 THEN {d} % 200 * ({d} % 3) END AS duration_ns, 'call' || {b} % 3 AS name FROM range({rows}) AS t(i);
INSERT INTO kernels BY NAME SELECT 'r' AS run, 'nsys' AS tool, 'P' AS profile_id, a.process_id, a.window_index, i AS kernel_id,
    'gpu' || a.process_id AS device_id, 0 AS device, CASE WHEN {c} % 13 > 0 THEN a.start_ns + {c} % 300 END AS start_ns,
    CASE WHEN {d} % 17 > 0 THEN {d} % 90 - 3 END AS duration_ns, CASE WHEN {d} % 5 = 0 THEN 2 END AS overrun_ns,
    CASE WHEN {a} % 7 > 0 THEN launch_id END AS launch_id, CASE {b} % 4 WHEN 0 THEN 'collective' WHEN 1 THEN 'gemm' END AS family,
    {b} % 400 AS grid_x, 1 AS grid_y, 1 AS grid_z, CASE {b} % 5 WHEN 0 THEN 0.25 WHEN 1 THEN 'nan'::DOUBLE END AS blocks_per_sm,
    'key' || {b} % 3 AS kernel_key, CASE {a} % 3 WHEN 0 THEN {b} % 2 = 0 END AS tensor_cores, 'G' || {c} % 2 AS gpu,
    CASE WHEN {b} % 3 > 0 THEN {a} % 4 * 12.5 END AS estimated_occupancy_pct, CASE WHEN {d} % 3 > 0 THEN i END AS op_range_id,
    {b} % 2 AS context, CASE WHEN {c} % 4 > 0 THEN {c} % 4 END AS stream
    FROM range({rows}) AS t(i) JOIN api_calls AS a ON a.launch_id = 1000 + {a} % {rows};
INSERT INTO kernels BY NAME SELECT 'r' AS run, 'nsys' AS tool, 'P' AS profile_id, process_id, window_index,
    {rows} + i AS kernel_id, 'gpu' || process_id AS device_id, i % 2 AS context, 1 AS stream, 20000 + i * 20000 AS start_ns,
    100 AS duration_ns, launch_id FROM range(6) AS t(i) JOIN api_calls AS a ON a.launch_id = 1000 + i;
INSERT INTO memory_ops BY NAME SELECT 'r' AS run, 'nsys' AS tool, 'P' AS profile_id, 'P:' || {a} % 3 AS process_id,
    0 AS window_index, i AS memory_op_id, 'gpuP:' || {a} % 3 AS device_id, {c} % 9000 AS start_ns, {d} % 400 AS duration_ns,
    CASE {b} % 3 WHEN 0 THEN 'memset' ELSE 'memcpy' END AS kind, CASE {b} % 6 WHEN 1 THEN 'allgather' END AS collective,
    1000000 + i AS launch_id, {b} % 2 AS context, {c} % 4 AS stream
    FROM range({rows} // 4) AS t(i);
INSERT INTO ranges BY NAME SELECT 'r' AS run, 'nsys' AS tool, 'P' AS profile_id, 'P:' || i % 2 AS process_id, 0 AS window_index,
    i AS range_id, 500 + i * 37 AS start_ns, CASE WHEN i % 9 > 0 THEN {d} % 90 END AS duration_ns, 'step' AS kind, i AS step
    FROM range({rows} // 8) AS t(i) WHERE {a} % 5 > 0;
INSERT INTO ranges BY NAME SELECT 'r' AS run, 'nsys' AS tool, 'P' AS profile_id, 'P:' || {b} % 3 AS process_id, 0 AS window_index,
    100000 + i AS range_id, {c} % 9500 AS start_ns, {d} % 300 AS duration_ns, 'operator' AS kind,
    CASE {b} % 3 WHEN 0 THEN 'nccl:all_reduce' WHEN 1 THEN 'enumerate(DataLoader)#1.__next__' ELSE 'aten::mm' END AS name
    FROM range({rows} // 4) AS t(i)
"""


def _filled(seed: int, rows: int = 800) -> duckdb.DuckDBPyConnection:
    """Return a catalog with a profile of three processes: one in two windows, one without steps; a row of each odd kind."""
    connection = catalog()
    mixed = {name: _MIXED.format(seed=seed, salt=salt) for salt, name in enumerate("abcd")}
    connection.execute(FILL.format(rows=rows, **mixed))
    return connection


def _parts(connection: duckdb.DuckDBPyConnection, folder: Path) -> dict[str, Path]:
    """Write the tables as an ingest has them: with the number of each row's template, and the templates."""
    parts = {}
    for name in ("kernels", "memory_ops", "api_calls", "ranges", "profiles", "graph_executions"):
        if not connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]:
            continue
        parts[name] = folder / f"{name}.parquet"
        if not TABLES[name].varying:
            connection.execute(f"COPY {name} TO '{parts[name]}'")
            continue
        common = ", ".join(column.name for column in TABLES[name].columns if column.name not in ("run", *TABLES[name].varying))
        connection.execute(f"CREATE OR REPLACE TEMP TABLE part AS "
                           f"SELECT *, (dense_rank() OVER (ORDER BY {common}) - 1)::INTEGER AS {TEMPLATE} FROM {name}")
        connection.execute(f"COPY part TO '{parts[name]}'")
        parts[templates_of(name)] = folder / f"{name}_templates.parquet"
        connection.execute(f"COPY (SELECT DISTINCT {common}, {TEMPLATE} FROM part) TO '{parts[templates_of(name)]}'")
    return parts


def _rows(connection: duckdb.DuckDBPyConnection, name: str) -> list[tuple[object, ...]]:
    view = registry.load()[name]
    return sorted(connection.execute(f"FROM {name}{'()' if view.is_macro else ''}").fetchall(), key=repr)


def _swept_rows(connection: duckdb.DuckDBPyConnection, parts: dict[str, Path]) -> dict[str, list[tuple[object, ...]]]:
    found = {}
    for name, table in swept.sweep(connection, parts).items():
        columns = [column for column, _ in registry.load()[name].columns]
        found[name] = sorted((tuple(row[column] for column in columns) for row in table.to_pylist()), key=repr)
    return found


@pytest.fixture
def profile(request: pytest.FixtureRequest) -> Iterator[duckdb.DuckDBPyConnection]:
    with closing(_filled(getattr(request, "param", 0))) as connection:
        yield connection


@pytest.mark.parametrize(("profile", "stretch"), [(0, None), (1, 7), (2, None), (3, 7)], indirect=["profile"])
def test_a_sweep_gives_what_the_views_compute(
    profile: duckdb.DuckDBPyConnection, stretch: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    if stretch:
        monkeypatch.setattr(sweeps, "_STRETCH", stretch)
    found = _swept_rows(profile, _parts(profile, tmp_path))
    assert sorted(found) == SWEPT
    for name in SWEPT:
        assert len(found[name]) > 2
        assert found[name] == _rows(profile, name), name


def test_columns_are_those_of_the_views(profile: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    for name, table in swept.sweep(profile, _parts(profile, tmp_path)).items():
        assert sorted(table.column_names) == sorted(column for column, _ in registry.load()[name].columns), name


def test_processes_that_share_a_gpu_are_united_in_sql(profile: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    profile.execute("UPDATE kernels SET device_id = 'gpu'")
    found = _swept_rows(profile, _parts(profile, tmp_path))
    assert sorted(found) == [name for name in SWEPT if name != "_gpu_states"]
    assert found["_gpu_load"] == _rows(profile, "_gpu_load")


def test_of_work_that_begins_at_once_what_ends_first_ends_the_gap(
    profile: duckdb.DuckDBPyConnection, tmp_path: Path,
) -> None:
    """Then kernels before copies, then the lower id. A gap of 30,000 ns is no kernel wait, one of 29,999 ns is."""
    work = {"kernels": """(99999, 200000, 10, NULL), (100000, 300000, 9, 1000), (100001, 300000, 5, NULL),
                (100002, 300000, 5, 1001), (100004, 400000, 7, NULL), (100003, 400000, 7, 1001),
                (100005, 430007, 1, 1001), (100006, 460007, 1, 1001)""",
            "memory_ops": "(100000, 300000, 5, 1000), (100001, 400000, 7, 1000)"}
    for table, rows in work.items():
        profile.execute(f"INSERT INTO {table} ({table.removesuffix('s')}_id, start_ns, duration_ns, launch_id) VALUES {rows}")
        profile.execute(f"UPDATE {table} SET run = 'r', tool = 'nsys', profile_id = 'P', device_id = 'g' WHERE run IS NULL")
    profile.execute("UPDATE api_calls SET start_ns = 350000, duration_ns = 5 WHERE launch_id = 1000")
    found = swept.sweep(profile, _parts(profile, tmp_path))["idle_breakdown"].to_pylist()
    assert [(row["host_wait_ns"], row["kernel_wait_ns"], row["other_ns"], row["unlinked_ns"])
            for row in found if row["device_id"] == "g"] == [(0, 29_999, 99_991 + 30_000, 99_990)]
    assert _swept_rows(profile, _parts(profile, tmp_path))["idle_breakdown"] == _rows(profile, "idle_breakdown")


def test_work_may_last_for_more_than_31_bits_of_ns(profile: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    profile.execute("UPDATE kernels SET duration_ns = 3000000000, overrun_ns = NULL WHERE kernel_id = 801")
    found = _swept_rows(profile, _parts(profile, tmp_path))
    assert max(row["busy_ns"] for row in profile.sql("FROM idle_breakdown()").to_arrow_table().to_pylist()) > 1 << 31
    for name in BY_STREAM:
        assert found[name] == _rows(profile, name), name


def test_idle_breakdown_has_every_class_here_and_its_order(profile: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    profile.execute("UPDATE processes SET rank = 9 - right(process_id, 1)::INTEGER")
    found = swept.sweep(profile, _parts(profile, tmp_path))["idle_breakdown"]
    columns = [column for column, _ in registry.load()["idle_breakdown"].columns]
    assert found.select(columns).to_pylist() == profile.sql("FROM idle_breakdown()").to_arrow_table().select(columns).to_pylist()
    assert all(sum(found[name].to_pylist()) for name in ("host_wait_ns", "kernel_wait_ns", "other_ns", "unlinked_ns"))


def test_rows_may_stand_in_any_order(profile: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    parts = _parts(profile, tmp_path)
    expected = _swept_rows(profile, parts)
    profile.execute(f"COPY (FROM '{parts['kernels']}' ORDER BY kernel_id DESC) TO '{tmp_path / 'turned.parquet'}'")
    assert _swept_rows(profile, parts | {"kernels": tmp_path / "turned.parquet"}) == expected


def test_ids_of_work_that_are_far_apart_leave_streams_to_sql(profile: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    profile.execute("UPDATE kernels SET kernel_id = 1000000000000 WHERE kernel_id = 0")
    assert sorted(_swept_rows(profile, _parts(profile, tmp_path))) == [name for name in SWEPT if name not in BY_STREAM]


@pytest.mark.parametrize("change", [
    "INSERT INTO graph_executions BY NAME SELECT 'P' AS profile_id, 'nsys' AS tool, 1 AS start_ns, 2 AS duration_ns",
    "UPDATE profiles SET tool = 'ncu'",
    "INSERT INTO profiles BY NAME SELECT 'r' AS run, 'nsys' AS tool, 'Q' AS profile_id",
    "UPDATE ranges SET start_ns = 600, duration_ns = 1 WHERE kind = 'step'",
    "UPDATE api_calls SET duration_ns = -1 WHERE launch_id = 1000",
    "UPDATE api_calls SET launch_id = 1000000000000000 WHERE launch_id = 1000",
    "UPDATE api_calls SET start_ns = 5000000000000000000 WHERE launch_id = 1000",
], ids=["graphs", "ncu", "two profiles", "steps at once", "a call that ends before it begins", "sparse ids", "too long"])
def test_what_is_not_fit_is_left_to_sql(change: str, tmp_path: Path) -> None:
    with closing(_filled(0)) as connection:
        connection.execute(change)
        assert swept.sweep(connection, _parts(connection, tmp_path)) == {}


@pytest.mark.parametrize("table", ["kernels", "api_calls", "ranges", "memory_ops"])
def test_a_profile_without_rows_of_a_kind(table: str, tmp_path: Path) -> None:
    with closing(_filled(1)) as connection:
        connection.execute(f"DELETE FROM {table}")
        found = _swept_rows(connection, _parts(connection, tmp_path))
        assert sorted(found) == SWEPT
        for name in found:
            assert found[name] == _rows(connection, name), name


@pytest.mark.captures
@pytest.mark.parametrize("capture", CAPTURES, ids=[path.name.split(".")[0] for path in CAPTURES])
def test_a_sweep_of_a_real_capture_gives_what_the_views_compute(capture: Path, tmp_path: Path) -> None:
    nl.ingest(capture, store=tmp_path / "store", answers=False, jobs=1).close()
    sources: dict[str, dict[str, list[Path]]] = defaultdict(dict)
    with closing(duckdb.connect(tmp_path / "store" / CATALOG, read_only=True)) as made:
        for table, run, path in made.execute("SELECT table_name, run, path FROM _parts").fetchall():
            sources[table].setdefault(run, []).append(tmp_path / "store" / path)
    with answers._over_parts(tmp_path / "catalog", sources, None, "1GB") as connection:
        found = _swept_rows(connection, answers._of_one_profile(sources))
        for name, rows in found.items():
            assert rows == _rows(connection, name), name
    assert found.keys() >= BY_STREAM or not found
