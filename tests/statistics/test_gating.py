"""The gate's statistics against scipy's tests, and what they say where recordings are few, alike or uneven."""

from __future__ import annotations

from math import isclose

import numpy as np
import pytest
from scipy import stats

from nsightlens.statistics.gating import Contrast, contrast, slow_share, trimmed_mean

BASE, CANDIDATE = [1.0, 1.1, 0.9, 1.05], [1.2, 1.25, 1.1]
FIVE = [1.0, 1.1, 0.9, 1.05, 1.2], [1.2, 1.25, 1.1, 1.0, 1.3]


def test_a_tenth_is_left_out_at_either_end() -> None:
    assert trimmed_mean([100, *[2] * 8, 1]) == 2
    assert trimmed_mean([1, 2, 6]) == 3, "fewer than ten: all count"


def test_slow_steps_are_the_time_above_twice_the_median() -> None:
    assert slow_share([10] * 9 + [30]) == pytest.approx(100 * 10 / 120)
    assert slow_share([10] * 9 + [15]) == 0


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_the_interval_is_that_of_students_test(alpha: float) -> None:
    found = contrast(*FIVE)
    reach = stats.ttest_ind(FIVE[1], FIVE[0]).confidence_interval(1 - alpha)
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
        assert (found.errors, found.interval(), found.freedom) == ((), None, freedom)


def test_one_side_that_varies_more_is_uneven() -> None:
    ten = np.linspace(-1, 1, 10).tolist()
    assert contrast(ten, [-8.0, 0.0, 8.0]).is_uneven
    assert not contrast(ten, [-1.0, 0.0, 1.0]).is_uneven
    assert contrast([-8.0, 0.0, 8.0], ten).is_uneven, "whichever side it is"
    assert contrast(ten, [0.0, 0.01, 0.02]).is_uneven, "or whichever has more recordings"
    assert contrast(ten, [3.0] * 10).is_uneven, "or does not vary at all"
    assert not contrast(ten, [8.0]).is_uneven


TEN, THREE = np.linspace(-1, 1, 10).tolist(), [-8.0, 0.0, 8.0]


@pytest.mark.parametrize("sides", [
    (TEN, THREE), (THREE, TEN), (TEN, [0.0, 0.1, 0.3]), (BASE, CANDIDATE), (TEN, [9 * x for x in TEN])])
def test_the_interval_covers_students_and_welchs(sides: tuple[list[float], list[float]]) -> None:
    span = contrast(*sides).interval()
    assert span is not None
    for has_equal_spread in (True, False):
        reach = stats.ttest_ind(sides[1], sides[0], equal_var=has_equal_spread).confidence_interval(0.95)
        assert span[0] <= reach.low + 1e-9 and reach.high - 1e-9 <= span[1]


@pytest.mark.parametrize(("counts", "ratio"), [((3, 3), 8), ((5, 5), 4), ((10, 3), 2), ((10, 3), 4)])
def test_at_a_limit_spreads_of_any_ratio_err_in_three_percent(counts: tuple[int, int], ratio: float) -> None:
    """By simulation of 1,500, whose standard error is 0.4 points; Student's alone errs in 4 to 15 %."""
    random = np.random.default_rng(7)
    spans = [contrast(random.normal(0, 1, counts[0]).tolist(), random.normal(0, ratio, counts[1]).tolist()).interval()
             for _ in range(1500)]
    assert sum(span[1] < 0 for span in spans if span) / 1500 <= 0.03 + 0.004


def test_what_could_have_been_shown_is_shown_in_four_of_five_cases() -> None:
    """By simulation: at that true difference the lower end of the interval is above 0 in 80 %."""
    random = np.random.default_rng(4)
    known = Contrast(0.0, (((2 / 5) ** 0.5, 8),), 1.0, 8, (5, 5))
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
