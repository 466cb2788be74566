"""Lists of decoded values -> Arrow columns; what is not of the column's type becomes NULL, never something else.

Each function tries Arrow's own conversion first, and looks at single values only where that refuses.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa

from nsightlens.readers.kineto.times import UNKNOWN, Ns

_REFUSED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeEncodeError)
_TEXT = pa.dictionary(pa.int32(), pa.string())
_Int32 = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
_Triple = tuple[_Int32 | None, _Int32 | None, _Int32 | None]
_SCALAR = re.compile(r"(?:[\[\](),\s]|[-+]?(?:\d[\d.]*+(?:e[-+]?\d++)?j?|inf|nan)|True|False|None)*+", re.ASCII | re.IGNORECASE)
_TYPE = re.compile(
    r"(?:(?:bool|char|double|float|int|long|short|signed|unsigned|void)(?:\s|(?!\w)))+|(?:c10|at|std)::[\w:<> ,]++"
    r"|__torch__[\w.]*+|(?:Any|Bool|Capsule|Complex|Device|Double|Enum|Future|Generator|Generic|Int|None|Object|Quantizer|Scalar|Storage"
    r"|Stream|String|Sym|Tensor|Tuple|Float|List|Dict|Type|Optional|nullptr|_t|[\[\](),])*+", re.ASCII)
"""Names of types as PyTorch writes them: of C++, of its own libraries, and of TorchScript."""
_ADDRESS = re.compile(r"0x[\da-f]{1,16}", re.IGNORECASE)
_END = b"\0"
_SHORT = 1 << 12
_REMEMBERED = 1 << 12


class Odd:
    """What stands in the place of numbers and is none, or is no integer as Kineto writes one: how many since the last `taken`.

    Columns are made in many places; each process makes those of one chunk after the other.
    """

    _count = 0

    @classmethod
    def note(cls, count: int) -> None:
        """Count so many more."""
        cls._count += count

    @classmethod
    def taken(cls) -> int:
        """Return how many, and begin again at 0."""
        count, cls._count = cls._count, 0
        return count


def integers(values: Sequence[Any], type_: pa.DataType | None = None) -> pa.Array:
    """Return an integer column (int64 by default); whole floats and decimal strings count as integers."""
    type_ = type_ or pa.int64()
    try:
        column = pa.array(values)  # with its type given, Arrow would cut 1.5 to 1
        if pa.types.is_integer(column.type) or pa.types.is_null(column.type):
            return column.cast(type_)
    except _REFUSED:
        pass
    low, high = -(1 << (type_.bit_width - 1)), (1 << (type_.bit_width - 1)) - 1
    whole = [integer(value) for value in values]
    fitting = [number if number is not None and low <= number <= high else None for number in whole]
    Odd.note(sum(value is not None and not _is_address(value) and (number is None or isinstance(value, float))
                 for value, number in zip(values, fitting, strict=True)))
    return pa.array(fitting, type_)


def _is_address(value: Any) -> bool:
    """Return whether a context or queue is named by its address, as on Intel's GPUs, and not by a number."""
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


def numbers(values: Sequence[Any], are_integers: bool) -> Ns:
    """Return `integers` as int64 with UNKNOWN for NULL. are_integers: all values are integers or None for certain."""
    if are_integers:
        with suppress(TypeError, OverflowError):  # there is a None, or a number beyond 63 bits
            return np.array(values, dtype=np.int64)
    column = integers(values)
    return np.asarray((column.fill_null(UNKNOWN) if column.null_count else column).to_numpy())


def tracks(values: Sequence[Any], are_integers: bool) -> Ns:
    """Return `numbers` of tracks: pids and tids. A text such as "stream 7" labels one, and is no odd value."""
    if are_integers:
        return numbers(values, are_integers)
    return numbers([None if isinstance(value, str) and integer(value) is None else value for value in values], are_integers)


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
        found = [_float(value) for value in values]
        Odd.note(sum(number is None and not _is_infinite(value) for value, number in zip(values, found, strict=True)))
        return pa.array(found, pa.float64())


def _is_infinite(value: Any) -> bool:
    """Return whether the value is absent, or one that Kineto writes where it divided by zero."""
    return value is None or (isinstance(value, float) and not math.isfinite(value)) or value in ("inf", "-inf", "nan", "N/A")


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
        return pa.array(values, _TEXT)
    except _REFUSED:
        return pa.array([_text(value) for value in values], _TEXT)


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def repeated(values: Sequence[str | None]) -> pa.DictionaryArray:
    """Return a text column of values of which there are few distinct ones."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) == 1:
        codes = np.zeros(len(values), dtype=np.int32)
    else:
        code_of = {value: code for code, value in enumerate(distinct)}
        codes = np.fromiter(map(code_of.__getitem__, values), np.int32, len(values))
    known = pa.array(distinct, _TEXT)
    return pa.DictionaryArray.from_arrays(known.indices.take(pa.array(codes)), known.dictionary)


def triples(raws: Sequence[msgspec.Raw | None]) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return three int32 columns; NULL for what is not a list of three whole numbers."""
    column = _distinct(raws)
    found = [_triple(raw) for raw in column.dictionary.to_pylist()]
    odd = [raw not in (b"", b"null" + _END, _END) and None in triple
           for raw, triple in zip(column.dictionary.to_pylist(), found, strict=True)]
    if any(odd):
        Odd.note(int(np.count_nonzero(np.array(odd)[column.indices.to_numpy()])))
    x, y, z = (pa.array(numbers, pa.int32()).take(column.indices) for numbers in zip(*found, strict=True))
    return x, y, z


@lru_cache(_REMEMBERED)
def _triple(raw: bytes) -> tuple[int | None, ...]:
    """Return the three numbers, NULLs for anything else; a number may be null."""
    try:
        found: tuple[int | None, ...] = msgspec.json.decode(raw.removesuffix(_END), type=_Triple)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None, None, None
    return found


def scalar_texts(raws: Sequence[msgspec.Raw | None]) -> pa.DictionaryArray:
    """Return a text column of raw JSON lists of scalars as Kineto prints them: "2.", "[True, 1]"; empty texts for what is none.

    An operator's arguments may be texts of any kind, secrets among them; no rule of ours reads one.
    """
    return mapped(_distinct(raws), partial(_allowed, _SCALAR))


def type_texts(raws: Sequence[msgspec.Raw | None]) -> pa.DictionaryArray:
    """Return a text column of raw JSON lists of the names of types, likewise: "c10::Half", "ScalarList"."""
    return mapped(_distinct(raws), partial(_allowed, _TYPE))


def _allowed(texts: re.Pattern[str], raw: bytes) -> str | None:
    return _short_allowed(texts, raw) if len(raw) < _SHORT else _any_allowed(texts, raw)


def _any_allowed(texts: re.Pattern[str], raw: bytes) -> str | None:
    try:
        value = msgspec.json.decode(raw.removesuffix(_END), type=list[Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return json.dumps([_each_allowed(texts, each) for each in value])


_short_allowed = lru_cache(_REMEMBERED)(_any_allowed)


def _each_allowed(texts: re.Pattern[str], value: Any) -> Any:
    if isinstance(value, list):
        return [_each_allowed(texts, each) for each in value]
    return value if value is None or isinstance(value, int | float) or texts.fullmatch(str(value)) else ""


def _distinct(raws: Sequence[msgspec.Raw | None]) -> pa.DictionaryArray:
    """Return a column of the bytes of raw JSON values, empty where absent, _END (a NUL, which no JSON holds) behind each."""
    if not any(raws):
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(raws), np.int32)), pa.array([_END], pa.binary()))
    joined = _END.join([b"" if raw is None else raw for raw in raws] + [b""])
    ends = np.flatnonzero(np.frombuffer(joined, np.uint8) == 0) + 1
    offsets = np.concatenate([np.zeros(1, np.int32), ends.astype(np.int32)])
    return pa.Array.from_buffers(pa.binary(), len(raws), [None, pa.py_buffer(offsets), pa.py_buffer(joined)]).dictionary_encode()


def mapped(column: pa.DictionaryArray, of: Callable[[Any], str | None]) -> pa.DictionaryArray:
    """Return the text column of of(value), worked out once per distinct value; NULL stays NULL."""
    distinct = pa.array([of(value) for value in column.dictionary.to_pylist()], _TEXT)
    return pa.DictionaryArray.from_arrays(distinct.indices.take(column.indices), distinct.dictionary)
