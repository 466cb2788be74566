"""Whether recordings of a candidate are beyond those of a base: Student's and Welch's t, paired on nodes if it can be.

Replicates are recordings (executions): a figure of each comes in. Two designs are one regression on the side and, where every
recording ran on a node that both sides used, on the nodes. How much the sides vary may differ: the wider of the pooled and of
Welch's interval counts, whose error at a limit is then at most 2.7 % for any ratio of the two (nominal 2.5, three recordings of
each on), and the pooled one alone from five of each on, as many of both, unless a test says that they differ.
Distributions are scipy's, imported where they are used.
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
_UNEVEN = 0.1
"""Level of the two-sided test that one side varies more than the other."""
_MANY = 5
"""Recordings of each side from which on, with as many of both, the pooled t bears what that test does not see."""
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

    errors: standard errors of difference with their degrees of freedom, of which the one with the wider interval counts; none
    where recordings are too few to know one, or do not vary. spread: how much recordings vary, pooled; None likewise. freedom:
    its degrees. nodes: on how many the two are paired, 0: not. is_uneven: one side varies more than the other, by test.
    """

    difference: float
    errors: tuple[tuple[float, int], ...]
    spread: float | None
    freedom: int
    counts: tuple[int, int]
    nodes: int = 0
    is_uneven: bool = False

    def interval(self, alpha: float = ALPHA) -> tuple[float, float] | None:
        """Return the two-sided interval of 1 - alpha; None where nothing is known of the error."""
        if not self.errors:
            return None
        reach = max(_quantile(1 - alpha / 2, freedom) * error for error, freedom in self.errors)
        return self.difference - reach, self.difference + reach

    def smallest_shown(self, alpha: float) -> float | None:
        """Return how far above its limit a true difference is that these recordings show in four of five cases."""
        return max((_reach(alpha, freedom) * error for error, freedom in self.errors), default=None)

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
        return Contrast(difference, (), None, max(freedom, 0), counts, paired_on)
    pooled = float(np.sqrt(variance * np.linalg.inv(design.T @ design)[0, 0])), freedom
    is_uneven = not is_paired and _is_uneven(*sides)
    is_alone = is_paired or min(counts) < 2 or (counts[0] == counts[1] >= _MANY and not is_uneven)
    errors = (pooled,) if is_alone else (pooled, _welch(*sides))
    return Contrast(float(solved[0]), errors, variance ** 0.5, freedom, counts, paired_on, is_uneven)


def _welch(base: Float, candidate: Float) -> tuple[float, int]:
    """Return the standard error of the difference of means where sides vary differently, and its degrees of freedom.

    They are rounded down: as they come, few recordings err more often than is said.
    """
    parts = [(float(side.var(ddof=1)) / len(side), len(side) - 1) for side in (base, candidate)]
    whole = sum(part for part, _ in parts)
    return whole ** 0.5, int(whole**2 / sum(part**2 / freedom for part, freedom in parts) * (1 + 1e-12))


def _is_uneven(base: Float, candidate: Float) -> bool:
    """Return whether one side varies more than the other, by the test of the ratio of their variances."""
    from scipy import stats

    if min(len(base), len(candidate)) < 2:
        return False
    (less, few), (more, many) = sorted((float(side.var(ddof=1)), len(side) - 1) for side in (base, candidate))
    return not less or bool(2 * stats.f.sf(more / less, many, few) < _UNEVEN)
