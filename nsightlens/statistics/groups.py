"""Statistics of many groups of integers at once: the values of a group lie together, and `first` has where each begins."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nsightlens.columns.arrays import Float, Int

_BITS = 64
_LARGEST = 2.0**52
"""Tenths above this are whole in a double as they are."""
_UNSURE = 1e-6
"""How near to a half tenths may be, rounded themselves, for Python to say which way they go."""


def together(group: Int, values: Int) -> tuple[Int, Int, Int]:
    """Return the groups (numbers from 0) in order, where each begins, and the values by group, ascending."""
    low = int(values.min(initial=0))
    bits = (int(values.max(initial=0)) - low).bit_length()
    if int(group.max(initial=0)).bit_length() + bits < _BITS:  # as one integer each they are sorted in a third of the time
        both = np.sort((group << bits) | (values - low))
        group, values = both >> bits, (both & ((1 << bits) - 1)) + low
    else:
        order = np.lexsort((values, group))
        group, values = group[order], values[order]
    first = np.flatnonzero(np.diff(group, prepend=-1))
    return group[first], first, values


def counts(values: Int, first: Int) -> Int:
    """Return how many values each group has."""
    return np.diff(first, append=len(values))


def quantile(values: Int, first: Int, share: float) -> Float:
    """Return a quantile of each group, interpolated linearly between the two nearest. values: ascending within each group."""
    count = counts(values, first)
    place = (count - 1) * share
    below = np.floor(place).astype(np.int64)
    part = place - below
    low, high = values[first + below], values[first + np.minimum(below + 1, count - 1)]
    found: Float = np.where(part < 0.5, low + (high - low) * part, high - (high - low) * (1 - part))  # as NumPy does
    return found


def deviations(values: Int, first: Int) -> Float:
    """Return the sample standard deviation (n - 1) of each group; 0 for a single value."""
    count = counts(values, first)
    mean = np.add.reduceat(values, first) / count if len(first) else np.zeros(0)
    squares = (values - np.repeat(mean, count)) ** 2
    total = np.add.reduceat(squares, first) if len(first) else squares
    found: Float = np.sqrt(total / np.maximum(count - 1, 1))
    return found


def to_one_decimal(values: npt.NDArray[np.float64]) -> Float:
    """Return values rounded as Python does; NumPy multiplies by 10 first, so that 0.65 may go the other way."""
    tenths = values * 10
    found = np.rint(tenths) / 10
    from_half = np.abs(tenths - np.floor(tenths) - 0.5)
    unsure = (np.abs(tenths) >= _LARGEST) | (from_half <= np.maximum(_UNSURE, np.abs(tenths) * 1e-15))
    found[unsure] = [round(value, 1) for value in values[unsure].tolist()]
    return found
