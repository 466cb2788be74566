"""In a small store the views that several others read are computed once for a connection; no row depends on it."""

from __future__ import annotations

import warnings
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens.errors import UsageError
from nsightlens.store import shared_views, user_cache
from tests.catalogs import asking, catalog
from tests.other_version import OtherVersion

pytestmark = pytest.mark.usefixtures("cache")  # rows that are kept are not computed
TEMPORARY = "SELECT table_name FROM duckdb_tables() WHERE temporary ORDER BY ALL"


def _computed(store: nl.Store) -> set[str]:
    return set(store.sql(TEMPORARY)["table_name"].to_pylist())


def _every_view(path: Path) -> dict[str, pa.Table | str]:
    rows: dict[str, pa.Table | str] = {}
    with nl.open(path) as store, warnings.catch_warnings():
        warnings.simplefilter("ignore", nl.BalanceWarning)
        for name in store.views:
            try:
                rows[name] = store.view(name)
            except UsageError as exc:  # it wants a parameter
                rows[name] = str(exc)
    return rows


def test_every_view_has_the_same_rows_with_and_without(bundled_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_cache, "folder", lambda *_: None)
    shared = _every_view(bundled_store)
    monkeypatch.setattr(shared_views, "MOST_ROWS", -1)
    alone = _every_view(bundled_store)
    assert sum(isinstance(rows, pa.Table) and rows.num_rows > 0 for rows in shared.values()) > len(shared) / 2
    for name, rows in shared.items():
        assert rows == alone[name], f"{name} has other rows where {shared_views.__name__} computed what it reads"


def test_only_what_a_question_reads_is_computed(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store:
        store.view("busy_time")
        first = _computed(store)
        assert "_gpu_work" in first and "_ncu_launch" not in first
        store.view("ncu_by_config")
        assert _computed(store) > {"_ncu_launch", *first}


def test_a_macro_is_read_through(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store:
        store.view("execution_summary")  # reads step_breakdown(), which reads _steps
        assert {"_steps", "_gpu_work"} <= _computed(store)


def test_a_large_store_computes_nothing_ahead(bundled_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_views, "MOST_ROWS", 1)
    with nl.open(bundled_store) as store:
        store.view("ncu_by_config")
        assert _computed(store) == set()


def test_what_a_user_asks_in_sql_stands_alone(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store:
        assert store.sql("FROM ncu_by_config").num_rows > 0
        assert _computed(store) == set()


def test_a_view_of_the_users_own_reads_what_is_computed(bundled_store: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.sql").write_text(
        "-- Launches.\n-- @scope run\n-- @requires timeline_kernels\n-- @column launches how many\n"
        "CREATE VIEW mine AS SELECT count(*) AS launches FROM timeline_kernels;\n")
    with nl.open(bundled_store, views=tmp_path) as store:
        ((launches,),) = store.sql("SELECT count(*) FROM timeline_kernels").to_pandas().to_numpy().tolist()
        assert store.view("mine")["launches"].to_pylist() == [launches] and launches > 0
        assert "timeline_kernels" in _computed(store)


def test_a_view_that_cannot_be_computed_says_why_when_it_is_read() -> None:
    connection = catalog()
    connection.execute("DROP TABLE metric_summaries")
    with pytest.raises(duckdb.CatalogException, match="metric_summaries"):
        asking(connection)("FROM ncu_by_config", ())
    assert ("_ncu_launch",) not in connection.execute(TEMPORARY).fetchall()


def test_views_of_another_version_are_asked_as_they_are(bundled_store: Path, tmp_path: Path) -> None:
    other = OtherVersion(tmp_path).edit("sql/kernels/timeline_kernels.sql", "SELECT k.*", "SELECT  k.*")
    done = other.run("show", "kernel_by_rank", "--store", bundled_store)
    assert done.returncode == 0 and "another version" not in done.stderr, done.stderr
