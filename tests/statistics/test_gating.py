"""The gate's statistics against scipy's tests, and what they say where recordings are few, alike or uneven."""

from __future__ import annotations

from math import isclose

import numpy as np
import pytest
from scipy import stats

from nsightlens.statistics.gating import Contrast, contrast, slow_share, trimmed_mean

BASE, CANDIDATE = [1.0, 1.1, 0.9, 1.05], [1.2, 1.25, 1.1]


def test_a_tenth_is_left_out_at_either_end() -> None:
    assert trimmed_mean([100, *[2] * 8, 1]) == 2
    assert trimmed_mean([1, 2, 6]) == 3, "fewer than ten: all count"


def test_slow_steps_are_the_time_above_twice_the_median() -> None:
    assert slow_share([10] * 9 + [30]) == pytest.approx(100 * 10 / 120)
    assert slow_share([10] * 9 + [15]) == 0


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_the_interval_is_that_of_students_test(alpha: float) -> None:
    found = contrast(BASE, CANDIDATE)
    reach = stats.ttest_ind(CANDIDATE, BASE).confidence_interval(1 - alpha)
    assert found.interval(alpha) == pytest.approx((reach.low, reach.high))


def test_pairs_on_nodes_are_the_paired_test() -> None:
    base, candidate = [1.0, 2.0, 3.0, 4.0], [1.1, 2.3, 3.1, 4.2]
    found = contrast(base, candidate, ("abcd", "abcd"))
    reach = stats.ttest_rel(candidate, base).confidence_interval(0.95)
    assert found.interval() == pytest.approx((reach.low, reach.high)) and (found.nodes, found.freedom) == (4, 3)


@pytest.mark.parametrize("nodes", [("aaaa", "aaa"), ("abcd", "efg"), ("abab", "abc"), ([None] * 4, [None] * 3)])
def test_nodes_that_not_all_share_are_not_paired(nodes: tuple[str, str]) -> None:
    assert contrast(BASE, CANDIDATE, nodes) == contrast(BASE, CANDIDATE)


def test_of_one_each_and_of_recordings_that_do_not_vary_no_error_is_known() -> None:
    for sides, freedom in ((([1.0], [2.0]), 0), (([0.0] * 3, [0.0] * 3), 4), (([7e6] * 3, [7e6] * 2), 3)):
        found = contrast(*sides)
        assert (found.error, found.interval(), found.freedom) == (None, None, freedom)


def test_one_side_that_varies_more_is_uneven() -> None:
    ten = np.linspace(-1, 1, 10).tolist()
    assert contrast(ten, [-8.0, 0.0, 8.0]).is_uneven
    assert not contrast(ten, [-1.0, 0.0, 1.0]).is_uneven
    assert contrast([-8.0, 0.0, 8.0], ten).is_uneven, "whichever side it is"
    assert not contrast(ten, [0.0, 0.01, 0.02]).is_uneven, "the side with more may vary more"
    assert not contrast(ten, [8.0]).is_uneven


def test_uneven_sides_are_compared_with_the_fewest_degrees_of_freedom() -> None:
    """The interval covers Welch's."""
    ten, three = np.linspace(-1, 1, 10).tolist(), [-8.0, 0.0, 8.0]
    span, welch = contrast(ten, three).interval(), stats.ttest_ind(three, ten, equal_var=False).confidence_interval(0.95)
    assert span is not None and span[0] <= welch.low < welch.high <= span[1]


def test_what_could_have_been_shown_is_shown_in_four_of_five_cases() -> None:
    """By simulation: at that true difference the lower end of the interval is above 0 in 80 %."""
    random = np.random.default_rng(4)
    known = Contrast(0.0, (2 / 5) ** 0.5, 1.0, 8, (5, 5))
    true = known.smallest_shown(0.05)
    assert true is not None
    shown = sum(span[0] > 0 for span in (contrast(random.normal(0, 1, 5).tolist(), random.normal(true, 1, 5).tolist()).interval()
                                         for _ in range(600)) if span)
    assert isclose(shown / 600, 0.8, abs_tol=0.05)


def test_how_many_would_decide_is_said_from_three_of_each_on() -> None:
    few, enough = contrast([1.0, 1.1], [1.1, 1.2]), contrast([1.0, 1.1, 0.9], [1.02, 1.1, 0.95])
    assert few.needed(0.03, 0.05) is None
    needed = enough.needed(0.2, 0.05)
    assert needed is not None and needed > 3
    assert enough.needed(enough.difference, 0.05) is None, "a difference at the limit is decided by no number"
