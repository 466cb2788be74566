"""Who issues calls and work: the outermost operator around the call on its thread, else the innermost range or module."""

from __future__ import annotations

import re

import numpy as np

from nsightlens.columns.arrays import Int, Mask, split
from nsightlens.diagnosis.recorded import Recorded
from nsightlens.diagnosis.timeline import Threads
from nsightlens.intervals.intersection import holding

_NO_PLACE = re.compile(r"\W*(?:(?:step|iter|iteration|batch|epoch)s?\W*)?\d*\W*", re.I)
"""Names of ranges that hold all that the job does."""
_BACKWARD = "autograd::engine::evaluate_function: "
"""What PyTorch writes before the name of a backward operator."""


class Issuers:
    """Who issues what threads call."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._of_range = _of_ranges(threads.recorded)

    def at(self, thread: Int, time: Int) -> Int:
        """Return the code of the name of what each thread was in at a time; -1 where nothing says it."""
        found = np.full(len(time), -1)
        if not len(self._of_range):
            return found
        for number, places in split(np.arange(len(time)), thread):
            inner = self._threads.innermost(number)
            held = np.append(inner.name, -1)[holding(time[places], inner.start, inner.end)]
            found[places] = np.append(self._of_range, -1)[held]
        return found

    def of_calls(self, call: Int) -> Int:
        """Return the code of the name of what issues each call, by its place; -1 where that is unknown."""
        spans = self._threads.recorded.calls.spans
        found, known = np.full(len(call), -1), call >= 0
        found[known] = self.at(spans.thread[call[known]], spans.start[call[known]])
        return found


def issuer(name: str) -> str:
    """Return the name of an issuer as people say it."""
    return name.removeprefix(_BACKWARD)


def _of_ranges(recorded: Recorded) -> Int:
    """Return the code of the name of who issues what is called directly in each range."""
    ranges = recorded.ranges
    is_operator: Mask = ranges.kind == recorded.codes.get("operator", -2)
    named = np.array([not _NO_PLACE.fullmatch(text) for text in recorded.texts] + [False])
    says = (ranges.kind != recorded.codes.get("step", -2)) & named[ranges.spans.name]
    found, in_operator = np.where(says, ranges.spans.name, -1), is_operator.copy()
    for depth in range(1, int(ranges.depth.max(initial=0)) + 1):
        here = np.flatnonzero((ranges.depth == depth) & (ranges.parent >= 0))
        around = ranges.parent[here]
        found[here] = np.where(in_operator[around] | ~says[here], found[around], found[here])
        in_operator[here] |= in_operator[around]
    return found
