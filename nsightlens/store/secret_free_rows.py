"""Rows without secrets, on their way into a store: columns of prose (schema.Table.prose) have theirs struck out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.discovery.secrets import MARK, hides, struck
from nsightlens.discovery.suspects import suspects
from nsightlens.schema import SETTINGS, Table


def without_secrets_in_prose(batch: pa.RecordBatch, table: Table) -> pa.RecordBatch:
    """Return rows of a table with *** for the secrets in its columns of prose; other columns as they are."""
    prose, schema = set(table.prose), batch.schema
    numbers = [number for number, field in enumerate(schema) if field.name in prose]
    texts = {number: _distinct(batch.column(number)) for number in numbers if schema.field(number).type != SETTINGS}
    for number, suspect in _suspects(texts).items():
        changed = _struck(texts[number], suspect)
        if changed is not None:
            batch = _replaced(batch, number, changed)
    for number in set(numbers) - set(texts):
        rows = [value and _settings(value) for value in batch.column(number).to_pylist()]
        batch = batch.set_column(number, schema.field(number), pa.array(rows, SETTINGS))
    return batch


def _suspects(texts: Mapping[int, pa.Array]) -> dict[int, pa.Array]:
    """Return which texts of each column may hold a secret; nothing where none does."""
    if not sum(map(len, texts.values())):
        return {}
    suspect = suspects(pa.concat_arrays(list(texts.values())))
    if not pc.any(suspect).as_py():
        return {}
    ends = np.cumsum([len(each) for each in texts.values()]).tolist()
    return {number: suspect.slice(end - len(each), len(each)) for (number, each), end in zip(texts.items(), ends, strict=True)}


def _distinct(column: pa.Array) -> pa.Array:
    return column.dictionary if pa.types.is_dictionary(column.type) else column


def _struck(texts: pa.Array, suspect: pa.Array) -> pa.Array | None:
    """Return texts without the secrets in those that are suspect, None where there are none."""
    before = texts.filter(suspect).to_pylist()
    after = [struck(text) for text in before]
    return None if after == before else pc.replace_with_mask(texts, pc.fill_null(suspect, False), pa.array(after, texts.type))


def _replaced(batch: pa.RecordBatch, number: int, texts: pa.Array) -> pa.RecordBatch:
    column = batch.column(number)
    if pa.types.is_dictionary(column.type):   # two texts may have become one
        texts = texts.take(column.indices).dictionary_encode().cast(column.type)
    return batch.set_column(number, batch.schema.field(number), texts)


def _settings(pairs: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """Return settings; the name of one may say that its value is a secret."""
    return [(name, MARK if value and hides(name.removeprefix("workload."), value) else value and struck(value))
            for name, value in pairs]
