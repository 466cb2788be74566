"""Batches on their way to a part: fewer and larger, with all rows in their order."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nsightlens.columns.spool import gathered

SOME = pa.RecordBatch.from_pylist([{"a": 1}])
NONE = SOME.slice(0, 0)


@pytest.mark.parametrize("batches", [[NONE], [NONE, NONE], [NONE, SOME], [SOME, NONE, SOME], [SOME, SOME]])
def test_batches_without_rows_are_no_harm(batches: list[pa.RecordBatch]) -> None:
    """A large trace is read in blocks, and of a table each of them may have none."""
    (name, found), = gathered([("kernels", batch) for batch in batches])
    assert name == "kernels"
    assert found.to_pylist() == [row for batch in batches for row in batch.to_pylist()]


def test_a_column_that_some_batches_lack_is_null_there() -> None:
    (_, found), = gathered([("kernels", SOME), ("kernels", pa.RecordBatch.from_pylist([{"a": 2, "b": "x"}]))])
    assert found.to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
