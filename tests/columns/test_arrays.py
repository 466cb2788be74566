"""Numbers for values, stretches of keys, medians and sums, against plain Python."""

from __future__ import annotations

import statistics

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsightlens.columns.arrays import (
    MISSING,
    distinct,
    distinct_pairs,
    medians,
    narrow,
    numbered,
    sorted_places,
    split,
    sums,
    wide,
)


@pytest.mark.parametrize("seed", range(5))
def test_medians_are_those_of_python(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, group = rng.integers(0, 50, 60), rng.integers(0, 8, 60)
    values[rng.random(60) < 0.2] = MISSING
    expected = []
    for number in range(8):
        mine = [value for value in values[group == number].tolist() if value != MISSING]
        expected.append(round(statistics.median(mine)) if mine else MISSING)
    assert medians(values, group, 8).tolist() == expected


@pytest.mark.parametrize("low", [-3, 2**62])
def test_medians_of_many_values_are_those_of_python(low: int) -> None:
    """An odd number of values in one group, even numbers in two, none in the last; a half goes to the even side."""
    rng = np.random.default_rng(1)
    values = low + rng.integers(0, 1_000_000, 8_001)
    group = np.repeat(np.arange(3), [2_001, 3_000, 3_000])
    values[4_999] = MISSING
    expected = []
    for number in range(3):
        mine = sorted(value for value in values[group == number].tolist() if value != MISSING)
        twice = mine[(len(mine) - 1) // 2] + mine[len(mine) // 2]
        expected.append(twice // 2 + (twice % 2 and twice // 2 % 2))
    assert medians(values, group, 4).tolist() == [*expected, MISSING]


@pytest.mark.parametrize(("values", "bits"), [
    ([0, -5, 2**31 - 1], 32), ([MISSING, 7], 32), ([2**31], 64), ([-(2**31)], 64), ([MISSING, -(2**31)], 64), ([], 32)])
def test_narrow_integers_are_what_they_were(values: list[int], bits: int) -> None:
    found = narrow(np.array(values, dtype=np.int64))
    assert (found.dtype.itemsize * 8, wide(found).tolist()) == (bits, values)


def test_values_have_numbers_and_null_has_none() -> None:
    codes, values = distinct(pa.chunked_array([["b", None], ["a", "b"]]))
    assert (codes.tolist(), [values[code] for code in codes]) == ([0, -1, 1, 0], ["b", None, "a", "b"])


def test_rows_are_numbered_in_their_order() -> None:
    rows = [(3, -1), (1, 5), (3, -1), (1, 2), (MISSING, 9)]
    expected = [sorted(set(rows)).index(row) for row in rows]
    assert numbered(*(np.array(column) for column in zip(*rows, strict=True))).tolist() == expected


def test_places_are_split_by_key_in_their_order() -> None:
    places, keys = np.array([9, 8, 7, 6, 5]), np.array([2, 0, 2, 0, 1])
    assert [(key, part.tolist()) for key, part in split(places, keys)] == [(0, [8, 6]), (1, [5]), (2, [9, 7])]
    assert split(places[:0], keys[:0]) == []


@pytest.mark.parametrize("values", [3, 1 << 16, (1 << 16) + 1, 1 << 20])
@pytest.mark.parametrize("step", [1, 1 << 40])
def test_many_places_are_split_as_a_stable_sort_splits_them(values: int, step: int) -> None:
    random = np.random.default_rng(values)
    keys = (random.integers(0, values, 200_000) - values // 2) * step
    keys[:values] = (np.arange(min(values, len(keys))) - values // 2) * step
    found = split(np.arange(len(keys)), keys)
    assert np.array_equal(np.concatenate([part for _, part in found]), np.argsort(keys, kind="stable"))
    assert [key for key, _ in found] == np.unique(keys).tolist()
    assert all(np.all(keys[part] == key) for key, part in found)


def test_numbers_of_rows_do_not_overflow() -> None:
    far = np.array([MISSING, np.iinfo(np.int64).max, 0, MISSING], dtype=np.int64)
    assert numbered(far, far[::-1], far).tolist() == [0, 2, 1, 0]


@pytest.mark.parametrize("values", [[1 << 62, (1 << 62) - 1], [(1 << 53) + 1, 2], [MISSING + 1, -1], [True, True]])
def test_sums_are_exact_up_to_63_bits(values: list[int]) -> None:
    assert sums(np.array([*values, 7]), np.array([0, 2])).tolist() == [sum(values), 7]


@pytest.mark.parametrize("values", [[1 << 62, 1 << 62], [MISSING, 5 << 60], [1 << 62] * 4, [MISSING + 1, -2]])
def test_a_sum_of_more_bits_or_of_what_is_missing_is_missing(values: list[int]) -> None:
    assert sums(np.array([*values, 7]), np.array([0, len(values)])).tolist() == [MISSING, 7]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.integers(0, 1)), max_size=30))
def test_places_are_sorted_by_each_column_in_turn_and_equal_rows_stay_as_they_lie(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[place] for row in rows], np.int64) for place in range(3)]
    assert sorted_places(*columns).tolist() == sorted(range(len(rows)), key=lambda place: rows[place])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), max_size=30))
def test_pairs_are_distinct_and_ascending(rows: list[tuple[int, int]]) -> None:
    first, second = (np.array([row[place] for row in rows], np.int64) for place in range(2))
    assert distinct_pairs(first, second) == sorted(set(rows))
