"""The tables: names, documentation, units, types."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from nsightlens import schema
from nsightlens.schema import TABLES

UNITS = {"_ns": "ns", "_bytes": "bytes", "_pct": "%", "_hz": "hz"}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_columns_are_documented_and_named_after_their_unit(table: schema.Table) -> None:
    for column in table.columns:
        where = f"nsightlens/schema.py, {table.name}.{column.name}"
        assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", column.name), f"{where}: names are snake_case"
        assert column.doc.endswith("."), f"{where}: its doc is a sentence"
        named = [unit for end, unit in UNITS.items() if column.name.endswith(end)]
        assert named in ([], [column.unit]), f"{where}: named {named}, but its unit is {column.unit}"
        assert column.unit != "ns" or column.type == schema.INT64, f"no double ever holds a time: {column.name}"


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_tables_have_distinct_columns_and_a_doc(table: schema.Table) -> None:
    assert table.doc.endswith(".")
    assert len(set(table.schema.names)) == len(table.columns)
    assert table.row_id is None or table.row_id in table.schema.names


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_reader_gives_only_item_kind_readers_fill(table: schema.Table) -> None:
    filled = {column.name for column in table.columns if column.stage == "reader"}
    assert filled <= set(table.reader_schema.names)
    assert set(table.reader_schema.names) - filled <= {
        "process_index", "kernel_row", *(row for row, _ in schema.ROW_LINKS.get(table.name, {}).values())}


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


def test_the_log_tells_of_every_version() -> None:
    log = re.findall(r"^(\d+)  \S", schema.__doc__ or "", flags=re.MULTILINE)
    numbers = [int(version) for version in log]
    assert numbers == list(range(1, schema.SCHEMA_VERSION + 1)), "the log of nsightlens/schema.py has a line for each version"
