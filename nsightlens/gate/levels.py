"""The points of a history, a run each, and the changes of level between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, log

from nsightlens.gate import questions as gate
from nsightlens.gate.recordings import Recording
from nsightlens.statistics.change_points import change_points


@dataclass(frozen=True, slots=True)
class Point:
    """A run in a history. begun_ns: of its first recording, since the epoch; value: the mean of its recordings' figures.

    level: number of the stretch without a change, from 0; has_changed: whether it is the first of one.
    """

    run: str
    begun_ns: int | None
    commit: str | None
    tool: str
    recordings: int
    value: float
    level: int = 0
    has_changed: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A change of level. run: the first after it; base, candidate: means over the runs before and after, as many as counted;
    change: in percent, or in points of a share."""

    run: str
    begun_ns: int | None
    commit: str | None
    base: float
    candidate: float
    change: float
    base_runs: int
    candidate_runs: int


def point(name: str, recordings: Sequence[Recording], question: gate.Question) -> Point | None:
    """Return the point of a run; None where a recording lacks the figure, or the figure is a time of 0."""
    known = [gate.figure(one, question.item) for one in recordings]
    values = [value for value in known if value is not None]
    value = gate.mean(values, question)
    if value is None or len(values) < len(known) or (question.unit == gate.PERCENT and not all(values)):
        return None
    return Point(name, min((one.begun_ns for one in recordings if one.begun_ns is not None), default=None),
                 ", ".join(sorted({one.commit for one in recordings if one.commit})) or None, recordings[0].tool,
                 len(recordings), value)


def levels(points: Sequence[Point], question: gate.Question) -> tuple[tuple[Point, ...], tuple[Change, ...]]:
    """Return the points with their levels, and the changes between these."""
    is_ratio = question.unit == gate.PERCENT
    values = [log(each.value) if is_ratio else each.value for each in points]
    starts = [0, *change_points(values), len(values)]
    means = [sum(values[first:end]) / (end - first) for first, end in pairwise(starts)]
    found: list[Point] = []
    changes: list[Change] = []
    for level, (first, end) in enumerate(pairwise(starts)):
        found += [replace(each, level=level, has_changed=bool(level) and place == 0)
                  for place, each in enumerate(points[first:end])]
        if level:
            before, after = means[level - 1], means[level]
            shown = (exp(before), exp(after), 100 * (exp(after - before) - 1)) if is_ratio else (before, after, after - before)
            begins = points[first]
            changes.append(Change(begins.run, begins.begun_ns, begins.commit, *shown, first - starts[level - 1], end - first))
    return tuple(found), tuple(changes)
