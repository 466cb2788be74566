"""Parts tell of every column that varies whether it has values: the catalogue leaves out those that have none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nsightlens import schema, star
from nsightlens.assembly import stored_schema
from nsightlens.schema import TABLES
from nsightlens.staging import write_part

VARYING = [name for name, table in TABLES.items() if table.varying]


@pytest.mark.parametrize("name", VARYING)
def test_columns_without_values_are_told_from_those_with_some(tmp_path: Path, name: str) -> None:
    table = TABLES[name]
    target, path = stored_schema(table), tmp_path / "part.parquet"
    some = [each for each in table.varying if each != "metrics"][::2]
    rows: list[dict[str, object]] = [dict.fromkeys(some, 7 if number == 3 else None) for number in range(5)]
    write_part(path, target, iter([schema.rows_to_batch(rows, target, name)]))
    assert star._filled(path, table) == some


@pytest.mark.parametrize("name", VARYING)
def test_only_texts_lack_statistics(tmp_path: Path, name: str) -> None:
    target, path = stored_schema(TABLES[name]), tmp_path / "part.parquet"
    write_part(path, target, iter([schema.rows_to_batch([{}], target, name)]))
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    without = {column.path_in_schema for column in columns if column.statistics is None}
    assert without == {field.name for field in target if pa.types.is_dictionary(field.type)}
