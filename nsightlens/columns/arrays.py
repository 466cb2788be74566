"""The arrays that derived columns are computed in: their types, NULL among integers, stretches of rows, the hash of a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

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

MISSING = np.iinfo(np.int64).min
"""NULL in an integer array."""
STRETCH = 1 << 17
"""Rows of a long column that are held in memory at once."""


def stretches(rows: int) -> Iterator[slice]:
    """Yield slices of some 100,000 rows that make up all rows: what is computed a stretch at a time needs little memory."""
    return (slice(first, min(first + STRETCH, rows)) for first in range(0, rows, STRETCH))


def integers(column: pa.Array) -> Int:
    """Return an integer column as int64, NULL as MISSING."""
    if column.null_count:
        column = pc.fill_null(column.cast(pa.int64()), MISSING)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


def nullable(values: Int) -> pa.Array:
    """Return an int64 Arrow array with MISSING as NULL."""
    missing = values == MISSING
    return pa.array(values, mask=missing) if missing.any() else pa.array(values)


def lookup(indices: npt.NDArray[Any], values: Sequence[str | None]) -> pa.DictionaryArray:
    """Return values[indices] as dictionary text; a None value is NULL."""
    distinct = list(dict.fromkeys(v for v in values if v is not None))
    codes = {value: code for code, value in enumerate(distinct)}
    table = np.array([codes[v] if v is not None else -1 for v in values], dtype=np.int32)
    chosen = table[indices] if len(table) else np.full(len(indices), -1, dtype=np.int32)
    mask = chosen < 0
    return pa.DictionaryArray.from_arrays(pa.array(chosen, mask=mask if mask.any() else None), pa.array(distinct, pa.string()))


def hash_rows(columns: Iterable[Int], rows: int) -> Hash:
    """Return a 64-bit hash of each row of the columns: equal rows have equal hashes."""
    mixed: Hash = np.zeros(rows, dtype=np.uint64)
    for column in columns:
        mixed ^= column.view(np.uint64)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed
