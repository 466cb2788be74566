"""A history: one figure of runs over time, a point for each run or baseline, and where its level changed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import exp, log
from pathlib import Path
from typing import Any

import pyarrow as pa

from nsightlens.errors import NsightlensError, UsageError, no_store
from nsightlens.gate import baselines, history_words
from nsightlens.gate import questions as gate
from nsightlens.gate.baselines import Saved
from nsightlens.gate.places import Named, Read
from nsightlens.gate.recordings import PLAIN, Recording
from nsightlens.statistics.change_points import change_points
from nsightlens.store.store import Store, locate

_TIMED = (PLAIN, "nsys", "kineto")
_RUNS = pa.schema([
    ("run", pa.string()), ("begun_ns", pa.int64()), ("commit", pa.string()), ("tool", pa.string()), ("recordings", pa.int64()),
    ("value", pa.float64()), ("level", pa.int64()), ("has_changed", pa.bool_())])
_CHANGES = pa.schema([
    ("run", pa.string()), ("begun_ns", pa.int64()), ("commit", pa.string()), ("base", pa.float64()), ("candidate", pa.float64()),
    ("change", pa.float64()), ("base_runs", pa.int64()), ("candidate_runs", pa.int64())])


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


class History(dict[str, pa.Table]):
    """The tables of a history (runs, changes); printed, what it says.

    question: of what; points, changes: the values behind the tables; left_out: runs without the figure; is_dated: whether runs
    stand in the order of their times, else as they were named. sentences: what is said, the changes first.
    """

    def __init__(self, question: gate.Question, points: Sequence[Point], left_out: Sequence[str], is_dated: bool) -> None:
        self.question, self.left_out, self.is_dated = question, tuple(left_out), is_dated
        self.points, self.changes = _levels(points, question)
        self.sentences = history_words.sentences(question, self.points, self.changes, self.left_out, is_dated=is_dated)
        super().__init__(runs=pa.Table.from_pylist([asdict(each) for each in self.points], schema=_RUNS),
                         changes=pa.Table.from_pylist([asdict(each) for each in self.changes], schema=_CHANGES))

    def __repr__(self) -> str:
        """Return what it says."""
        return "\n".join(self.sentences)


def history(
    names: Sequence[str], item: str, store: Store | Path | None, views: Path | None, read: Read,
) -> History:
    """Return the history of an item. names: runs of the store, stores, baselines, captures; none: every run of the store.

    Raises UsageError for what there is not, NsightlensError where the runs have no figure in common.
    """
    with ExitStack() as stack:
        named = Named(stack, store, views, read)
        if not names and not named.runs:
            raise no_store(locate(None) if store is None else store.path if isinstance(store, Store) else store)
        found = [(name, each) for name in names or named.runs for each in named.named("run", [name])]
        places = named.places([each for _, each in found])
        sides = [(_stem(name), each) if isinstance(each, Saved) else (each.name, baselines.of_sides([each]))
                 for (name, _), each in zip(found, places, strict=True)]
    return of_sides(sides, item)


def _stem(name: str) -> str:
    return Path(name).stem


def of_sides(sides: Sequence[tuple[str, Saved]], item: str) -> History:
    """Return the history of an item over runs or baselines, by name. Raises as `history`."""
    tools = [tool for tool in _TIMED if (tool != PLAIN or item in (gate.STEP, gate.SLOW))
             and all(tool in saved.recordings for _, saved in sides)]
    if not tools:
        raise NsightlensError("the runs were not timed alike: they have no tool in common, or nothing but steps.json")
    series = [(name, saved.recordings[tools[0]]) for name, saved in sides]
    every = [one for _, recordings in series for one in recordings]
    if len({bool(one.steps) for one in every}) > 1 and tools[0] != PLAIN:
        raise NsightlensError("the runs cannot be compared: some have steps, others none")
    (question,) = (each for each in gate.questions(0, 0, {item: 0}, every) if each.item == item)
    points, left_out = [], []
    for name, recordings in series:
        point = _point(name, recordings, question)
        if point is None:
            left_out.append(name)
        else:
            points.append(point)
    if not points:
        raise UsageError(f"{item}: no run has it", subject="item", value=item)
    is_dated = all(point.begun_ns is not None for point in points)
    return History(question, sorted(points, key=lambda each: each.begun_ns or 0) if is_dated else points, left_out, is_dated)


def _point(name: str, recordings: Sequence[Recording], question: gate.Question) -> Point | None:
    """Return the point of a run; None where a recording lacks the figure, or the figure is a time of 0."""
    known = [gate.figure(one, question.item) for one in recordings]
    values = [value for value in known if value is not None]
    value = gate.mean(values, question)
    if value is None or len(values) < len(known) or (question.unit == gate.PERCENT and not all(values)):
        return None
    return Point(name, min((one.begun_ns for one in recordings if one.begun_ns is not None), default=None),
                 ", ".join(sorted({one.commit for one in recordings if one.commit})) or None, recordings[0].tool,
                 len(recordings), value)


def _levels(points: Sequence[Point], question: gate.Question) -> tuple[tuple[Point, ...], tuple[Change, ...]]:
    """Return the points with their levels, and the changes between these."""
    is_ratio = question.unit == gate.PERCENT
    values = [log(point.value) if is_ratio else point.value for point in points]
    starts = [0, *change_points(values), len(values)]
    levels = [sum(values[first:end]) / (end - first) for first, end in pairwise(starts)]
    found: list[Point] = []
    changes: list[Change] = []
    for level, (first, end) in enumerate(pairwise(starts)):
        found += [_at(point, level, has_changed=bool(level) and place == 0) for place, point in enumerate(points[first:end])]
        if level:
            before, after = levels[level - 1], levels[level]
            shown = (exp(before), exp(after), 100 * (exp(after - before) - 1)) if is_ratio else (before, after, after - before)
            begins = points[first]
            changes.append(Change(begins.run, begins.begun_ns, begins.commit, *shown, first - starts[level - 1], end - first))
    return tuple(found), tuple(changes)


def _at(point: Point, level: int, *, has_changed: bool) -> Point:
    values: dict[str, Any] = {**asdict(point), "level": level, "has_changed": has_changed}
    return Point(**values)
