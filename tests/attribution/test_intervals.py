"""Intervals around intervals, against the definition itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsightlens.attribution.intervals import Nest, at, each_once, nest
from nsightlens.columns.arrays import numbered

Rows = list[tuple[int, int, int]]
INTERVALS = st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 12), st.integers(0, 8)), max_size=14)


def _nest(rows: Rows) -> Nest:
    track, start, length = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))
    return nest(track.astype(np.int32), start, start + length)


def _ordered(rows: Rows) -> list[tuple[int, int, int, int]]:
    """(track, start, end, row) by track, start, falling end, row."""
    kept = [(track, start, start + length, row) for row, (track, start, length) in enumerate(rows) if track >= 0]
    return sorted(kept, key=lambda one: (one[0], one[1], -one[2], one[3]))


@given(INTERVALS)
def test_the_innermost_interval_around_each_is_the_last_before_it_that_ends_no_sooner(rows: Rows) -> None:
    found, ordered = _nest(rows), _ordered(rows)
    assert found.rows.tolist() == [row for *_, row in ordered]
    for place, (track, _, end, _) in enumerate(ordered):
        around = [p for p in range(place) if ordered[p][0] == track and ordered[p][2] >= end]
        assert found.above[place] == (around[-1] if around else -1)


@given(INTERVALS, st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 21), st.integers(0, 3)), max_size=8))
def test_the_innermost_interval_around_anything(rows: Rows, asked: Rows) -> None:
    ordered = _ordered(rows)
    track, start, length = (np.array([row[i] for row in asked], dtype=np.int64) for i in range(3))
    found = _nest(rows).innermost(track.astype(np.int32), start, start + length)
    for place, (t, s, d) in zip(found.tolist(), asked, strict=True):
        around = [p for p, one in enumerate(ordered) if one[0] == t and one[1] <= s and one[2] >= s + d]
        assert place == (around[-1] if around else -1)


@given(INTERVALS, st.integers(0, 1 << 14))
def test_depth_nearest_and_those_around(rows: Rows, wanted: int) -> None:
    found = _nest(rows)
    is_wanted = np.array([bool(wanted >> place & 1) for place in range(len(found.rows))], dtype=np.bool_)
    chains: list[list[int]] = []
    for above in found.above.tolist():
        chains.append([len(chains), *(chains[above] if above >= 0 else [])])
    assert found.depth().tolist() == [len(chain) - 1 for chain in chains]
    assert found.nearest(is_wanted).tolist() == [next((p for p in chain if is_wanted[p]), -1) for chain in chains]
    some = np.flatnonzero(is_wanted).astype(np.int32)
    assert found.with_those_around(some).tolist() == sorted({p for place in some.tolist() for p in chains[place]})


@pytest.mark.parametrize("shape", ["siblings", "nested", "staircase"])
def test_large_regular_shapes(shape: str) -> None:
    count = 20_000
    start = np.arange(count)
    end = {"siblings": start, "nested": 2 * count - start, "staircase": start + 7}[shape]
    found = nest(np.zeros(count, dtype=np.int32), start, end)
    assert found.above.tolist() == ([-1] * count if shape != "nested" else list(range(-1, count - 1)))
    asked = found.innermost(np.zeros(3, dtype=np.int32), np.array([0, 9, count - 1]), np.array([0, 9, count - 1]))
    assert asked.tolist() == [0, 9, count - 1]


def test_no_intervals() -> None:
    found = _nest([])
    nothing = np.zeros(0, dtype=np.int32)
    assert found.depth().tolist() == found.nearest(np.zeros(0, dtype=np.bool_)).tolist() == []
    assert found.innermost(np.array([0], dtype=np.int32), np.array([1]), np.array([2])).tolist() == [-1]
    assert found.innermost(nothing, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)).tolist() == []


def test_values_at_places_and_codes_of_pairs() -> None:
    values: Any = np.array([5, 6])
    assert at(values, np.array([1, -1, 0], dtype=np.int32)).tolist() == [6, -1, 5]
    assert at(values[:0], np.array([-1], dtype=np.int32), missing=9).tolist() == [9]
    assert numbered(np.array([1, 1, -5, 1]), np.array([1 << 60, 2, 2, 1 << 60])).tolist() == [2, 1, 0, 2]


NUMBERS = st.one_of(st.integers(-3, 9), st.integers(-(1 << 63), (1 << 63) - 1))


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=12))
def test_codes_number_the_pairs_in_their_order(pairs: list[tuple[int, int]]) -> None:
    one, other = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in range(2))
    ordered = sorted(set(pairs))
    assert numbered(one, other).tolist() == [ordered.index(pair) for pair in pairs]
    assert each_once(one).tolist() == sorted({number for number, _ in pairs if number >= 0})
