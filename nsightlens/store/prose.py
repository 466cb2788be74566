"""Rows on their way into a store: what people and programs said in them loses its secrets (schema.Column.prose)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.discovery.secrets import INVISIBLE, MARK, TRIGGERS, hides, struck
from nsightlens.schema import Table

_SUSPECT = "|".join([INVISIBLE.pattern, *(trigger.replace(".", r"\.") for trigger in TRIGGERS)])


def without_secrets_in_prose(batch: pa.RecordBatch, table: Table) -> pa.RecordBatch:
    """Return rows of a table with *** for the secrets in its columns of prose; other columns as they are."""
    for number, name in enumerate(batch.schema.names):
        if name in table.prose:
            batch = batch.set_column(number, batch.schema.field(number), _struck(batch.column(number)))
    return batch


def _struck(column: pa.Array) -> pa.Array:
    distinct = column.dictionary if pa.types.is_dictionary(column.type) else column
    if pa.types.is_string(distinct.type) and not pc.any(pc.match_substring_regex(distinct, _SUSPECT, ignore_case=True)).as_py():
        return column   # as nearly all columns of names
    before = distinct.to_pylist()
    after = [_settings(value) if isinstance(value, list) else value and struck(value) for value in before]
    if after == before:
        return column
    if pa.types.is_dictionary(column.type):
        return pa.array(after, pa.string()).take(column.indices).dictionary_encode().cast(column.type)
    return pa.array(after, column.type)


def _settings(pairs: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """Return settings; the name of one may say that its value is a secret."""
    return [(name, MARK if value and hides(name.removeprefix("workload."), value) else value and struck(value))
            for name, value in pairs]
