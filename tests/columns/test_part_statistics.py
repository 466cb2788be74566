"""Parts tell of every column that varies whether it has values: the catalog leaves out those that have none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nsightlens.columns.row_templates import stored_schema
from nsightlens.columns.spool import write_part
from nsightlens.readers.batches import rows_to_batch
from nsightlens.schema import TABLES
from nsightlens.store import fact_tables

VARYING = [name for name, table in TABLES.items() if table.varying]


@pytest.mark.parametrize("name", VARYING)
def test_columns_without_values_are_told_from_those_with_some(tmp_path: Path, name: str) -> None:
    table = TABLES[name]
    target, path = stored_schema(table), tmp_path / "part.parquet"
    some = [each for each in table.varying if each != "metrics"][::2]
    rows: list[dict[str, object]] = [dict.fromkeys(some, 7 if number == 3 else None) for number in range(5)]
    write_part(path, target, iter([rows_to_batch(rows, target, name)]))
    assert fact_tables._filled(path, table) == some


@pytest.mark.parametrize("name", VARYING)
def test_only_texts_lack_statistics(tmp_path: Path, name: str) -> None:
    target, path = stored_schema(TABLES[name]), tmp_path / "part.parquet"
    write_part(path, target, iter([rows_to_batch([{}], target, name)]))
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    without = {column.path_in_schema for column in columns if column.statistics is None}
    assert without == {field.name for field in target if pa.types.is_dictionary(field.type)}
