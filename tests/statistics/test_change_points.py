"""Changes of level: found where they are, and said of series without one in 1 % at most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from nsightlens.statistics.change_points import FEWEST, LEVEL, change_points


@pytest.mark.parametrize(("steps", "found"), [
    ([(8, 0.0), (8, 5.0)], [8]), ([(6, 0.0), (7, 5.0), (9, 1.0)], [6, 13]), ([(12, 3.0)], []), ([(11, 0.0), (3, 5.0)], [11]),
])
def test_levels_far_apart_are_told_to_the_place(steps: Sequence[tuple[int, float]], found: list[int]) -> None:
    random = np.random.default_rng(5)
    levels = np.concatenate([np.full(count, level) for count, level in steps])
    assert change_points((levels + random.normal(0, 0.3, len(levels))).tolist()) == found


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 30, [1.0] * (FEWEST - 3) + [9.0, 9.0], [1.0] * 20 + [9.0, 9.0],
                                    [0.1 + 0.2, 0.3] * 10])
def test_few_alike_and_single_ones_that_are_off_are_no_change(values: list[float]) -> None:
    assert change_points(values) == []


@pytest.mark.parametrize("heavy", [False, True])
def test_series_without_a_change_are_said_to_have_one_in_one_percent(heavy: bool) -> None:
    """By simulation of 500: 1 % and two standard errors. A t test of the best split alone says so in more than a third."""
    random = np.random.default_rng(2)
    series = (random.standard_t(2, (500, 20)) if heavy else random.normal(0, 1, (500, 20))).tolist()
    assert sum(bool(change_points(values)) for values in series) / 500 <= LEVEL + 2 * (LEVEL / 500) ** 0.5


def test_a_change_of_three_standard_deviations_is_found_in_most_series() -> None:
    random = np.random.default_rng(3)
    rows = [(random.normal(0, 1, 20) + np.repeat([0, 3], 10)).tolist() for _ in range(60)]
    assert sum(any(abs(place - 10) < 2 for place in change_points(row)) for row in rows) >= 54
