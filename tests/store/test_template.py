"""The blank catalog: the same from the cache as made, and a cache that is missing, full or broken costs nothing but time."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import duckdb
import pytest

from nsightlens.pipeline import ingest
from nsightlens.store import catalog, catalog_opening, catalog_tables, fact_tables, template
from nsightlens.store.store import Store
from tests.places import ROOT

RAW = ROOT / "fixtures" / "simulated_resnet18_ddp" / "ncu" / "rank0.raw.csv"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "nsightlens"


def _objects(path: Path) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(
            "SELECT view_name AS name, sql, comment FROM duckdb_views() WHERE NOT internal "
            "UNION ALL SELECT table_name, sql, comment FROM duckdb_tables() "
            "UNION ALL SELECT function_name, macro_definition, comment FROM duckdb_functions() WHERE NOT internal "
            "UNION ALL SELECT table_name || '.' || column_name, data_type, comment FROM duckdb_columns() WHERE NOT internal "
            "ORDER BY ALL").fetchall()


@pytest.mark.parametrize("materialise", [True, False])
def test_a_cached_one_is_the_same_as_a_made_one(cache: Path, tmp_path: Path, materialise: bool) -> None:
    made, copied, uncached = tmp_path / "made.duckdb", tmp_path / "copied.duckdb", tmp_path / "uncached.duckdb"
    template.place(made, tmp_path, materialise=materialise)
    assert len(list(cache.iterdir())) == 1
    template.place(copied, tmp_path, materialise=materialise)
    template.place(uncached, tmp_path, materialise=materialise, cached=False)
    assert copied.read_bytes() == made.read_bytes()
    assert len(_objects(made)) > 500
    assert _objects(made) == _objects(uncached)


def test_a_store_in_parts_has_a_blank_of_its_own(cache: Path, tmp_path: Path) -> None:
    for materialise in (True, False):
        template.place(tmp_path / f"{materialise}.duckdb", tmp_path, materialise=materialise)
    assert len(list(cache.iterdir())) == 2


def test_the_cache_keeps_a_few(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "_KEPT", 1)
    template.place(tmp_path / "first.duckdb", tmp_path, materialise=True)
    for number in range(2):
        monkeypatch.setattr(catalog, "signature_of_views", lambda number=number: f"{number:032x}")
        template.place(tmp_path / f"{number}.duckdb", tmp_path, materialise=True)
    assert len(list(cache.iterdir())) == template._KEPT


def test_a_broken_cache_breaks_no_ingest(cache: Path, tmp_path: Path) -> None:
    template.place(tmp_path / "first.duckdb", tmp_path, materialise=True)
    (kept,) = cache.iterdir()
    kept.write_bytes(kept.read_bytes()[:5000] + b"broken")
    ingest.ingest([RAW], tmp_path / "store", jobs=1)
    with Store(tmp_path / "store") as store:
        assert store.sql("SELECT count(*) AS n FROM kernels")["n"][0].as_py() > 0


def test_a_cache_that_cannot_be_written_breaks_no_ingest(cache: Path, tmp_path: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("a file where the folder should be")
    ingest.ingest([RAW], tmp_path / "store", jobs=1)
    with Store(tmp_path / "store") as store:
        assert store.view("kernel_summary").num_rows > 0


def test_columns_that_come_later_show_in_views_and_keep_their_documentation(cache: Path, tmp_path: Path) -> None:
    ingest.ingest([RAW], tmp_path / "store", jobs=1)
    fixture = RAW.parents[1] / "torch" / "rank0.pt.trace.json.gz"
    folder = tmp_path / "more"
    folder.mkdir()
    shutil.copy(fixture, folder)
    ingest.ingest([folder], tmp_path / "store", jobs=1)
    with Store(tmp_path / "store") as store:
        found = store.sql("SELECT tool, count(correlation_id) AS ids, count(start_ns) AS starts FROM kernels GROUP BY tool")
        rows = {row["tool"]: row for row in found.to_pylist()}
        assert rows["kineto"]["ids"] > 0 and rows["kineto"]["starts"] > 0
        assert rows["ncu"]["starts"] == 0
        assert store.view("timeline_kernels").num_rows > 0
        comments = store.sql("SELECT count(*) AS n FROM duckdb_columns() WHERE database_name = 'catalog' "
                             "AND table_name = 'kernels' "
                             "AND comment IS NULL")
        assert comments["n"][0].as_py() == 0


def test_small_tables_cost_little_and_64_bit_integers_are_packed(cache: Path, tmp_path: Path) -> None:
    template.place(tmp_path / "made.duckdb", tmp_path, materialise=True)
    with contextlib.closing(catalog_opening.open_for_writing(tmp_path / "made.duckdb", tmp_path, None)) as connection:
        assert connection.execute("SELECT block_size FROM pragma_database_size() WHERE database_name = 'catalog'").fetchall() == [
            (catalog_opening.BLOCK_BYTES,)]
        connection.execute("CREATE TABLE mixed AS SELECT (i * 2654435761) % 1000003 AS n FROM range(300000) AS rows(i)")
        connection.execute("CHECKPOINT")
        kinds = connection.execute("SELECT DISTINCT compression FROM pragma_storage_info('mixed') WHERE segment_type = 'BIGINT'")
        assert kinds.fetchall() == [("BitPacking",)]


def test_a_catalog_of_larger_blocks_is_written_to(cache: Path, tmp_path: Path) -> None:
    """Stores made before have DuckDB's own size of blocks."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{tmp_path / 'older.duckdb'}' AS older (STORAGE_VERSION '{catalog_opening.STORAGE_VERSION}')")
        connection.execute("CREATE TABLE older.older AS SELECT 1 AS n")
        for name in ("_store", "_runs", "files"):
            connection.execute(f"CREATE TABLE older.{name} AS SELECT 1 AS schema_version")
    with contextlib.closing(catalog_opening.open_for_writing(tmp_path / "older.duckdb", tmp_path, None)) as connection:
        connection.execute("INSERT INTO older VALUES (2)")
        connection.execute("CHECKPOINT")
    with duckdb.connect(str(tmp_path / "older.duckdb"), read_only=True) as connection:
        found = connection.execute("SELECT sum(n), any_value(block_size) FROM older, pragma_database_size()").fetchall()
    assert found == [(3, 262144)]


def test_views_of_this_version_are_known_as_such_when_a_catalog_is_opened_again(cache: Path, tmp_path: Path) -> None:
    """An ingest into a store that is there leaves its views alone."""
    place = tmp_path / "blank.duckdb"
    template.place(place, tmp_path, materialise=True)
    with contextlib.closing(catalog_opening.open_for_writing(place, tmp_path, None)) as connection:
        changed = [table.name for table in fact_tables.tables()
                   if not fact_tables.has_view(connection, table, catalog_tables.types(table))]
    assert fact_tables.tables() and not changed
