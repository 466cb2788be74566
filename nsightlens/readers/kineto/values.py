"""Lists of decoded values -> Arrow columns; what is not of the column's type becomes NULL, never something else.

Each function tries Arrow's own conversion first, and looks at single values only where that refuses.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

_REFUSED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeEncodeError)


def integers(values: Sequence[Any], type_: pa.DataType | None = None) -> pa.Array:
    """Return an integer column (int64 unless told); whole floats and decimal strings count as integers."""
    type_ = type_ or pa.int64()
    try:
        column = pa.array(values)  # with its type given, Arrow would cut 1.5 to 1
        if pa.types.is_integer(column.type) or pa.types.is_null(column.type):
            return column.cast(type_)
    except _REFUSED:
        pass
    low, high = -(1 << (type_.bit_width - 1)), (1 << (type_.bit_width - 1)) - 1
    whole = [integer(value) for value in values]
    return pa.array([v if v is not None and low <= v <= high else None for v in whole], type_)


def integer(value: Any) -> int | None:
    """Return the value as an int, None where it is none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    text = value.strip() if isinstance(value, str) else ""
    return int(text) if text.removeprefix("-").isdecimal() and text.isascii() and len(text) <= 20 else None


def floats(values: Sequence[Any]) -> pa.Array:
    """Return a float64 column; infinities and NaN, bare or as text, are NULL."""
    try:
        return pa.array(values, pa.float64())
    except _REFUSED:
        return pa.array([_float(value) for value in values], pa.float64())


def _float(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def texts(values: Sequence[Any]) -> pa.DictionaryArray:
    """Return a text column; numbers become their text."""
    try:
        column = pa.array(values, pa.string())
    except _REFUSED:
        column = pa.array([_text(value) for value in values], pa.string())
    return column.dictionary_encode()


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def triples(values: Sequence[Any]) -> pa.Array:
    """Return a column of three int32 each; NULL for what is not a list of three whole numbers."""
    type_ = pa.list_(pa.int32(), 3)
    try:
        return pa.array(values).cast(type_)
    except _REFUSED:
        return pa.array([value if _is_triple(value) else None for value in values], type_)


def _is_triple(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(type(n) is int and 0 <= n < 1 << 31 for n in value)


def json_texts(raws: Iterable[msgspec.Raw | None]) -> pa.DictionaryArray:
    """Return a text column of raw JSON values, spaced the one way Kineto does it; absent and null are NULL."""
    column = pa.array([None if raw is None else bytes(raw) for raw in raws], pa.binary()).dictionary_encode()
    return mapped(column, _spaced)


def _spaced(raw: bytes) -> str | None:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return raw.decode("utf-8", "replace")
    return None if value is None else json.dumps(value, ensure_ascii=False)


def mapped(column: pa.DictionaryArray, of: Callable[[Any], str | None]) -> pa.DictionaryArray:
    """Return the text column of of(value), worked out once per distinct value; NULL stays NULL."""
    distinct = pa.array([of(value) for value in column.dictionary.to_pylist()], pa.string())
    return pc.take(distinct, column.indices).dictionary_encode()
