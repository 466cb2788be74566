"""The tables: their documentation, and that conform() gives exactly their columns or says why not."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from nsightlens import schema
from nsightlens.errors import SchemaError
from nsightlens.schema import TABLES

SMALL = pa.schema([("name", schema.TEXT), ("duration_ns", schema.INT64), ("device", schema.INT32)])
UNITS = {"_ns": "ns", "_bytes": "bytes", "_pct": "%", "_hz": "hz"}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_columns_are_documented_and_named_after_their_unit(table: schema.Table) -> None:
    for column in table.columns:
        assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", column.name)
        assert column.doc.endswith("."), column.name
        assert [unit for end, unit in UNITS.items() if column.name.endswith(end)] in ([], [column.unit]), column.name
        assert column.unit != "ns" or column.type == schema.INT64, f"no double ever holds a time: {column.name}"


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_tables_have_distinct_columns_and_a_doc(table: schema.Table) -> None:
    assert table.doc.endswith(".")
    assert len(set(table.schema.names)) == len(table.columns)
    assert table.row_id is None or table.row_id in table.schema.names


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_reader_gives_only_what_readers_fill(table: schema.Table) -> None:
    filled = {column.name for column in table.columns if column.stage == "reader"}
    assert filled <= set(table.reader_schema.names)
    assert set(table.reader_schema.names) - filled <= {"process_index", "kernel_row"}


def test_rows_name_their_process_and_their_kernel_by_position() -> None:
    assert "process_index" in TABLES["kernels"].reader_schema.names
    assert "kernel_row" not in TABLES["kernels"].reader_schema.names
    assert "kernel_row" in TABLES["advice"].reader_schema.names


def test_the_same_column_means_the_same_in_every_table() -> None:
    """Columns that tables share for joins have one type."""
    types: dict[str, pa.DataType] = {}
    for table in TABLES.values():
        for column in table.columns:
            if column.name.endswith("_id") or column.name in ("run", "tool", "rank", "device", "window_index"):
                assert types.setdefault(column.name, column.type) == column.type, (table.name, column.name)


def test_conform_orders_casts_and_fills() -> None:
    batch = pa.record_batch({"device": pa.array([0, 1], pa.int64()), "name": ["a", None]})
    got = schema.conform(batch, SMALL, "kernels")
    assert got.schema == SMALL
    assert got.to_pylist() == [{"name": "a", "duration_ns": None, "device": 0}, {"name": None, "duration_ns": None, "device": 1}]


@pytest.mark.parametrize("names", [
    pa.array(["a", "b", "a"], pa.large_string()),
    pa.array(["a", "b", "a"]).dictionary_encode(),
    pa.array(["a", "b", "a"], pa.dictionary(pa.int8(), pa.string())),
    pa.array(["a", "b", "a"], pa.string_view()),
], ids=str)
def test_conform_takes_text_in_any_form(names: pa.Array) -> None:
    got = schema.conform(pa.record_batch({"name": names}), SMALL, "kernels")
    assert got.column("name").type == schema.TEXT
    assert got.column("name").to_pylist() == ["a", "b", "a"]


def test_conform_keeps_an_empty_batch_and_a_null_column() -> None:
    assert schema.conform(pa.record_batch({"device": pa.array([], pa.int32())}), SMALL, "kernels").num_rows == 0
    assert schema.conform(pa.record_batch({"device": pa.nulls(2)}), SMALL, "kernels").column("name").null_count == 2


@pytest.mark.parametrize(("column", "values", "message"), [
    ("grid", [1], "table kernels has no column grid"),
    ("device", [2**40], "kernels.device"),
    ("duration_ns", [1.5], "kernels.duration_ns"),
    ("duration_ns", ["soon"], "kernels.duration_ns"),
])
def test_conform_refuses_what_would_lose_a_value(column: str, values: list[object], message: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(message)):
        schema.conform(pa.record_batch({column: values}), SMALL, "kernels")


def test_conform_keeps_times_that_a_double_cannot_hold() -> None:
    batch = pa.record_batch({"duration_ns": [1712195495505583123]})
    assert schema.conform(batch, SMALL, "kernels").column("duration_ns").to_pylist() == [1712195495505583123]


def test_rows_become_a_batch_of_the_reader_schema() -> None:
    rows: list[dict[str, object]] = [{"name": "k", "metrics": {"dram__bytes.sum": 1.0}}, {"duration_ns": 3, "process_index": 0}]
    got = schema.batch_of("kernels", rows)
    assert got.schema == TABLES["kernels"].reader_schema
    assert got.column("name").to_pylist() == ["k", None]
    assert got.column("metrics").to_pylist() == [[("dram__bytes.sum", 1.0)], None]
    with pytest.raises(SchemaError, match="no column run"):
        schema.batch_of("kernels", [{"run": "filled by ingest"}])


def test_the_log_tells_of_every_version() -> None:
    log = re.findall(r"^(\d+)  \S", schema.__doc__ or "", flags=re.MULTILINE)
    assert [int(version) for version in log] == list(range(1, schema.SCHEMA_VERSION + 1))


def test_the_page_of_tables_is_up_to_date() -> None:
    page = Path(__file__).parents[1] / "docs" / "schema.md"
    assert page.read_text(encoding="utf-8") == schema.markdown(), "run: python -m nsightlens.schema > docs/schema.md"
