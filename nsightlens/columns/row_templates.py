"""Row templates: what thousands of a table's rows have in common, kept once.

A kernel has some 75 columns, but all except a dozen of them (its times and ids) repeat in a few thousand combinations. So
the work for those columns is done per template, and the parts and the catalog store them so: a fact table has the columns that
vary from row to row, a dimension table has the templates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.columns.arrays import MISSING, Hash, Int, Mask, Places, hash_rows, integers
from nsightlens.columns.spool import Spool, Spooled
from nsightlens.schema import TEMPLATE, Table

MOST = 1 << 17
"""Templates that are remembered together."""


def template_schema(table: Table) -> pa.Schema:
    """Return the reader's columns that rows of one template have in common."""
    return pa.schema([f for f in table.reader_schema if f.name not in table.varying])


def stored_schema(table: Table) -> pa.Schema:
    """Return the columns of a table's parts: all but `run`, which the folder names, and the number of the template."""
    columns = [(c.name, c.packed_type) for c in table.columns if c.name != "run"]
    return pa.schema([*columns, (TEMPLATE, pa.int32())] if table.varying else columns)


def stored_template_schema(table: Table) -> pa.Schema:
    """Return the columns of the part that holds a table's templates."""
    return pa.schema([f for f in stored_schema(table) if f.name not in table.varying])


@dataclass(frozen=True, slots=True)
class RowTemplates:
    """The templates of one table's rows, numbered from 0, in generations: (window, first template, end) of each."""

    generations: tuple[tuple[int, int, int], ...]
    spooled: Spooled

    def windows(self) -> Int:
        """Return the window of each template."""
        return np.concatenate([np.full(end - first, window) for window, first, end in self.generations])

    def read(self) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        """Yield (window, first template, templates as rows) of each generation that has any."""
        source = iter(self.spooled)
        for window, first, end in self.generations:
            pieces, have = [], first
            while have < end:
                pieces.append(next(source))
                have += pieces[-1].num_rows
            if pieces:
                whole = pa.Table.from_batches(pieces).unify_dictionaries().combine_chunks()
                yield window, first, whole.to_batches()[0]


class TemplateBuilder:
    """Numbers the templates of one table's rows, from 0, while its batches stream by; `finish` returns them.

    Rows of one template are equal in every column of the schema. The converse does not hold, and need not: a row whose hash is
    that of another template becomes one of its own, and after MOST templates they are forgotten, which bounds the memory.
    """

    def __init__(self, schema: pa.Schema, spool: Spool) -> None:
        self.count = 0
        self._generations: list[tuple[int, int]] = []  # (window, first template) of those that were remembered together
        self._spool = spool
        self._schema = schema
        self._start_generation(0)

    def _start_generation(self, window: int) -> None:
        self._generations.append((window, self.count))
        self._first = self.count
        self._hashes: Hash = np.zeros(0, dtype=np.uint64)
        self._codes: Int = np.zeros(0, dtype=np.int64)
        self._kept: dict[str, Int] = {}
        self._texts = {f.name: _Texts() for f in self._schema if pa.types.is_dictionary(f.type)}

    def finish(self) -> RowTemplates:
        """Return the templates; nothing can be encoded afterwards."""
        ends = [first for _, first in self._generations[1:]] + [self.count]
        generations = tuple((window, first, end) for (window, first), end in zip(self._generations, ends, strict=True))
        return RowTemplates(generations, self._spool.finish())

    def encode(self, batch: pa.RecordBatch, window: int) -> tuple[Places, pa.RecordBatch]:
        """Return the template of each row of `batch`, and the templates that are new (as rows, in order)."""
        if window != self._generations[-1][0] or self.count - self._first > MOST:
            self._start_generation(window)
        values, certain = self._values(batch)
        if certain:
            found, fresh = self._look_up(values, batch.num_rows)
            alien = np.flatnonzero(self._differs(values, found - self._first))
        else:
            found, fresh, alien = (np.arange(n, dtype=np.int64) for n in (batch.num_rows, 0, batch.num_rows))
        if len(alien):
            found[alien] = np.arange(len(alien)) + self.count
            self._keep(values, alien)
        new = batch.select(self._schema.names).take(pa.array(np.concatenate([fresh, alien])))
        if new.num_rows:
            self._spool.append(new)
        return found.astype(np.int32), new

    def _values(self, batch: pa.RecordBatch) -> tuple[dict[str, Int], bool]:
        """Return the columns as integers without those that were NULL throughout, and whether these tell NULL from a value."""
        values, certain = {}, True
        for name in self._schema.names:
            column = batch.column(name)
            if name in self._texts and (column.null_count < len(column) or name in self._kept):
                values[name] = self._texts[name].encode(column)
            elif column.null_count < len(column) or name in self._kept:
                values[name] = integers(column.view(pa.int64()) if pa.types.is_floating(column.type) else column)
                certain = certain and np.count_nonzero(values[name] == MISSING) == column.null_count
        return values, certain

    def _look_up(self, values: dict[str, Int], rows: int) -> tuple[Int, Int]:
        """Return the template of each row by its hash, and the rows that were taken in as the first of a new template."""
        hashed = pa.array(hash_rows(values.values(), rows)).dictionary_encode()
        which, hashes = hashed.indices.to_numpy(), hashed.dictionary.to_numpy()
        codes, is_new = self._known(hashes)
        first = np.zeros(len(hashes), dtype=np.int64)
        first[which[::-1]] = np.arange(rows - 1, -1, -1)  # the last assignment stays: that of the first row
        codes[is_new] = np.arange(is_new.sum()) + self.count
        self._remember(hashes[is_new], codes[is_new])
        self._keep(values, first[is_new])
        return codes[which], first[is_new]

    def _known(self, hashes: Hash) -> tuple[Int, Mask]:
        if not len(self._hashes):
            return np.zeros(len(hashes), dtype=np.int64), np.ones(len(hashes), dtype=np.bool_)
        at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        return self._codes[at], self._hashes[at] != hashes

    def _remember(self, hashes: Hash, codes: Int) -> None:
        if len(hashes):
            hashes, codes = np.concatenate([self._hashes, hashes]), np.concatenate([self._codes, codes])
            order = np.argsort(hashes)
            self._hashes, self._codes = hashes[order], codes[order]

    def _keep(self, values: dict[str, Int], rows: Int) -> None:
        """Take these rows in as the next templates."""
        before = self.count - self._first
        for name, column in values.items():
            if len(rows) or name not in self._kept:
                kept = self._kept.get(name)
                self._kept[name] = np.concatenate([np.full(before, MISSING) if kept is None else kept, column[rows]])
        self.count += len(rows)

    def _differs(self, values: dict[str, Int], places: Int) -> Mask:
        """Return which rows are not equal to the template at their place."""
        differs = np.zeros(len(places), dtype=np.bool_)
        for name, column in values.items():
            differs |= self._kept[name][places] != column
        return differs


class _Texts:
    """The distinct texts of one column, numbered. Readers send dictionaries that mostly grow: only what is new is looked at."""

    def __init__(self) -> None:
        self._codes: dict[str | None, int] = {}
        self._last: pa.Array = pa.array([], pa.string())
        self._code_of_last: Int = np.zeros(0, dtype=np.int64)

    def encode(self, column: pa.DictionaryArray) -> Int:
        """Return the number of each row's text, NULL as the least integer."""
        texts, known = column.dictionary, len(self._last)
        if not texts.slice(0, known).equals(self._last):
            known = 0
        if len(texts) > known or not known:
            new = [self._code(text) for text in texts.slice(known).to_pylist()]
            self._code_of_last = np.concatenate([self._code_of_last[:known], np.array(new, dtype=np.int64)])
            self._last = texts
        table = np.append(self._code_of_last, MISSING)
        indices = column.indices
        if indices.null_count:
            indices = pc.fill_null(indices, len(table) - 1)
        coded: Int = table[indices.to_numpy(zero_copy_only=False)]
        return coded

    def _code(self, text: str | None) -> int:
        return MISSING if text is None else self._codes.setdefault(text, len(self._codes))


def expand(templates: pa.RecordBatch, places: Places) -> dict[str, Any]:
    """Return the columns of the templates at `places`, by name."""
    chosen = pa.array(places)
    return {
        name: column.take(chosen) if column.null_count < len(column) else pa.nulls(len(places), column.type)
        for name, column in zip(templates.schema.names, templates.columns, strict=True)
    }
