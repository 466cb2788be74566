"""The tables of a report, packed one after the other until its size is reached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.html_report import clocks
from nsightlens.html_report.packing import pack
from nsightlens.html_report.questions import PageView
from nsightlens.html_report.timeline import FINEST, Step, steps
from nsightlens.names.kernel_names import kernel_key, labels
from nsightlens.views.node_names import NODE_NAMES
from nsightlens.views.palette import BRANCHES, CATEGORIES, SLICES

if TYPE_CHECKING:
    from nsightlens.store.store import Store

_ANSWERS = ("profile_overview", "diagnostic_summary", "verdict", "findings", "time_tree", "step_breakdown", "kernel_summary")
"""Views whose rows are read here, too: for the static part of the page, and for names."""
_COARSER = (FINEST, 1000, 250)
"""Stretches per step into which short slices are merged, where all of them are too many."""
_MOST_STEPS = 64
OnStep = Callable[[int, int, str], None]
"""Called before something is made: how much is done, of how much, and what it is."""
_MOST_ROWS = 1_000_000
"""Rows of a table with a row per event that are worth packing: more do not fit, and are not fetched."""
_MOST_LAUNCHES = 2_000_000
"""Launches that a view may read one by one for a page: 5 million of them took 4 GB."""


class Contents:
    """What goes into a page of at most `budget` bytes: packed tables by name, their commands, and what is left out."""

    def __init__(self, store: Store, runs: Sequence[str], budget: int, on_step: OnStep | None = None) -> None:
        self._tell, self._done, self._to_do = on_step, 0, 0
        self._store, self._runs, self._left = store, runs, budget
        self.packed: dict[str, str] = {}
        self.answers: dict[str, list[dict[str, Any]]] = {}
        self.left_out: list[str] = []
        self._tables: dict[str, dict[str, Any]] = {}
        self._steps: list[dict[str, Any]] = []
        self._words: dict[str, int] = {}

    def add(self, questions: Iterable[PageView], compared: Iterable[PageView]) -> None:
        """Add the tables of few rows, then the timeline, then tables with a row per event as far as they fit."""
        asked = [question for question in (*questions, *compared) if question.view in self._store.views]
        self._to_do = len(asked) + _MOST_STEPS
        for question in asked:
            if not question.is_long:
                self._add_table(question)
        self._add_names()
        self._add_steps()
        for question in asked:
            if question.is_long:
                self._add_table(question)

    def facts(self) -> dict[str, Any]:
        """Return what the script must know beside the tables."""
        return {"tables": self._tables, "steps": self._steps, "left_out": self.left_out, "slices": SLICES,
                "categories": CATEGORIES, "branches": BRANCHES, "nodes": NODE_NAMES}

    def _begin(self, name: str) -> None:
        """Say that the next thing is begun."""
        if self._tell:
            self._tell(self._done, self._to_do, name)
        self._done += 1

    def _add_table(self, question: PageView) -> None:
        self._begin(question.name)
        if question.reads_launches and self._launches > _MOST_LAUNCHES:
            self.left_out.append(f"{question.view}, which reads each of {self._launches:,} kernels: "
                                 f"{question.command(self._store, self._runs)}")
            return
        if question.is_long and (rows := question.count(self._store, self._runs)) > _MOST_ROWS:
            self._leave_out(question, rows)
            return
        table = question.ask(self._store, self._runs)
        if question.name in _ANSWERS:
            self.answers[question.name] = table.to_pylist()
        if not table.num_rows:
            return
        if self._put(question.name, pack(table)):
            docs = dict(self._store.views[question.view].columns)
            self._tables[question.name] = {"command": question.command(self._store, self._runs),
                                           "docs": {name: docs[name] for name in table.column_names}}
        else:
            self._leave_out(question, table.num_rows)

    @cached_property
    def _clocks(self) -> dict[clocks.Key, dict[str, Any]]:
        """Return when each step began, on one clock over all ranks."""
        return clocks.begun(self._store)

    @cached_property
    def _launches(self) -> int:
        """Return how many kernels the page is about."""
        captured = self._store.view("profile_overview").to_pylist()
        return sum(row["kernels"] for row in captured if not self._runs or row["run"] in self._runs)

    def _leave_out(self, question: PageView, rows: int) -> None:
        self.left_out.append(f"{rows:,} rows of {question.view}: {question.command(self._store, self._runs)}")

    def _put(self, name: str, packed: str) -> bool:
        """Keep a packed table; return False where it does not fit."""
        if len(packed) > self._left:
            return False
        self._left -= len(packed)
        self.packed[name] = packed
        return True

    def _add_names(self) -> None:
        """Add what kernels are called in narrow places, and the key by which the tree has them."""
        tools = {row["name"]: row["tool"] for row in self.answers["kernel_summary"]}
        keys = [kernel_key(name, tool) for name, tool in tools.items()]
        called = labels(set(keys))   # of keys, not of names: tools spell a kernel differently
        self._put("names", pack(pa.table({"name": list(tools), "label": [called[key] for key in keys], "key": keys})))

    def _add_steps(self) -> None:
        """Add of each process its middle step, then its longest, then the others while there is room."""
        shown = [step for step in steps(self._store, self._runs) if step.slices.num_rows]
        if not shown:
            self._to_do -= _MOST_STEPS
            return
        room = self._left // 2  # the rest is for the other steps, and tables with a row per event
        bins = next((bins for bins in (0, *_COARSER) if self._size(shown, bins) <= room), _COARSER[-1])
        for step in shown:
            self._add_step(step, bins, "middle")
        worst = self._longest()
        others = [number for number in self._numbers() if number is not None]
        chosen = list(dict.fromkeys([*(number for number, _ in worst), *others]))[:_MOST_STEPS]
        self._to_do += len(chosen) - _MOST_STEPS
        for number in chosen:
            self._begin(f"step {number}")
            for step in steps(self._store, self._runs, number):
                process = step.keys["process_id"], step.keys["window_index"]
                self._add_step(step, bins, "longest" if (number, process) in worst else "")
        self._say_left_out(bins)
        self._put("words", pack(pa.table({"word": list(self._words)})))

    def _size(self, shown: Sequence[Step], bins: int) -> int:
        """Return how large these steps would be."""
        words: dict[str, int] = {}
        return sum(len(pack((step.merged(bins) if bins else step).slices, words)) for step in shown) + sum(map(len, words))

    def _add_step(self, step: Step, bins: int, role: str) -> None:
        known = (step.keys["process_id"], step.keys["window_index"], step.keys["step"])
        if any(tuple(other[name] for name in ("process_id", "window_index", "step")) == known for other in self._steps):
            return
        drawn = step.merged(bins) if bins else step
        name = f"step{len(self._steps)}"
        if self._put(name, pack(drawn.slices, self._words)):
            merged = pc.sum(step.slices["pieces"]).as_py() - drawn.slices.num_rows
            self._steps.append(step.keys | self._clocks.get(known, {}) | {
                "table": name, "lanes": step.lanes, "role": role, "merged": merged})

    def _longest(self) -> set[tuple[int, tuple[str, int]]]:
        """Return the number of the longest step of each process, with the process."""
        found: dict[tuple[str, int], dict[str, Any]] = {}
        for row in self.answers["step_breakdown"]:
            process = row["process_id"], row["window_index"]
            if row["step"] is not None and row["step_ns"] > found.get(process, {"step_ns": -1})["step_ns"]:
                found[process] = row
        return {(row["step"], process) for process, row in found.items()}

    def _numbers(self) -> list[int | None]:
        return list(dict.fromkeys(row["step"] for row in self.answers["step_breakdown"]))

    def _say_left_out(self, bins: int) -> None:
        all_steps = [row for row in self.answers["step_breakdown"] if row["step"] is not None]
        here = sum(step["step"] is not None for step in self._steps)
        if here < len(all_steps):
            self.left_out.append(f"{len(all_steps) - here:,} of {len(all_steps):,} steps of the timeline: "
                                 "nsightlens export perfetto -o trace.json.gz")
        merged = sum(step["merged"] for step in self._steps)
        if merged:
            self.left_out.append(f"{merged:,} slices of the timeline, merged with their neighbours where shorter than a "
                                 f"{bins or FINEST:,}th of the step: nsightlens export perfetto -o trace.json.gz")
