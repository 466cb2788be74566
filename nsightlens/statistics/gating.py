"""Whether recordings of a candidate are beyond those of a base: the interval of Student's pooled t, paired on nodes if it can be.

Replicates are recordings (executions): a figure of each comes in. Two designs are one regression on the side and, where every
recording ran on a node that both sides used, on the nodes. Distributions are scipy's, imported where they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from nsightlens.columns.arrays import Float, Int

_TRIMMED = 0.1
"""Share of the steps that the trimmed mean leaves out at either end."""
_TIMES = 2
"""Times the median from which on the time of a step is that of a slow one."""
_UNEVEN, _UNEVEN_ALIKE = 0.1, 0.01
"""Level of the test that the side with fewer recordings varies more, which the pooled t does not bear, and of the two-sided test
where both have as many: it bears much there."""
_POWER = 0.8
_FEWEST = 3
"""Recordings of each side from which on it is said how many would do: of two, a variance is known to a factor of 30."""
_MOST = 200
ALPHA = 0.05


def trimmed_mean(lengths: Sequence[float] | Int) -> float:
    """Return the mean of steps without the tenth that is shortest and the tenth that is longest."""
    ordered = np.sort(np.asarray(lengths, dtype=np.float64))
    cut = int(_TRIMMED * len(ordered))
    return float(ordered[cut:len(ordered) - cut].mean())


def slow_share(lengths: Sequence[float] | Int) -> float:
    """Return the share of the time of steps that is above twice their median, in percent."""
    steps = np.asarray(lengths, dtype=np.float64)
    above = np.maximum(steps - _TIMES * np.median(steps), 0).sum()
    return float(100 * above / steps.sum())


@dataclass(frozen=True, slots=True)
class Contrast:
    """How far the candidate is above the base.

    error: the standard error of difference, None where recordings are too few to know one, or do not vary. spread: how much
    recordings vary, likewise. freedom: its degrees. nodes: on how many the two are paired, 0: not. is_uneven: one side varies
    more than the pooled test bears: the error is then Welch's, with the fewest degrees of freedom.
    """

    difference: float
    error: float | None
    spread: float | None
    freedom: int
    counts: tuple[int, int]
    nodes: int = 0
    is_uneven: bool = False

    def interval(self, alpha: float = ALPHA) -> tuple[float, float] | None:
        """Return the two-sided interval of 1 - alpha; None where nothing is known of the error."""
        if self.error is None:
            return None
        reach = _quantile(1 - alpha / 2, self.freedom) * self.error
        return self.difference - reach, self.difference + reach

    def smallest_shown(self, alpha: float) -> float | None:
        """Return how far above its limit a true difference is that these recordings show in four of five cases."""
        return None if self.error is None else _reach(alpha, self.freedom) * self.error

    def needed(self, limit: float, alpha: float) -> int | None:
        """Return how many recordings of each side would decide in four of five cases, if this difference is the true one.

        None with fewer than three of each, and where more than 200 would not.
        """
        if self.spread is None or min(self.counts) < _FEWEST:
            return None
        apart = abs(limit - self.difference)
        return next((n for n in range(max(2, min(self.counts)), _MOST + 1)
                     if _reach(alpha, 2 * n - 2) * self.spread * (2 / n) ** 0.5 <= apart), None)


def _reach(alpha: float, freedom: int) -> float:
    return _quantile(1 - alpha / 2, freedom) + _quantile(_POWER, freedom)


@cache
def _quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t."""
    from scipy import stats

    return float(stats.t.ppf(probability, freedom))


def contrast(
    base: Sequence[float], candidate: Sequence[float], nodes: tuple[Sequence[str | None], Sequence[str | None]] = ((), ()),
) -> Contrast:
    """Return how far figures of the candidate are above those of the base. nodes: where each recording ran; None: unknown."""
    sides = [np.asarray(side, dtype=np.float64) for side in (base, candidate)]
    counts = len(sides[0]), len(sides[1])
    shared = {*nodes[0]} & {*nodes[1]} - {None}
    is_paired = len(shared) > 1 and {*nodes[0], *nodes[1]} == shared
    blocks = sorted(map(str, shared)) if is_paired else [""]
    design = np.zeros((sum(counts), 1 + len(blocks)))
    design[counts[0]:, 0] = 1
    for row, node in enumerate([*nodes[0], *nodes[1]] if is_paired else [""] * sum(counts)):
        design[row, 1 + blocks.index(str(node))] = 1
    figures = np.concatenate(sides)
    solved, *_ = np.linalg.lstsq(design, figures, rcond=None)
    freedom = sum(counts) - design.shape[1]
    residue = figures - design @ solved
    variance = float(residue @ residue) / freedom if freedom > 0 else 0.0
    paired_on = len(blocks) if is_paired else 0
    rounding = 1e-12 * max(1.0, float(np.abs(figures).max()))
    if variance <= rounding**2:
        difference = float(solved[0]) if abs(solved[0]) > rounding else 0.0
        return Contrast(difference, None, None, max(freedom, 0), counts, paired_on)
    if not is_paired and _is_uneven(*sides):
        error = float(sum(side.var(ddof=1) / len(side) for side in sides)) ** 0.5
        return Contrast(float(solved[0]), error, variance ** 0.5, min(counts) - 1, counts, is_uneven=True)
    error = float(np.sqrt(variance * np.linalg.inv(design.T @ design)[0, 0]))
    return Contrast(float(solved[0]), error, variance ** 0.5, freedom, counts, paired_on)


def _is_uneven(base: Float, candidate: Float) -> bool:
    """Return whether one side varies more than the pooled t bears."""
    from scipy import stats

    few, many = sorted((base, candidate), key=len)
    if len(few) < 2:
        return False
    variances = few.var(ddof=1), many.var(ddof=1)
    if len(few) < len(many):
        return not variances[1] or bool(stats.f.sf(variances[0] / variances[1], len(few) - 1, len(many) - 1) < _UNEVEN)
    if not min(variances):
        return len(few) >= _FEWEST
    return bool(2 * stats.f.sf(max(variances) / min(variances), len(few) - 1, len(many) - 1) < _UNEVEN_ALIKE)
