"""What changed between two runs: items judged against what varies from recording to recording, or, with one of each, not at all.

A recording is one execution. Its steps tell about that recording alone: two recordings of one setting may differ by more than
their steps vary. So replicates are the recordings' means, and of one recording of each nothing is said but what it lacks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nsightlens.statistics.significance import Replicates, differences, discovery_rates, replicates_needed, samples

_PLANNED_FROM = 3
"""Recordings of each run from which on it is said how many would decide: of two, a variance is known to a factor of 30."""
UNDECIDED = "undecided"
Recordings = Sequence[float]
"""The mean of an item in each recording of a run, in ns."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The interval of a difference in ns, and the smallest false-discovery rate at which it is one (the p-value, of a test
    that stands alone)."""

    low: float
    high: float
    rate: float


@dataclass(frozen=True, slots=True)
class Change:
    """One item's change between two runs, in ns. runs: None with fewer than three recordings, or where they do not vary at all.

    verdict: slower, faster, new, vanished, no change (the whole interval lies within the threshold) or undecided.
    absent: new or vanished where no recording of one run has it. needed: recordings of each run that would do, where the verdict
    is undecided and each has three or more.
    """

    base: float
    other: float
    runs: Difference | None
    verdict: str
    absent: str | None
    needed: int | None


def judged(
    base: Mapping[str, Recordings], other: Mapping[str, Recordings], fdr: float, threshold_pct: float, *, planned: bool = False,
) -> dict[str, Change]:
    """Return the change of every item of either side; an item that a side lacks took no time there.

    planned: the one question that was fixed beforehand; it is judged by its interval alone, whatever the list's rate.
    """
    sides = (base, other)
    counts = [max((len(values) for values in side.values()), default=1) for side in sides]
    items = sorted(base.keys() | other.keys())
    pairs = {item: [side.get(item) or [0.0] * count for side, count in zip(sides, counts, strict=True)] for item in items}
    tested = [item for item, pair in pairs.items() if sum(map(len, pair)) > 2 and _vary(pair)]
    one, two = (samples([pairs[item][side] for item in tested]) for side in (0, 1))
    found = _tested(tested, one, two)
    means = {item: (float(np.mean(pair[0])), float(np.mean(pair[1]))) for item, pair in pairs.items()}
    least = np.array([max(abs(means[item][1] - means[item][0]), threshold_pct * means[item][0] / 100) for item in tested])
    needed = dict(zip(tested, replicates_needed(one, two, least), strict=True)) if min(counts) >= _PLANNED_FROM else {}
    changes = {}
    for item, (before, after) in means.items():
        verdict = _verdict(before, after, found.get(item), math.inf if planned else fdr, threshold_pct)
        absent = "vanished" if item not in other else "new" if item not in base else None
        more = needed.get(item) if verdict == UNDECIDED else None
        changes[item] = Change(before, after, found.get(item), verdict, absent, more)
    return changes


def _vary(pair: Sequence[Recordings]) -> bool:
    """Return whether recordings vary, or are all alike: a few equal means, of a clock in whole microseconds, are no certainty."""
    return len({*pair[0], *pair[1]}) == 1 or any(len({*side}) > 1 for side in pair)


def _tested(items: Sequence[str], one: Replicates, other: Replicates) -> dict[str, Difference]:
    """Return the difference of each item, the false-discovery rate controlled over all."""
    if not items:
        return {}
    found = differences(one, other)
    rates = discovery_rates(found.p)
    return {item: Difference(float(found.low[k]), float(found.high[k]), float(rates[k])) for k, item in enumerate(items)}


def _verdict(before: float, after: float, found: Difference | None, limit: float, threshold_pct: float) -> str:
    """Return what is said of a difference: text and interval agree, for what is named has an interval that excludes 0."""
    threshold = threshold_pct * before / 100
    if found is None:
        return UNDECIDED
    if found.rate <= limit and abs(after - before) >= threshold and (found.low > 0 or found.high < 0):
        return "new" if not before else "vanished" if not after else "faster" if after < before else "slower"
    return "no change" if -threshold <= found.low and found.high <= threshold else UNDECIDED
