"""Whether two sets of replicates differ: Student's and Welch's test with their interval, control of the false-discovery rate.

All take many items at once: arrays with a place per item. Distributions are scipy's, which is imported where it is used.
Sources: B. L. Welch, Biometrika 34 (1947); Y. Benjamini and Y. Hochberg, J. R. Stat. Soc. B 57 (1995).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightlens.columns.arrays import Float, Mask

CONFIDENCE = 0.95
_POWER = 0.8
_MOST = 1000


@dataclass(frozen=True, slots=True)
class Replicates:
    """Per item: the mean of its replicates, their variance (NaN: there is one), and how many there are."""

    mean: Float
    variance: Float
    count: Float


@dataclass(frozen=True, slots=True)
class Differences:
    """Per item mean(other) - mean(one): the two-sided p-value of no difference, and the interval of CONFIDENCE."""

    p: Float
    low: Float
    high: Float


def differences(one: Replicates, other: Replicates, *, pooled: bool = False) -> Differences:
    """Return the differences of means, by Welch's test; where the numbers of replicates differ, or pooled, by Student's, which
    takes both to vary alike. Three replicates in all are the fewest. What does not vary differs for certain, or not at all.
    """
    from scipy import stats

    alike = np.full(len(one.count), True) if pooled else _are_pooled(one, other)
    variances, counts = _variances(one, other, alike), (one.count, other.count)
    errors = [variance / count for variance, count in zip(variances, counts, strict=True)]
    with np.errstate(divide="ignore", invalid="ignore"):
        welch = (errors[0] + errors[1]) ** 2 / sum(error**2 / (count - 1) for error, count in zip(errors, counts, strict=True))
        freedom = np.where(alike, counts[0] + counts[1] - 2, welch)
        error, apart = np.sqrt(errors[0] + errors[1]), other.mean - one.mean
        p = np.where(error > 0, 2 * stats.t.sf(np.abs(apart) / error, freedom), np.where(apart == 0, 1.0, 0.0))
        reach = np.where(error > 0, error * stats.t.ppf((1 + CONFIDENCE) / 2, freedom), 0.0)
    return Differences(p, apart - reach, apart + reach)


def _variances(one: Replicates, other: Replicates, alike: Mask) -> tuple[Float, Float]:
    """Return the variances of both sides: pooled where they are taken to be alike."""
    known = [np.nan_to_num(side.variance) for side in (one, other)]
    freedom = one.count + other.count - 2
    pooled = ((one.count - 1) * known[0] + (other.count - 1) * known[1]) / freedom
    return np.where(alike, pooled, known[0]), np.where(alike, pooled, known[1])


def _are_pooled(one: Replicates, other: Replicates) -> Mask:
    """Return where one variance stands for both sides: Welch's test of ten and three errs too often, and one alone has none."""
    found: Mask = (one.count != other.count) | (np.minimum(one.count, other.count) < 2)
    return found


def interval_of_means(one: Sequence[float], other: Sequence[float]) -> tuple[float, float] | None:
    """Return how far the mean of `other` may be above that of `one`; None with fewer than three values in all."""
    if len(one) + len(other) < 3:
        return None
    found = differences(samples([one]), samples([other]))
    return float(found.low[0]), float(found.high[0])


def smallest_shown(one: Sequence[float], other: Sequence[float], count: int) -> float | None:
    """Return the smallest change of a mean that `count` values of each find in four of five cases, if they vary as these do.

    None with fewer than four values in all, or where they do not vary.
    """
    from scipy import stats

    if len(one) + len(other) < 4:
        return None
    sides = samples([one]), samples([other])
    variances = _variances(*sides, _are_pooled(*sides))
    reach = stats.t.ppf((1 + CONFIDENCE) / 2, 2 * count - 2) + stats.t.ppf(_POWER, 2 * count - 2)
    return float(reach * np.sqrt((variances[0][0] + variances[1][0]) / count)) or None


def samples(rows: Sequence[Sequence[float]] | Float) -> Replicates:
    """Return mean, variance and number of the values of each row."""
    arrays = [np.array(values, dtype=np.float64) for values in rows]
    return Replicates(*(np.array(column, dtype=np.float64) for column in (
        [array.mean() for array in arrays], [array.var(ddof=1) if len(array) > 1 else np.nan for array in arrays],
        [len(array) for array in arrays])))


def discovery_rates(p: Float) -> Float:
    """Return per item the smallest false-discovery rate at which it would be called a discovery (Benjamini-Hochberg)."""
    from scipy import stats

    rates: Float = stats.false_discovery_control(p)
    return rates


def replicates_needed(one: Replicates, other: Replicates, change: Float) -> list[int | None]:
    """Return per item how many replicates a side find a change of means in four of five cases, if they vary as these do.

    At least two; None for more than 1,000. The usual sum of two quantiles of t for the noncentral distribution.
    """
    from scipy import stats

    n = np.arange(2, _MOST + 1)
    quantiles = stats.t.ppf((1 + CONFIDENCE) / 2, 2 * n - 2) + stats.t.ppf(_POWER, 2 * n - 2)
    variances = _variances(one, other, _are_pooled(one, other))
    reach = np.outer(np.sqrt(variances[0] + variances[1]), quantiles / np.sqrt(n))
    enough = reach <= np.abs(change)[:, None]
    return [int(n[row.argmax()]) if row.any() else None for row in enough]
