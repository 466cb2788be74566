"""Where a series changed its level: the stretch that differs most from the rest, again within each part, by a permutation test.

A stretch counts where fewer than 1 % of the orders of the same values have one that differs as much (circular binary segmentation
of Olshen et al., 2004; a stretch at an end weighs more). So a series without a change, whose values are exchangeable, is said to
have one in 1 % at most, whatever their distribution. Values that depend on their neighbours (a node that drifts) are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from nsightlens.columns.arrays import Float, Int

LEVEL = 0.01
FEWEST = 10
"""Values from which on a change can be beyond chance: of nine, hardly one order in a hundred is as extreme."""
_LEAST = 3
"""Values of a level: one or two that are off are none."""
_INNER = 0.7
"""Weight of a stretch with values on both sides: there are many more of these, and a change that lasts has none."""
_ORDERS, _AT_ONCE = 499, 50
_SEED = 37


def change_points(values: Sequence[float]) -> list[int]:
    """Return the places of the first values after each change, ascending. Time grows with the square of the values."""
    series = np.asarray(values, dtype=np.float64)
    random = np.random.default_rng(_SEED)
    found, parts = [0, len(series)], [(0, len(series))]
    while parts:
        first, end = parts.pop()
        if ends := _stretch(series[first:end], random):
            found += [first + place for place in ends]
            parts += pairwise([first, *(first + place for place in ends), end])
    return _confirmed(series, sorted({*found}), random)


def _stretch(series: Float, random: np.random.Generator) -> list[int]:
    """Return the ends, within the series, of the stretch that differs beyond chance; none where there is none."""
    count = len(series)
    if count < FEWEST:
        return []
    places = np.array([0, *range(_LEAST, count - _LEAST + 1), count])
    centred = series - series.mean()
    most, first, end = _farthest(centred[None, :], places)
    if _is_flat(series, float(most[0])):
        return []
    if not _is_beyond(float(most[0]), centred, random, lambda rows: _farthest(rows, places)[0]):
        return []
    return [int(place) for place in (first[0], end[0]) if 0 < place < count]


def _farthest(rows: Float, places: Int) -> tuple[Float, Int, Int]:
    """Return the largest sum of squares between a stretch and the rest, of rows with a mean of 0, and where the stretch lies."""
    count = rows.shape[1]
    sums = np.pad(np.cumsum(rows, axis=1), ((0, 0), (1, 0)))[:, places]
    most, first, last = np.full(len(rows), -1.0), np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for apart in range(1, len(places)):
        length = places[apart:] - places[:-apart]
        fits = (length >= _LEAST) & (length <= count - _LEAST)
        if not fits.any():
            continue
        weight = np.where((places[:-apart] == 0) | (places[apart:] == count), 1, _INNER) * count / (length * (count - length))
        between = (sums[:, apart:] - sums[:, :-apart])[:, fits] ** 2 * weight[fits]
        at = between.argmax(axis=1)
        largest = between[np.arange(len(rows)), at]
        more = largest > most
        most = np.where(more, largest, most)
        begin = np.flatnonzero(fits)[at]
        first, last = np.where(more, begin, first), np.where(more, begin + apart, last)
    return most, places[first], places[last]


def _is_flat(series: Float, most: float) -> bool:
    """Return whether values differ by rounding only."""
    return most <= len(series) * (1e-12 * float(np.abs(series).max())) ** 2


def _is_beyond(most: float, centred: Float, random: np.random.Generator, measure: Callable[[Float], Float]) -> bool:
    """Return whether fewer orders than the level allows measure as much."""
    as_much = done = 0
    while done < _ORDERS:
        count = min(_AT_ONCE, _ORDERS - done)
        orders = random.permuted(np.broadcast_to(centred, (count, len(centred))), axis=1)
        as_much += int((measure(orders) >= most * (1 - 1e-9)).sum())
        done += count
        if 1 + as_much > LEVEL * (_ORDERS + 1):
            return False
    return True


def _confirmed(series: Float, found: list[int], random: np.random.Generator) -> list[int]:
    """Return the places found, between the ends of the series, without those whose neighbouring levels do not differ: the farther
    end of a stretch may be none."""
    while True:
        weak = next((place for before, place, after in zip(found, found[1:], found[2:], strict=False)
                     if not _differ(series[before:after], place - before, random)), None)
        if weak is None:
            return found[1:-1]
        found = [place for place in found if place != weak]


def _differ(series: Float, place: int, random: np.random.Generator) -> bool:
    centred = series - series.mean()
    most = float(centred[:place].sum() ** 2)
    return not _is_flat(series, most / len(series)) and _is_beyond(
        most, centred, random, lambda rows: np.asarray(rows[:, :place].sum(axis=1) ** 2))
