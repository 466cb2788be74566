"""A history: one figure of runs over time, a point for each run or baseline, and where its level changed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from nsightlens.errors import NsightlensError, UsageError, no_store
from nsightlens.gate import baselines, history_words
from nsightlens.gate import questions as gate
from nsightlens.gate.baselines import Saved
from nsightlens.gate.levels import Point, levels, point
from nsightlens.gate.places import Named, Read
from nsightlens.gate.recordings import PLAIN
from nsightlens.store.store import Store, locate

_TIMED = (PLAIN, "nsys", "kineto")
_RUNS = pa.schema([
    ("run", pa.string()), ("begun_ns", pa.int64()), ("commit", pa.string()), ("tool", pa.string()), ("recordings", pa.int64()),
    ("value", pa.float64()), ("level", pa.int64()), ("has_changed", pa.bool_())])
_CHANGES = pa.schema([
    ("run", pa.string()), ("begun_ns", pa.int64()), ("commit", pa.string()), ("base", pa.float64()), ("candidate", pa.float64()),
    ("change", pa.float64()), ("base_runs", pa.int64()), ("candidate_runs", pa.int64())])


class History(dict[str, pa.Table]):
    """The tables of a history (runs, changes); printed, what it says.

    question: of what; points, changes: the values behind the tables; left_out: runs without the figure; is_dated: whether runs
    stand in the order of their times, else as they were named. sentences: what is said, the changes first.
    """

    def __init__(self, question: gate.Question, points: Sequence[Point], left_out: Sequence[str], is_dated: bool) -> None:
        self.question, self.left_out, self.is_dated = question, tuple(left_out), is_dated
        self.points, self.changes = levels(points, question)
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
        sides = [(_stem(name), each) if isinstance(each, Saved) else (each.name, baselines.saved_sides([each]))
                 for (name, _), each in zip(found, places, strict=True)]
    return item_history(sides, item)


def _stem(name: str) -> str:
    return Path(name).stem


def item_history(sides: Sequence[tuple[str, Saved]], item: str) -> History:
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
        found = point(name, recordings, question)
        if found is None:
            left_out.append(name)
        else:
            points.append(found)
    if not points:
        raise UsageError(f"{item}: no run has it", subject="item", value=item)
    is_dated = all(each.begun_ns is not None for each in points)
    return History(question, sorted(points, key=lambda each: each.begun_ns or 0) if is_dated else points, left_out, is_dated)
