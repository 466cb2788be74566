"""Whether two sets of replicates differ: Welch's test, a bootstrap interval, control of the false-discovery rate.

All take many items at once: arrays of shape (items, replicates). Sources: B. L. Welch, Biometrika 34 (1947); Y. Benjamini and
Y. Hochberg, J. R. Stat. Soc. B 57 (1995); the incomplete beta function by Lentz's continued fraction (DLMF 8.17.22).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from nsightlens.columns.arrays import Float

_TINY = 1e-300
_RESAMPLES = 2000
_SEED = 20_260_101
"""Intervals must be the same each time they are asked for."""


def welch(one: Float, other: Float) -> Float:
    """Return the two-sided p-value per item that both sets have one mean, whatever their variances; 1 where nothing varies
    and nothing differs, 0 where nothing varies and the means differ."""
    counts = one.shape[1], other.shape[1]
    means = one.mean(axis=1), other.mean(axis=1)
    errors = one.var(axis=1, ddof=1) / counts[0], other.var(axis=1, ddof=1) / counts[1]
    error = errors[0] + errors[1]
    found = np.where(means[0] == means[1], 1.0, 0.0)
    for item in np.flatnonzero(error > 0):
        statistic = (means[1][item] - means[0][item]) / math.sqrt(error[item])
        freedom = error[item] ** 2 / (errors[0][item] ** 2 / (counts[0] - 1) + errors[1][item] ** 2 / (counts[1] - 1))
        found[item] = student_p(statistic, freedom)
    return found


def student_p(statistic: float, freedom: float) -> float:
    """Return the two-sided p-value of Student's t."""
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + statistic * statistic))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) for a, b > 0 and 0 <= x <= 1."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    c, d = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 500):
        for term in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                     -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 / _nonzero(1 + term * d)
            c = _nonzero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * value / a


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def discovery_rates(p: Float) -> Float:
    """Return per item the smallest false-discovery rate at which it would be called a discovery (Benjamini-Hochberg)."""
    order = np.argsort(p, kind="stable")
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    found = np.empty(len(p))
    found[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return found


def difference_interval(one: Float, other: Float, confidence: float = 0.95) -> tuple[Float, Float]:
    """Return the bootstrap interval per item of mean(other) - mean(one): replicates are redrawn 2,000 times."""
    drawn = [values @ _weights(values.shape[1], side) for side, values in enumerate((one, other))]
    difference = drawn[1] - drawn[0]
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(difference, [tail, 100 - tail], axis=1)
    return low, high


@lru_cache(maxsize=64)
def _weights(replicates: int, side: int) -> Float:
    """Return how much each replicate counts in each of the samples: an array (replicates, samples)."""
    random = np.random.default_rng((_SEED, side))
    times = random.multinomial(replicates, np.full(replicates, 1 / replicates), size=_RESAMPLES)
    return times.T.astype(np.float64) / replicates
