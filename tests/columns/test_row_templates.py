from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nsightlens as nl
from nsightlens.columns import row_templates
from nsightlens.columns.row_templates import TemplateBuilder, expand
from nsightlens.columns.spool import Spool
from nsightlens.schema import TABLES, TEXT
from nsightlens.store import catalog, fact_tables
from nsightlens.views import registry
from tests.captures import GEMM, kineto, ncu
from tests.places import ROOT

RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int32()), ("c", TEXT), ("d", pa.float64())])
Row = tuple[Any, ...]

LEAST = -(1 << 63)
ROW = st.tuples(
    st.sampled_from([None, 0, 1, LEAST]), st.sampled_from([None, 0, 7]), st.sampled_from([None, "", "x", "y"]),
    st.sampled_from([None, 0.0, -0.0, 0.5]),
)


def _batch(rows: list[Row]) -> pa.RecordBatch:
    columns: list[tuple[object, ...]] = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    plain = [pa.string() if f.type == TEXT else f.type for f in SCHEMA]
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, plain, strict=True)]
    coded = [a.dictionary_encode() if pa.types.is_string(a.type) else a for a in arrays]
    return pa.RecordBatch.from_arrays(coded, schema=SCHEMA)


def _there_and_back(batches: list[list[Row]], folder: Path) -> tuple[list[Row], int]:
    """Every row as its template gives it, and how many templates there are."""
    builder = TemplateBuilder(SCHEMA, Spool(folder / "templates.arrows", SCHEMA))
    coded = [builder.encode(_batch(rows), 0)[0] for rows in batches]
    read = [template for _, _, batch in builder.finish().read() for template in _rows(batch)]
    assert len(read) == builder.count
    return [read[code] for codes in coded for code in codes], builder.count


def _rows(batch: pa.RecordBatch) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


@given(st.lists(st.lists(ROW, max_size=12), max_size=5))
def test_each_row_is_as_its_template(tmp_path_factory: pytest.TempPathFactory, batches: list[list[Row]]) -> None:
    back, _ = _there_and_back(batches, tmp_path_factory.getbasetemp())
    assert list(map(repr, back)) == [repr(row) for rows in batches for row in rows]


@given(st.lists(st.lists(ROW, min_size=1, max_size=12), min_size=1, max_size=5))
def test_also_when_all_hashes_collide(tmp_path_factory: pytest.TempPathFactory, batches: list[list[Row]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_templates, "hash_rows", lambda columns, rows: np.zeros(rows, dtype=np.uint64))
        back, _ = _there_and_back(batches, tmp_path_factory.getbasetemp())
    assert list(map(repr, back)) == [repr(row) for rows in batches for row in rows]


def test_templates_are_few(tmp_path: Path) -> None:
    rows = [(i % 3, i % 2, f"n{i % 3}", 0.5) for i in range(600)]
    assert _there_and_back([rows[:300], rows[300:]], tmp_path)[1] == 6


def test_forgotten_templates_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_templates, "MOST", 4)
    rows = [(i, 0, None, None) for i in range(10)]
    back, count = _there_and_back([rows, rows], tmp_path)
    assert (back, count) == (rows * 2, 20)


def test_windows_do_not_share_templates(tmp_path: Path) -> None:
    builder = TemplateBuilder(SCHEMA, Spool(tmp_path / "templates.arrows", SCHEMA))
    codes = [builder.encode(_batch([(1, 1, "x", None)]), window)[0].tolist() for window in (0, 1)]
    assert codes == [[0], [1]]
    assert [(window, first) for window, first, _ in builder.finish().read()] == [(0, 0), (1, 1)]


def test_expand_gives_the_columns_of_the_templates() -> None:
    columns = expand(_batch([(1, None, "x", 0.5), (2, None, "y", None)]), np.array([1, 0, 1], dtype=np.int32))
    assert {name: column.to_pylist() for name, column in columns.items()} == {
        "a": [2, 1, 2], "b": [None] * 3, "c": ["y", "x", "y"], "d": [None, 0.5, None]}


def test_the_catalog_holds_what_the_parts_hold(bundled_store: Path) -> None:
    with nl.open(bundled_store) as opened:
        opened.allow_files()
        for name, table in TABLES.items():
            described = opened.sql(f"DESCRIBE {name}").to_pylist()
            assert [row["column_name"] for row in described] == [c.name for c in table.columns]
            if table.varying and (bundled_store / "parts" / name).is_dir():
                columns = ", ".join(f'"{c.name}"' for c in table.columns)
                stored = f"SELECT {columns} FROM {name}"
                parts = f"SELECT {columns} FROM read_parquet('{bundled_store.resolve()}/parts/{name}/*/*.parquet')"
                assert opened.sql(f"SELECT count(*) FROM ({stored} EXCEPT ALL {parts})").to_pylist() == [{"count_star()": 0}]
                assert opened.sql(f"SELECT count(*) FROM ({parts} EXCEPT ALL {stored})").to_pylist() == [{"count_star()": 0}]


def test_parts_of_many_profiles_in_one_statement_keep_their_templates(
    bundled_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert fact_tables._PARTS > 5, "the parts of the bundled run go into its catalog in one statement"
    monkeypatch.setattr(fact_tables, "_PARTS", 2)
    nl.ingest([RUN], store=tmp_path / "few", jobs=1)
    count = "SELECT count(*) AS n, sum(hash(k)) AS digest FROM kernels AS k"
    with nl.open(tmp_path / "few") as few, nl.open(bundled_store) as many:
        assert few.sql(count).to_pylist() == many.sql(count).to_pylist() != [{"n": 0, "digest": None}]
        assert few.sql("SELECT count(*) AS n FROM _parts WHERE table_name = 'kernels'").to_pylist()[0]["n"] > 2


def test_a_catalog_that_needs_more_memory_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(catalog, "WRITE_MEMORY", "1MB")
    nl.ingest([RUN / "nsys"], store=tmp_path / "store")
    with nl.open(tmp_path / "store") as opened:
        assert opened.sql("SELECT count(*) > 0 AS filled FROM kernels").to_pylist() == [{"filled": True}]
    assert not list((tmp_path / "store").glob(".*"))


def test_views_are_made_anew_when_they_changed_and_only_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    ncu(run / "counters.csv", {"gpu__time_duration.sum": ("us", "10.00")})
    made: list[duckdb.DuckDBPyConnection] = []
    create = registry.create

    def counted(connection: duckdb.DuckDBPyConnection, *, temporary: bool = False) -> None:
        made.append(connection)
        create(connection, temporary=temporary)

    monkeypatch.setattr(registry, "create", counted)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    nl.ingest([run], store=tmp_path / "store", jobs=1)
    kineto(run / "rank0.json", rank=0)
    nl.ingest([run], store=tmp_path / "store", jobs=1)  # it brings columns that the view of kernels did not have
    kineto(run / "rank1.json", rank=1, pid=78)
    nl.ingest([run], store=tmp_path / "store", jobs=1)
    nl.ingest([run], store=tmp_path / "beside", jobs=1)
    assert len(made) == 1
    known = registry.load()
    monkeypatch.setattr(catalog, "signature_of_views", lambda: "of other views")
    monkeypatch.setattr(registry, "load", lambda: {name: view for name, view in known.items() if name != "top_kernels"})
    kineto(run / "later.json", [(GEMM, 3000.0, 10.0)], pid=79)
    nl.ingest([run], store=tmp_path / "store", jobs=1)
    with nl.open(tmp_path / "store") as opened:
        names = {row["function_name"] for row in opened.sql("SELECT function_name FROM duckdb_functions()").to_pylist()}
        assert "top_kernels" not in names and "busy_time" in names


def test_the_views_of_tables_are_documented(bundled_store: Path) -> None:
    with nl.open(bundled_store) as opened:
        for table in (t for t in TABLES.values() if t.varying):
            found = opened.sql(f"SELECT column_name, comment FROM duckdb_columns() WHERE table_name = '{table.name}'").to_pylist()
            assert {row["column_name"] for row in found if row["comment"]} == {c.name for c in table.columns}
            comment = opened.sql(f"SELECT comment FROM duckdb_views() WHERE view_name = '{table.name}'").to_pylist()
            assert comment == [{"comment": table.doc}]
