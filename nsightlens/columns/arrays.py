"""The arrays that columns are computed in: their types, NULL among integers, numbers for values, stretches, the hash of a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Int = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Hash = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int32]
"""Numbers of rows, from 0; -1 where there is none."""
_Kind = TypeVar("_Kind", bound=np.generic)

MISSING = np.iinfo(np.int64).min
"""NULL in an integer array."""
_DENSE = 4
"""Integers are dense where their span is at most so many times their number."""
_MANY = 1000
"""Values of a group from which on its median is found by itself, in linear time."""
_MISSING_32 = np.iinfo(np.int32).min
_SORTED_BY_DIGITS = 1 << 16
"""Numbers below this are sorted in linear time."""
CHUNK_ROWS = 1 << 17
"""Rows of a long column that are held in memory at once."""


def row_chunks(rows: int) -> Iterator[slice]:
    """Yield slices of some 100,000 rows that make up all rows: what is computed a stretch at a time needs little memory."""
    return (slice(first, min(first + CHUNK_ROWS, rows)) for first in range(0, rows, CHUNK_ROWS))


def integers(column: pa.Array) -> Int:
    """Return an integer column as int64, NULL as MISSING."""
    if column.null_count:
        column = pc.fill_null(column.cast(pa.int64()), MISSING)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


def nullable(values: Int) -> pa.Array:
    """Return an int64 Arrow array with MISSING as NULL."""
    missing = values == MISSING
    return pa.array(values, mask=missing) if missing.any() else pa.array(values)


def narrow(values: Int) -> npt.NDArray[Any]:
    """Return integers in 32 bits each where they fit, MISSING as the least of them."""
    low, high = values.min(initial=0), values.max(initial=0)
    if low == MISSING:
        low = values.min(initial=0, where=values != MISSING)
        values = np.maximum(values, _MISSING_32) if low > _MISSING_32 else values
    return values.astype(np.int32) if low > _MISSING_32 and high <= np.iinfo(np.int32).max else values


def wide(values: npt.NDArray[Any]) -> Int:
    """Return what `narrow` was given."""
    if values.dtype == np.int64:
        return values
    return np.where(values == _MISSING_32, MISSING, values.astype(np.int64))


def distinct(column: pa.ChunkedArray) -> tuple[Int, list[Any]]:
    """Return a number for each value of a column, and the value of each number; NULL has -1, and None is the last of them."""
    encoded = column.combine_chunks().dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    return codes, [*encoded.dictionary.to_pylist(), None]


def encoded(table: pa.Table) -> pa.Table:
    """Return a table with its columns of text as one dictionary each: small, and numbered already."""
    return pa.table({name: column.combine_chunks().dictionary_encode() if pa.types.is_string(column.type) else column
                     for name, column in zip(table.column_names, table.columns, strict=True)})


def numbered(*columns: npt.NDArray[Any]) -> Places:
    """Return a number for each row of integers, from 0: equal rows have equal numbers, and their order is that of the rows."""
    found = _ranks(columns[0])
    for column in columns[1:]:
        others, pairs = _ranks(column), found.astype(np.int64)
        pairs *= int(others.max(initial=0)) + 1
        pairs += others
        found = _ranks(pairs)
    return found


def _ranks(values: npt.NDArray[Any]) -> Places:
    """Return the place of each integer among the distinct ones in order, from 0."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if high - low <= _DENSE * len(values):  # as ids mostly are: no sort is needed
        offset = (values - values.dtype.type(low)).astype(np.int32)
        is_there = np.zeros(high - low + 1, dtype=np.bool_)
        is_there[offset] = True
        rank_of = np.cumsum(is_there, dtype=np.int32)
        rank_of -= 1
        ranks: Places = rank_of[offset]
    else:
        ranks = np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int32)
    return ranks


def sorted_places(first: Int, *ties: Int) -> Int:
    """Return the places of integers in ascending order; equal ones by the columns of `ties` in turn, then as they lie."""
    order = np.argsort(first, kind="stable")
    equal = first[order[1:]] == first[order[:-1]]
    if ties and equal.any():
        some = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        rows = order[some]
        order[some] = rows[np.lexsort([*(column[rows] for column in reversed(ties)), first[rows]])]
    return order


def distinct_pairs(first: Int, second: Int) -> list[tuple[int, int]]:
    """Return the pairs of two columns, ascending."""
    return [(one, other) for one in np.unique(first).tolist() for other in np.unique(second[first == one]).tolist()]


def split(places: npt.NDArray[_Kind], keys: npt.NDArray[Any]) -> list[tuple[int, npt.NDArray[_Kind]]]:
    """Return each distinct key in order, and the places that have it (keys[i] is that of places[i]) in their order."""
    if not len(places):
        return []
    if np.any(keys[1:] < keys[:-1]):
        codes = _ranks(keys)
        order = np.argsort(codes.astype(np.uint16) if codes.max() < _SORTED_BY_DIGITS else codes, kind="stable")
        places, keys = places[order], keys[order]
    first = np.concatenate([[0], np.flatnonzero(keys[1:] != keys[:-1]) + 1])
    return list(zip(keys[first].tolist(), np.split(places, first[1:]), strict=True))


def medians(values: Int, group: npt.NDArray[Any], groups: int) -> Int:
    """Return the median of each group's values, rounded (half to even); MISSING where a group has none."""
    found = np.full(groups, MISSING)
    if len(values) > _MANY * groups:
        for number, mine in split(values, group):
            found[number] = median(mine)
        return found
    known = np.flatnonzero(values != MISSING)
    known = known[np.lexsort((values[known], group[known]))]
    count = np.bincount(group[known], minlength=groups)
    begin = np.cumsum(count) - count
    some = count > 0
    low, high = (values[known[(begin + (count - even) // 2)[some]]] for even in (1, 0))
    found[some] = low + np.rint((high - low) / 2 + low % 2).astype(np.int64) - low % 2
    return found


def median(values: Int) -> int:
    """Return the median of the known values, rounded (half to even); MISSING where there is none."""
    known = values[values != MISSING]
    if not len(known):
        return MISSING
    low, high = (len(known) - 1) // 2, len(known) // 2
    known.partition((low, high))
    middle, odd = divmod(int(known[low]) + int(known[high]), 2)
    return middle + (odd & middle)


def sums(values: npt.NDArray[Any], start: Int) -> Int:
    """Return the sum of each stretch of integers from `start` on; MISSING where it has one, or more than 63 bits."""
    total, rough = (np.add.reduceat(values, start, dtype=kind) for kind in (np.int64, np.float64))
    fits = np.abs(total - rough) < 2.0**62
    return np.where(fits & (np.minimum.reduceat(values, start) != MISSING), total, MISSING)


def lookup(indices: npt.NDArray[Any], values: Sequence[str | None]) -> pa.DictionaryArray:
    """Return values[indices] as dictionary text; a None value is NULL."""
    known = list(dict.fromkeys(v for v in values if v is not None))
    codes = {value: code for code, value in enumerate(known)}
    table = np.array([codes[v] if v is not None else -1 for v in values], dtype=np.int32)
    chosen = table[indices] if len(table) else np.full(len(indices), -1, dtype=np.int32)
    mask = chosen < 0
    return pa.DictionaryArray.from_arrays(pa.array(chosen, mask=mask if mask.any() else None), pa.array(known, pa.string()))


def hash_rows(columns: Iterable[Int], rows: int) -> Hash:
    """Return a 64-bit hash of each row of the columns: equal rows have equal hashes."""
    mixed: Hash = np.zeros(rows, dtype=np.uint64)
    for column in columns:
        mixed ^= column.view(np.uint64)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed
