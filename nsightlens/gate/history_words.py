"""The sentences of a history: whether and where its level changed, and what is not in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsightlens.gate import questions as gate
from nsightlens.gate import words
from nsightlens.statistics.change_points import FEWEST
from nsightlens.views.figures import counted, duration, share, size

if TYPE_CHECKING:
    from nsightlens.gate.levels import Change, Point

_COMMIT, _LISTED = 12, 3


def sentences(
    question: gate.Question, points: Sequence[Point], changes: Sequence[Change], left_out: Sequence[str], *, is_dated: bool,
) -> list[str]:
    """Return what is said of a history: the changes first."""
    found = [_first(question, points, changes)]
    if len(points) < FEWEST:
        found.append(f"A change shows beyond chance from {FEWEST} runs on.")
    if left_out:
        more = f" and {len(left_out) - _LISTED} more" if len(left_out) > _LISTED else ""
        found.append(f"Left out, without this figure: {', '.join(left_out[:_LISTED])}{more}.")
    if not is_dated:
        found.append("Not every run says when it began: they stand in the order in which they were named.")
    return found


def _first(question: gate.Question, points: Sequence[Point], changes: Sequence[Change]) -> str:
    what = f"{words.called(question.item)} of {counted(len(points), 'run')}"
    if not changes:
        values = [point.value for point in points]
        span = figure(question, values[0]) if len(values) == 1 else (
            f"{figure(question, min(values))} to {figure(question, max(values))}")
        return f"The {what} shows no change of level: {span}."
    largest = max(changes, key=lambda each: abs(each.change))
    of_all = "once" if len(changes) == 1 else f"{len(changes)} times, most"
    commit = f" (commit {largest.commit[:_COMMIT]})" if largest.commit else ""
    return (f"The {what} changed {of_all} at {largest.run}{commit}: from {figure(question, largest.base)} to "
            f"{figure(question, largest.candidate)} ({change(question, largest)}).")


def figure(question: gate.Question, value: float) -> str:
    """Return a figure with its unit."""
    if question.unit == gate.POINTS:
        return share(value)
    return size(round(value)) if question.item == gate.MEMORY else duration(value)


def change(question: gate.Question, of: Change) -> str:
    """Return a change with its sign."""
    return f"{of.change:+.1f} {'%' if question.unit == gate.PERCENT else 'points'}"
