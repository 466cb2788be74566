"""conform() gives exactly the columns of a table, or says why not."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from nsightlens import schema
from nsightlens.errors import SchemaError
from nsightlens.readers.batches import batch_of, conform
from nsightlens.schema import TABLES

SMALL = pa.schema([("name", schema.TEXT), ("duration_ns", schema.INT64), ("device", schema.INT32)])


def test_conform_orders_casts_and_fills() -> None:
    batch = pa.record_batch({"device": pa.array([0, 1], pa.int64()), "name": ["a", None]})
    got = conform(batch, SMALL, "kernels")
    assert got.schema == SMALL
    assert got.to_pylist() == [{"name": "a", "duration_ns": None, "device": 0}, {"name": None, "duration_ns": None, "device": 1}]


@pytest.mark.parametrize("names", [
    pa.array(["a", "b", "a"], pa.large_string()),
    pa.array(["a", "b", "a"]).dictionary_encode(),
    pa.array(["a", "b", "a"], pa.dictionary(pa.int8(), pa.string())),
    pa.array(["a", "b", "a"], pa.string_view()),
], ids=str)
def test_conform_takes_text_in_any_form(names: pa.Array) -> None:
    got = conform(pa.record_batch({"name": names}), SMALL, "kernels")
    assert got.column("name").type == schema.TEXT
    assert got.column("name").to_pylist() == ["a", "b", "a"]


def test_conform_keeps_an_empty_batch_and_a_null_column() -> None:
    assert conform(pa.record_batch({"device": pa.array([], pa.int32())}), SMALL, "kernels").num_rows == 0
    assert conform(pa.record_batch({"device": pa.nulls(2)}), SMALL, "kernels").column("name").null_count == 2


@pytest.mark.parametrize(("column", "values", "message"), [
    ("grid", [1], "table kernels has no column grid"),
    ("device", [2**40], "kernels.device"),
    ("duration_ns", [1.5], "kernels.duration_ns"),
    ("duration_ns", ["soon"], "kernels.duration_ns"),
])
def test_conform_refuses_what_would_lose_a_value(column: str, values: list[object], message: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(message)):
        conform(pa.record_batch({column: values}), SMALL, "kernels")


def test_conform_keeps_times_that_a_double_cannot_hold() -> None:
    batch = pa.record_batch({"duration_ns": [1712195495505583123]})
    assert conform(batch, SMALL, "kernels").column("duration_ns").to_pylist() == [1712195495505583123]


def test_rows_become_a_batch_of_the_reader_schema() -> None:
    rows: list[dict[str, object]] = [{"name": "k", "metrics": {"dram__bytes.sum": 1.0}}, {"duration_ns": 3, "process_index": 0}]
    got = batch_of("kernels", rows)
    assert got.schema == TABLES["kernels"].reader_schema
    assert got.column("name").to_pylist() == ["k", None]
    assert got.column("metrics").to_pylist() == [[("dram__bytes.sum", 1.0)], None]
    with pytest.raises(SchemaError, match="no column run"):
        batch_of("kernels", [{"run": "filled by ingest"}])
