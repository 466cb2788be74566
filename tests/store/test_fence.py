"""The fence: what Store.sql lets pass, that nothing is written, and where DuckDB may spill."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.errors import NsightlensError, StoreError, UsageError
from nsightlens.pages.arrow import rows_of
from nsightlens.store import catalog_opening
from nsightlens.store.store import Store
from tests.captures import kineto

_PIVOT = "PIVOT (SELECT 1 AS a, 2 AS b) ON a USING sum(b)"


@pytest.fixture(scope="module", params=[True, False], ids=["materialised", "parts"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("fence")
    return nl.ingest(kineto(folder / "run" / "a.json").parent, folder / "store", materialise=request.param)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("query", [
    "SELECT count(*) FROM kernels", "FROM kernels", "VALUES (1)", "DESCRIBE kernels", "SHOW TABLES", "SUMMARIZE kernels",
    "EXPLAIN FROM kernels", "EXPLAIN ANALYZE FROM kernels", "/* é */ explain (format json) from kernels", "EXPLAIN (SELECT 1)",
    _PIVOT, f"WITH q AS (FROM range(2)) {_PIVOT}", f"EXPLAIN {_PIVOT.replace('ON a', 'ON a IN (1)')}",
])
def test_queries_pass(store: Store, query: str) -> None:
    assert store.sql(query).num_columns > 0


@pytest.mark.parametrize("statement", [
    "COPY (SELECT 42) TO '{part}'", "EXPLAIN ANALYZE COPY (SELECT 42) TO '{part}'",
    "EXPLAIN (ANALYZE, FORMAT json) COPY (SELECT 42) TO '{part}'", "explain analyze -- x\n COPY (SELECT 42) TO '{part}'",
    "CREATE TEMP TABLE t AS SELECT 1", "EXPLAIN ANALYZE CREATE TEMP TABLE t AS SELECT 1", "SET VARIABLE x = 1",
    "EXPLAIN ANALYZE SET VARIABLE x = 1", "EXPLAIN ANALYZE DELETE FROM files", "DROP TABLE files", "ATTACH '{part}' AS x",
    "COPY ({pivot}) TO '{part}'", "CREATE TABLE t AS {pivot}", "IMPORT DATABASE '{part}'", "PRAGMA version", "CALL checkpoint()",
    "SELECT 1; SELECT 2", "", "EXPLAIN",
])
def test_nothing_else_passes_and_nothing_is_written(store: Store, statement: str) -> None:
    part = next((store.path / "parts" / "kernels").rglob("*.parquet"))
    before = contents(store.path)
    with pytest.raises(UsageError):
        store.sql(statement.format(part=part, pivot=_PIVOT))
    assert contents(store.path) == before


@pytest.mark.parametrize(("statement", "is_of_files"), [
    ("DROP TABLE kernels", False), ("EXPLAIN ANALYZE DELETE FROM files", False), ("CREATE TEMP TABLE t AS SELECT 1", False),
    ("COPY kernels TO 'x.csv'", True), ("EXPLAIN ANALYZE COPY kernels TO 'x.csv'", True), ("ATTACH 'x' AS y", True),
    ("IMPORT DATABASE 'x'", True), ("FROM read_csv('x.csv')", True), ("FROM nothing", False),
])
def test_only_where_files_are_the_problem_they_can_be_allowed(store: Store, statement: str, is_of_files: bool) -> None:
    with pytest.raises(UsageError) as caught:
        store.sql(statement)
    assert ("--allow-files" in str(caught.value)) == is_of_files


def test_other_files_cannot_be_read(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place in (tmp_path / "secret.csv", tmp_path / ".tmp" / "secret.csv", store.path / "secret.csv"):
        place.parent.mkdir(exist_ok=True)
        place.write_text("a\n1\n")
        with pytest.raises(UsageError, match=r"disabled|Permission|not allowed|cannot"):
            store.sql(f"FROM read_csv('{place}')")


def test_what_does_not_fit_spills_outside_the_working_directory(store: Store) -> None:
    spill = store.sql("SELECT current_setting('temp_directory') AS place")["place"][0].as_py()
    assert not Path(spill).name.endswith(f"-{os.getpid()}")  # another user may have put a link under a name that can be guessed
    assert Path(spill).is_absolute() and "nsightlens-spill-" in spill


def test_no_progress_bar_stands_among_the_rows(store: Store, tmp_path: Path) -> None:
    """DuckDB writes one to standard output where a query takes 2 s."""
    setting = "SELECT current_setting('enable_progress_bar') AS bar"
    assert store.sql(setting).to_pylist() == [{"bar": False}]
    with closing(catalog_opening.open_for_writing(tmp_path / "fresh.duckdb", tmp_path, None)) as connection:
        assert connection.execute(setting).fetchall() == [(False,)]


def test_a_question_that_takes_too_much_memory_says_so(store: Store) -> None:
    with Store(store.path, memory="20MB") as small, pytest.raises(UsageError, match="more memory than is available") as caught:
        small.sql("SELECT list(a ORDER BY a DESC) FROM range(20000000) AS t(a)")
    assert "Ask for less" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["VIEW mine AS SELECT 1", "OR REPLACE TEMP MACRO mine() AS TABLE SELECT 1"])
def test_who_creates_a_view_is_told_where_own_views_go(store: Store, kind: str) -> None:
    with pytest.raises(UsageError, match=r"a view of your own is a file in a folder: --views FOLDER"):
        store.sql(f"CREATE {kind}")
    with pytest.raises(UsageError, match=r"is not a query$"):
        store.sql("CREATE TABLE mine AS SELECT 1")


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = nl.ingest(kineto(tmp_path / "run" / "a.json").parent, tmp_path / "store")
    store.close()
    with pytest.raises(StoreError, match=r"was closed: open it again with nl\.open"):
        store.view("busy_time")


@pytest.mark.parametrize(("statement", "kind"), [
    ("UPDATE EXTENSIONS", UsageError), ("EXPLAIN UPDATE EXTENSIONS", UsageError), ("SELECT '\ud800'", UsageError),
    ("FROM read_parquet('{store}/parts/kernels/run=x/none.parquet')", NsightlensError), ("SELECT sum('x')", UsageError),
])
def test_odd_statements_are_refused_without_a_traceback(store: Store, statement: str, kind: type[NsightlensError]) -> None:
    with pytest.raises(kind):
        store.sql(statement.format(store=store.path))


def test_values_that_python_has_no_date_for_are_shown_as_text(store: Store) -> None:
    found = store.sql("SELECT ['infinity'::DATE, '2020-01-02'::DATE] AS days, 'infinity'::DATE AS day")
    ((days, day),) = rows_of(found)
    assert "2020-01-02" in days and day == "infinity"


def test_what_a_query_does_not_name_is_not_made(store: Store) -> None:
    made = "SELECT count(*) AS n FROM duckdb_views() WHERE temporary AND NOT internal"
    with Store(store.path) as fresh:
        assert fresh.sql(made).to_pylist() == [{"n": 0}]
        fresh.sql("SELECT 1 AS kernel_summary")
        assert fresh.sql(made)["n"][0].as_py() > 0
