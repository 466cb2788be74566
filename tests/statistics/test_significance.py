"""Statistics against published values, against brute force, and under a null that they must not reject."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nsightlens.statistics.significance import difference_interval, discovery_rates, incomplete_beta, student_p, welch


@pytest.mark.parametrize(("statistic", "freedom", "p"), [
    (12.706, 1, 0.05), (2.228, 10, 0.05), (3.169, 10, 0.01), (2.845, 20, 0.01), (1.96, 1e7, 0.05), (0.0, 5, 1.0),
])
def test_students_t_as_in_the_printed_tables(statistic: float, freedom: float, p: float) -> None:
    assert student_p(statistic, freedom) == pytest.approx(p, rel=1e-3)
    assert student_p(-statistic, freedom) == student_p(statistic, freedom)


@pytest.mark.parametrize(("a", "b", "x", "value"), [
    (1, 1, 0.3, 0.3), (2, 3, 0.4, 0.5248), (5, 1, 0.9, 0.59049), (0.5, 0.5, 0.5, 0.5),
])
def test_incomplete_beta(a: float, b: float, x: float, value: float) -> None:
    assert incomplete_beta(a, b, x) == pytest.approx(value, rel=1e-10)
    assert incomplete_beta(a, b, 0) == 0 and incomplete_beta(a, b, 1) == 1


@pytest.mark.parametrize("x", [1e-9, 0.001, 0.5, 0.999, 1 - 1e-9])
def test_incomplete_beta_of_halves_is_an_arc_sine(x: float) -> None:
    assert incomplete_beta(0.5, 0.5, x) == pytest.approx(2 / math.pi * math.asin(math.sqrt(x)), rel=1e-10)


def test_welch_on_numbers_worked_out_by_hand() -> None:
    one, other = np.array([[1.0, 2, 3, 4]]), np.array([[2.0, 4, 6, 8, 10]])
    # means 2.5 and 6; errors 5/12 and 2; t = 3.5 / sqrt(29/12); freedom (29/12)^2 / ((5/12)^2/3 + 4/4)
    expected = student_p(3.5 / (29 / 12) ** 0.5, (29 / 12) ** 2 / ((5 / 12) ** 2 / 3 + 1))
    assert welch(one, other)[0] == pytest.approx(expected)
    assert welch(other, one)[0] == pytest.approx(expected)


def test_what_does_not_vary() -> None:
    same = np.full((1, 5), 7.0)
    assert welch(same, same)[0] == 1
    assert welch(same, same + 1)[0] == 0


def test_p_values_are_uniform_where_nothing_differs() -> None:
    random = np.random.default_rng(1)
    p = welch(random.normal(size=(4000, 10)), random.normal(size=(4000, 10)) * 2)
    for level in (0.01, 0.05, 0.2):
        assert abs((p < level).mean() - level) < 4 * (level * (1 - level) / 4000) ** 0.5


def test_discovery_rates_as_in_the_paper() -> None:
    """The 15 p-values of Benjamini and Hochberg (1995), section 3.2: four discoveries at 0.05."""
    p = np.array([0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590,
                  1.0])
    assert (discovery_rates(p) <= 0.05).sum() == 4
    assert (discovery_rates(p[::-1].copy())[::-1] == discovery_rates(p)).all()


def test_the_interval_covers_the_difference() -> None:
    random = np.random.default_rng(2)
    one, other = random.normal(size=(1000, 20)), random.normal(size=(1000, 20)) + 3
    low, high = difference_interval(one, other)
    assert 0.9 < ((low <= 3) & (high >= 3)).mean() < 0.97
    assert np.array_equal(difference_interval(one, other)[0], low), "the same each time"
