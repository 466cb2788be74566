"""Raw columns -> columns of ours: process and thread numbers, exact times, narrow integers, names by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from nsightlens import schema

TID_MASK = (1 << 24) - 1

MAX_DURATION_NS = (1 << 43) * 1000
"""102 days, as in traces of PyTorch: a thousand such values still add up within 63 bits."""
MAX_TIME_NS = 1 << 61
"""The year 2043 as an epoch time. Sums and differences of two times stay within 63 bits."""


class Names:
    """A dictionary of the names that one column of one table uses. It only grows: each begins with the one before."""

    def __init__(self, strings: Callable[[pa.Array], pa.Array], edit: Callable[[str], str] = str) -> None:
        self._strings = strings
        self._edit = edit
        self._position_of: dict[int | str, int | None] = {}
        self._positions: dict[str, int] = {}
        self._dictionary = pa.array([], pa.string())

    def encode(self, ids: pa.Array) -> pa.DictionaryArray:
        """Return the names of ids (int64), or of plain texts, as a dictionary array; an id without a text is NULL."""
        encoded = ids.dictionary_encode()
        new = pa.array([id_ for id_ in encoded.dictionary.to_pylist() if id_ not in self._position_of], ids.type)
        if len(new):
            texts = self._strings(new) if pa.types.is_int64(ids.type) else new
            for id_, text in zip(new.to_pylist(), texts.to_pylist(), strict=True):
                name = None if text is None else self._edit(text)
                self._position_of[id_] = None if name is None else self._positions.setdefault(name, len(self._positions))
            self._dictionary = pa.array(list(self._positions), pa.string())
        positions = pa.array([self._position_of[id_] for id_ in encoded.dictionary.to_pylist()], pa.int32())
        return pa.DictionaryArray.from_arrays(positions.take(encoded.indices), self._dictionary)


def raw(batch: pa.RecordBatch, name: str, type_: pa.DataType | None = None) -> pa.Array:
    """Return the column, NULLs where the table does not have it."""
    if name in batch.schema.names:
        return batch.column(name)
    return pa.nulls(batch.num_rows, type_ or pa.int64())


def times(batch: pa.RecordBatch, base_ns: int, tally: Counter[str]) -> dict[str, pa.Array]:
    """Return start_ns (relative to `base_ns`, at most MAX_TIME_NS from it) and duration_ns.

    Impossible ones are NULL, and counted: a start beyond MAX_TIME_NS, an end before its start or too long after it.
    """
    start, end = _possible(raw(batch, "start"), base_ns, tally), raw(batch, "end")
    # No difference is taken before the end is known to be near: it would wrap around.
    end = _within(pc.if_else(start.is_valid(), end, None), start, pc.add(start, MAX_DURATION_NS), tally, "impossible_duration")
    return {"start_ns": pc.subtract(start, base_ns) if base_ns else start, "duration_ns": pc.subtract(end, start)}


def moments(array: pa.Array, base_ns: int, tally: Counter[str]) -> pa.Array:
    """Return times relative to `base_ns`; an impossible one is NULL, and counted."""
    return pc.subtract(_possible(array, base_ns, tally), base_ns)


def _possible(array: pa.Array, base_ns: int, tally: Counter[str]) -> pa.Array:
    return _within(array, base_ns - MAX_TIME_NS, base_ns + MAX_TIME_NS, tally, "impossible_start")


def _within(values: pa.Array, low: pa.Array | int, high: pa.Array | int, tally: Counter[str], code: str) -> pa.Array:
    """Return the values from `low` to `high`, NULL for the others, which are counted."""
    fits = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
    if pc.all(fits).as_py():
        return values
    kept = pc.if_else(fits, values, None)
    tally[code] += kept.null_count - values.null_count
    return kept


def integers(batch: pa.RecordBatch, table: schema.Table, columns: Mapping[str, str], tally: Counter[str]) -> dict[str, pa.Array]:
    """Return our columns from nsys's (our name -> its name), as wide as the schema says; what doesn't fit is NULL, counted."""
    types = table.reader_schema
    return {ours: narrow(raw(batch, theirs), types.field(ours).type, tally) for ours, theirs in columns.items()}


def narrow(array: pa.Array, type_: pa.DataType, tally: Counter[str]) -> pa.Array:
    """Return the array in a type that may be narrower."""
    if array.type == type_:
        return array
    try:
        return array.cast(type_)
    except pa.ArrowInvalid:
        limit = 1 << (type_.bit_width - 1)
        fits = pc.and_(pc.greater_equal(array, -limit), pc.less(array, limit))
        kept = pc.if_else(fits, array, None)
        tally["out_of_range"] += kept.null_count - array.null_count
        return kept.cast(type_)


def threads(global_tids: pa.Array) -> pa.Array:
    """Return the OS thread id in each globalTid."""
    return pc.bit_wise_and(global_tids, TID_MASK)


def coded(array: pa.Array, meaning: Mapping[int, str]) -> pa.DictionaryArray:
    """Return the meaning of each code as a dictionary array; NULL for a code without one."""
    texts = list(dict.fromkeys(meaning.values()))
    positions = pa.array([texts.index(text) for text in meaning.values()], pa.int32())
    which = pc.index_in(array, value_set=pa.array(list(meaning), pa.int64()), skip_nulls=True)
    return pa.DictionaryArray.from_arrays(positions.take(which), pa.array(texts, pa.string()))


def labelled(array: pa.Array, meaning: Mapping[int, str], kind: str) -> pa.DictionaryArray:
    """Return the meaning of each code as a dictionary array; of a code without one its `kind` and number."""
    found = array.dictionary_encode()
    texts = [meaning.get(code, f"{kind} {code}") for code in found.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(found.indices).dictionary_encode()


def constant(text: str, length: int) -> pa.DictionaryArray:
    """Return the text `length` times."""
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), length), pa.array([text], pa.string()))


def batch_of(columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Return the columns as a record batch."""
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
