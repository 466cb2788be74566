"""What changed between two runs: items judged against what varies from recording to recording, or, with one of each, not at all.

A recording is one execution. Its steps tell about that recording alone: two recordings of one setting may differ by more than
their steps vary. So replicates are the recordings' means. Where each run has one, how far the two *recordings* differ is
judged by their steps, and is kept apart from what is said of the runs. Recordings never vary less than their steps imply:
a few equal means, of a trace in whole microseconds say, are no certainty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nsightlens.columns.arrays import Float
from nsightlens.statistics.significance import Samples, differences, discovery_rates, replicates_needed

FEWEST = 5
"""Steps of each recording below which nothing is said of how two recordings differ."""
UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Recording:
    """An item in one recording: the mean of its values (ns), their variance (NaN: there is one value), and how many there are: a
    value per step, or per block of launches that has the item."""

    mean: float
    variance: float
    count: int

    @classmethod
    def of(cls, values: Float) -> Recording:
        """Return the recording with these values, one or more."""
        return cls(float(values.mean()), float(values.var(ddof=1)) if len(values) > 1 else math.nan, len(values))


Recordings = Sequence[Recording]
"""An item in the recordings of a run."""
_NO_TIME = Recording(0.0, math.nan, 1)


@dataclass(frozen=True, slots=True)
class Difference:
    """The interval of a difference in ns, and the smallest false-discovery rate at which it is one (the p-value, of a test
    that stands alone)."""

    low: float
    high: float
    rate: float


@dataclass(frozen=True, slots=True)
class Change:
    """One item's change between two runs, in ns. runs: None with fewer than three recordings; recordings: of the only two.

    verdict: slower, faster, new, vanished, no change (the whole interval lies within the threshold) or undecided.
    seen: new or vanished where no recording of one run has it; else None where the runs are judged, and of two recordings
    longer, shorter, alike or no interval. needed: recordings of each run that would do, where the verdict is undecided.
    """

    base: float
    other: float
    runs: Difference | None
    recordings: Difference | None
    verdict: str
    seen: str | None
    needed: int | None


def judged(
    base: Mapping[str, Recordings], other: Mapping[str, Recordings], fdr: float, threshold_pct: float, *, planned: bool = False,
) -> dict[str, Change]:
    """Return the change of every item of either side; an item that a side lacks took no time there.

    planned: the one question that was fixed beforehand; it is judged by its interval alone, whatever the list's rate.
    """
    sides = (base, other)
    counts = [max((len(values) for values in side.values()), default=1) for side in sides]
    limit = math.inf if planned else fdr
    items = sorted(base.keys() | other.keys())
    pairs = {item: [side.get(item) or [_NO_TIME] * count for side, count in zip(sides, counts, strict=True)] for item in items}
    absent = {item: "vanished" if item in sides[0] else "new" for item in items if item not in sides[0] or item not in sides[1]}
    if sum(counts) > 2:
        return _of_runs(pairs, absent, limit, threshold_pct)
    return _of_recordings(pairs, absent, limit, threshold_pct)


def _of_runs(
    pairs: Mapping[str, Sequence[Recordings]], absent: Mapping[str, str], limit: float, threshold_pct: float,
) -> dict[str, Change]:
    """Return changes judged by the means of three recordings or more."""
    means = {item: [Recording.of(np.array([recording.mean for recording in side])) for side in pair]
             for item, pair in pairs.items()}
    judged_items = [item for item, pair in pairs.items() if sum(map(len, pair)) > 2]
    samples = one, other = tuple(_samples(means[item][side] for item in judged_items) for side in (0, 1))
    for side, sample in enumerate(samples):
        np.fmax(sample.variance, [_of_steps(pairs[item][side]) for item in judged_items], out=sample.variance,
                where=~np.isnan(sample.variance))
    found = _tested(judged_items, one, other)
    before_after = {item: (pair[0].mean, pair[1].mean) for item, pair in means.items()}
    least = np.array([max(abs(after - before), threshold_pct * before / 100) for before, after in
                      (before_after[item] for item in judged_items)])
    needed = dict(zip(judged_items, replicates_needed(one, other, least), strict=True))
    changes = {}
    for item, (before, after) in before_after.items():
        verdict = _verdict(before, after, found.get(item), limit, threshold_pct, ("slower", "faster"))
        changes[item] = Change(before, after, found.get(item), None, verdict, absent.get(item),
                               needed.get(item) if verdict == UNDECIDED else None)
    return changes


def _of_steps(recordings: Recordings) -> float:
    """Return the variance that means of recordings have if nothing but their steps varies; 0 where it is not known."""
    return float(np.mean([some.variance / some.count if some.count > 1 else 0.0 for some in recordings]))


def _of_recordings(
    pairs: Mapping[str, Sequence[Recordings]], absent: Mapping[str, str], limit: float, threshold_pct: float,
) -> dict[str, Change]:
    """Return changes that are undecided: one recording of each run shows nothing of how runs vary."""
    tested = [item for item, ((base,), (other,)) in pairs.items()
              if item not in absent and min(base.count, other.count) >= FEWEST]
    found = _tested(tested, *(_samples(pairs[item][side][0] for item in tested) for side in (0, 1)))
    changes = {}
    for item, ((base,), (other,)) in pairs.items():
        before, after = base.mean, other.mean
        seen = absent.get(item, "no interval")
        if item in found:
            seen = _verdict(before, after, found[item], limit, threshold_pct, ("longer", "shorter"))
        changes[item] = Change(before, after, None, found.get(item), UNDECIDED,
                               "alike" if seen in (UNDECIDED, "no change") else seen, 2)
    return changes


def _samples(recordings: Iterable[Recording]) -> Samples:
    """Return mean, variance and number of the replicates of each item."""
    rows = list(recordings)
    columns = ([some.mean for some in rows], [some.variance for some in rows], [some.count for some in rows])
    return Samples(*(np.array(column, dtype=np.float64) for column in columns))


def _tested(items: Sequence[str], one: Samples, other: Samples) -> dict[str, Difference]:
    """Return the difference of each item, the false-discovery rate controlled over all."""
    if not items:
        return {}
    found = differences(one, other)
    rates = discovery_rates(found.p)
    return {item: Difference(float(found.low[k]), float(found.high[k]), float(rates[k])) for k, item in enumerate(items)}


def _verdict(
    before: float, after: float, found: Difference | None, limit: float, threshold_pct: float, names: tuple[str, str],
) -> str:
    """Return what is said of a difference: text and interval agree, for what is named has an interval that excludes 0."""
    threshold = threshold_pct * before / 100
    if found is None:
        return UNDECIDED
    if found.rate <= limit and abs(after - before) >= threshold and (found.low > 0 or found.high < 0):
        return "new" if not before else "vanished" if not after else names[after < before]
    return "no change" if -threshold <= found.low and found.high <= threshold else UNDECIDED
