"""Times and durations of a trace (decimal microseconds) as exact integer nanoseconds.

A double holds a time with three decimals exactly up to 2^43 us (102 days: every time relative to a base, whose quarter is
shorter). Beyond that, as in files with fractions of absolute microseconds, only the decimal text is exact.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ns = npt.NDArray[np.int64]

UNKNOWN = int(np.iinfo(np.int64).min)
EXACT_US = 1 << 43
MAX_DURATION_NS = EXACT_US * 1000
MAX_START_US = (1 << 61) // 1000
"""The year 2043 as an epoch time. Sums and differences of two such times stay within 63 bits."""
_MAX_US = (1 << 63) // 1000 - 1


class InexactTime(ValueError):
    """A time was read as a double that may have lost its nanoseconds: read the text instead."""


def nanoseconds(values: list[Any]) -> Ns:
    """Return the values (us) in ns, UNKNOWN for what is no number or beyond 63 bits. Raises InexactTime."""
    if bool in set(map(type, values)):  # beside numbers numpy takes true for 1
        return _one_by_one(values)
    try:
        us = np.array(values)
    except (ValueError, OverflowError):
        return _one_by_one(values)
    if us.ndim == 1 and us.dtype == np.int64 and (not len(us) or (us.min() >= -_MAX_US and us.max() <= _MAX_US)):
        return np.asarray(us * 1000, dtype=np.int64)
    if us.ndim == 1 and us.dtype == np.float64 and bool((np.abs(us) < EXACT_US).all()):
        whole = np.trunc(us)
        return np.asarray(whole.astype(np.int64) * 1000 + np.rint((us - whole) * 1000).astype(np.int64))
    return _one_by_one(values)


def starts(values: list[Any]) -> Ns:
    """Return `nanoseconds`, UNKNOWN also beyond MAX_START_US."""
    ns = nanoseconds(values)
    return np.where(np.abs(ns) > MAX_START_US * 1000, UNKNOWN, ns)


def _one_by_one(values: list[Any]) -> Ns:
    return np.array([_nanoseconds(value) for value in values], dtype=np.int64)


def _nanoseconds(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        ns = value * 1000
    elif isinstance(value, float):
        if not abs(value) < EXACT_US:
            raise InexactTime(value)
        ns = _rounded(Decimal(repr(value)))
    elif isinstance(value, Decimal):
        ns = _rounded(value)
    elif isinstance(value, str):
        ns = _parse_decimal(value)
    else:
        return UNKNOWN
    return ns if abs(ns) <= _MAX_US * 1000 else UNKNOWN


def _rounded(us: Decimal) -> int:
    if not us.is_finite() or us.adjusted() > 18:
        return UNKNOWN
    return int((us * 1000).to_integral_value(ROUND_HALF_EVEN))


def _parse_decimal(text: str) -> int:
    try:
        return _rounded(Decimal(text))
    except InvalidOperation:
        return UNKNOWN


def are_whole(values: list[Any]) -> npt.NDArray[np.bool_]:
    """Return which times were written without a fraction: as an int, or the text of one."""
    if set(map(type, values)) == {float}:
        return np.zeros(len(values), dtype=np.bool_)
    return np.fromiter(map(_is_whole, values), np.bool_, len(values))


def from_bandwidths(durations: Ns, printed: list[Any], sizes: list[Any], bandwidths: list[Any]) -> Ns:
    """Return the durations (ns) that the bandwidths of copies and sets tell, where the written ones were cut to whole us; else
    UNKNOWN.

    Kineto computes a bandwidth (GB/s: bytes per ns) from the ns that it then cuts. printed: the durations as written (us). A
    bandwidth that is not of the bytes and of a whole number of ns less than 1 us beside that duration says nothing.
    """
    found = np.full(len(durations), UNKNOWN)
    if not any(bandwidths):
        return found
    for row in np.flatnonzero(are_whole(printed) & (durations != UNKNOWN)).tolist():
        size, bandwidth = sizes[row], bandwidths[row]
        if not (_is_positive(size) and _is_positive(bandwidth)):
            continue
        ns = round(size / bandwidth) if size / bandwidth < MAX_DURATION_NS else 0
        if ns > 0 and abs(ns - durations[row]) < 1000 and math.isclose(size / ns, bandwidth, rel_tol=1e-9):
            found[row] = ns
    return found


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, Decimal) and value.as_tuple().exponent == 0)


def since(ns: Ns, origin_ns: int) -> Ns:
    """Return the times relative to `origin_ns`."""
    return np.where(ns == UNKNOWN, UNKNOWN, ns - origin_ns)


def possible(durations: Ns) -> Ns:
    """Return the durations with negative ones and those above MAX_DURATION_NS made UNKNOWN."""
    impossible = (durations != UNKNOWN) & ((durations < 0) | (durations >= MAX_DURATION_NS))
    return np.where(impossible, UNKNOWN, durations) if impossible.any() else durations


def column(ns: Ns) -> pa.Array:
    """Return an int64 Arrow array, NULL where UNKNOWN."""
    unknown = ns == UNKNOWN
    return pa.array(ns, mask=unknown) if unknown.any() else pa.array(ns)
