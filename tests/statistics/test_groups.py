"""Statistics of groups are those that NumPy and Python have of each group."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsightlens.statistics.groups import counts, deviations, quantile, to_one_decimal, together

GROUPS = st.lists(st.lists(st.integers(0, 10**12), min_size=1, max_size=7), max_size=6)


@given(GROUPS)
def test_groups_have_what_each_has_alone(groups: list[list[int]]) -> None:
    values = np.array([value for group in groups for value in sorted(group)], np.int64)
    first = np.cumsum([0, *map(len, groups)], dtype=np.int64)[:-1]
    assert counts(values, first).tolist() == list(map(len, groups))
    for share in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert quantile(values, first, share).tolist() == [float(np.quantile(group, share)) for group in groups]
    expected = [float(np.std(group, ddof=1)) if len(group) > 1 else 0.0 for group in groups]
    assert deviations(values, first).tolist() == pytest.approx(expected, rel=1e-9, abs=1e-6)


@given(st.lists(st.tuples(st.sampled_from((0, 3, 7, 2**40)), st.sampled_from((-(2**60), -3, 0, 1, 5, 2**20, 2**60)))))
def test_values_lie_together_by_group(pairs: list[tuple[int, int]]) -> None:
    group, values = np.array(pairs, np.int64).reshape(-1, 2).T
    names, first, ordered = together(group, values)
    assert np.repeat(names, counts(ordered, first)).tolist() == sorted(group.tolist())
    assert ordered.tolist() == [value for _, value in sorted(pairs)]


@given(st.lists(st.one_of(st.floats(-1e17, 1e17), st.integers(-10**6, 10**6).map(lambda number: number / 20),
                          st.integers(0, 10**15).map(lambda number: number / 8))))
def test_one_decimal_is_what_python_says(values: list[float]) -> None:
    assert to_one_decimal(np.array(values, np.float64)).tolist() == [round(value, 1) for value in values]
