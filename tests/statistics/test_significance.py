"""Statistics against scipy's own tests, against published values, and under a null that they must not reject."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nsightlens.statistics.significance import (
    Replicates,
    differences,
    discovery_rates,
    interval_of_means,
    replicates_needed,
    samples,
    smallest_shown,
)


@pytest.mark.parametrize(("one", "other"), [(5, 5), (2, 2), (9, 3), (1, 2), (6, 1)])
def test_as_scipys_own_tests(one: int, other: int) -> None:
    random = np.random.default_rng(one)
    a, b = random.normal(5, 1, (20, one)), random.normal(6, 3, (20, other))
    found = differences(samples(a), samples(b))
    expected = stats.ttest_ind(b, a, axis=1, equal_var=one != other)
    interval = expected.confidence_interval(0.95)
    for mine, theirs in ((found.p, expected.pvalue), (found.low, interval.low), (found.high, interval.high)):
        assert np.allclose(mine, theirs)


def test_items_with_other_numbers_of_replicates_stand_side_by_side() -> None:
    mixed = Replicates(np.array([1.0, 1.0]), np.array([0.5, np.nan]), np.array([4.0, 1.0]))
    other = Replicates(np.array([2.0, 2.0]), np.array([0.5, 0.5]), np.array([4.0, 4.0]))
    found = differences(mixed, other)
    alone = [differences(*(Replicates(s.mean[k:k + 1], s.variance[k:k + 1], s.count[k:k + 1]) for s in (mixed, other))).p[0]
             for k in (0, 1)]
    assert found.p.tolist() == alone and found.p[1] > found.p[0]


def test_what_does_not_vary() -> None:
    same = samples(np.full((1, 5), 7.0))
    assert differences(same, same).p[0] == 1
    found = differences(same, samples(np.full((1, 5), 8.0)))
    assert (found.p[0], found.low[0], found.high[0]) == (0, 1, 1)


def test_text_and_interval_agree() -> None:
    random = np.random.default_rng(3)
    found = differences(samples(random.normal(size=(2000, 4))), samples(random.normal(1, 2, (2000, 6))))
    assert ((found.p < 0.05) == ((found.low > 0) | (found.high < 0))).all()


@pytest.mark.parametrize("replicates", [3, 10])
def test_p_values_are_uniform_where_nothing_differs(replicates: int) -> None:
    random = np.random.default_rng(1)
    p = differences(samples(random.normal(size=(4000, replicates))), samples(random.normal(size=(4000, replicates)))).p
    for level in (0.05, 0.2):
        assert (p < level).mean() < level + 4 * (level * (1 - level) / 4000) ** 0.5


def test_the_interval_covers_the_difference() -> None:
    random = np.random.default_rng(2)
    for one, other in ((2, 2), (3, 3), (1, 5), (8, 4)):
        found = differences(samples(random.normal(size=(4000, one))), samples(random.normal(size=(4000, other)) + 3))
        assert ((found.low <= 3) & (found.high >= 3)).mean() > 0.94, (one, other)


def test_discovery_rates_as_in_the_paper() -> None:
    """The 15 p-values of Benjamini and Hochberg (1995), section 3.2: four discoveries at 0.05."""
    p = np.array([0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590,
                  1.0])
    assert (discovery_rates(p) <= 0.05).sum() == 4
    assert (discovery_rates(p[::-1].copy())[::-1] == discovery_rates(p)).all()


@pytest.mark.parametrize("change", [0.8, 1.5, 4.0])
def test_as_many_replicates_as_needed_find_the_change_in_four_of_five_cases(change: float) -> None:
    unit = Replicates(np.zeros(1), np.ones(1), np.full(1, 2.0))
    (needed,) = replicates_needed(unit, unit, np.array([change]))
    assert needed is not None
    random = np.random.default_rng(4)
    found = differences(samples(random.normal(size=(3000, needed))), samples(random.normal(change, 1, (3000, needed))))
    assert (found.p < 0.05).mean() > 0.77
    if needed > 3:
        few = (3000, needed - 2)
        fewer = differences(samples(random.normal(size=few)), samples(random.normal(change, 1, few)))
        assert (fewer.p < 0.05).mean() < 0.8


@pytest.mark.parametrize("change", [0.1254, 0.4, 0.7, 1.2, 1.4, 1.5, 2.0, 2.36, 3.0, 5.2])
def test_as_many_replicates_are_needed_as_the_noncentral_distribution_says(change: float) -> None:
    unit = Replicates(np.zeros(1), np.ones(1), np.full(1, 2.0))
    n = np.arange(2, 1200)
    limit, noncentrality = stats.t.ppf(0.975, 2 * n - 2), change * (n / 2) ** 0.5
    power = stats.nct.sf(limit, 2 * n - 2, noncentrality) + stats.nct.cdf(-limit, 2 * n - 2, noncentrality)
    assert replicates_needed(unit, unit, np.array([change])) == [int(n[(power >= 0.8).argmax()])]


def test_a_change_too_small_to_find_needs_no_number() -> None:
    unit = Replicates(np.zeros(1), np.ones(1), np.full(1, 2.0))
    assert replicates_needed(unit, unit, np.array([1e-6])) == [None]
    assert replicates_needed(unit, unit, np.array([0.1254, 0.1253])) == [1000, None]


def test_the_interval_of_two_lists_is_that_of_their_samples() -> None:
    one, other = [1.0, 2.0, 4.0], [3.0, 5.0]
    found = differences(samples([one]), samples([other]))
    assert interval_of_means(one, other) == (found.low[0], found.high[0])
    assert interval_of_means([1.0], [2.0]) is None, "one of each does not show how they vary"


def test_the_smallest_change_that_would_show_is_one_that_as_many_replicates_need() -> None:
    one, other = [100.0, 102.0, 98.0], [101.0, 99.0, 103.0]
    smallest = smallest_shown(one, other, 5)
    assert smallest is not None
    for change, needed in ((1.001 * smallest, 5), (0.999 * smallest, 6)):
        assert replicates_needed(samples([one]), samples([other]), np.array([change])) == [needed]
    assert smallest_shown([1.0], [2.0, 3.0], 5) is None and smallest_shown([1.0, 1.0], [1.0, 1.0], 5) is None
