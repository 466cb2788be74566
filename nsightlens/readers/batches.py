"""Batches of rows as readers yield them, and their fit to the columns of a table."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from nsightlens import schema
from nsightlens.errors import SchemaError

Batch = tuple[str, pa.RecordBatch]
"""A table's name, and some of its rows."""


def conform(batch: pa.RecordBatch, target: pa.Schema, table: str) -> pa.RecordBatch:
    """Return `batch` with exactly the columns of `target`, in order: missing ones NULL, others cast safely.

    Raises SchemaError for a column that `target` does not have, or a cast that would lose a value.
    """
    unknown = set(batch.schema.names) - set(target.names)
    if unknown:
        raise SchemaError(f"table {table} has no column {', '.join(sorted(unknown))}", table)
    arrays = []
    for field in target:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            arrays.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch.column(index)
        try:
            arrays.append(column if column.type == field.type else _cast(column, field.type))
        except pa.ArrowInvalid as exc:
            raise SchemaError(f"{table}.{field.name}: {exc}", table) from exc
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def _cast(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(type_) and not pa.types.is_dictionary(column.type):
        return column.cast(pa.string()).dictionary_encode()
    return column.cast(type_)


def batch_of(table: str, rows: Iterable[dict[str, object]]) -> pa.RecordBatch:
    """Return the rows (dicts by column name) as a batch in the reader's schema of `table`: for small tables."""
    return rows_to_batch(rows, schema.TABLES[table].reader_schema, table)


def rows_to_batch(rows: Iterable[dict[str, object]], target: pa.Schema, table: str) -> pa.RecordBatch:
    """Return the rows (dicts by column name) as a batch of `target`. Raises SchemaError for a column it does not have."""
    listed = list(rows)
    for row in listed:
        unknown = set(row) - set(target.names)
        if unknown:
            raise SchemaError(f"table {table} has no column {', '.join(sorted(unknown))}", table)
    arrays = [pa.array([row.get(f.name) for row in listed], type=_plain(f.type)) for f in target]
    return conform(pa.RecordBatch.from_arrays(arrays, names=target.names), target, table)


def _plain(type_: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_dictionary(type_) else type_


def diagnostic(severity: str, code: str, message: str, count: int = 1, byte_offset: int | None = None) -> Batch:
    """Return one row of `diagnostics`."""
    row: dict[str, object] = {
        "severity": severity, "code": code, "count": count, "byte_offset": byte_offset, "message": message,
    }
    return "diagnostics", batch_of("diagnostics", [row])
