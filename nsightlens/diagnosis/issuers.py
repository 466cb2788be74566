"""The operator, range or module that issues each API call and its GPU work: the outermost operator, else the innermost range."""

from __future__ import annotations

import re

import numpy as np

from nsightlens.columns.arrays import Int, Mask, split
from nsightlens.diagnosis.profile_arrays import ProfileArrays
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
        self._of_range = _range_issuers(threads.recorded)

    def at(self, thread: Int, time: Int) -> Int:
        """Return the code of the name of what each thread was in at a time; -1 where nothing says it."""
        issuer = np.full(len(time), -1)
        if not len(self._of_range):
            return issuer
        for number, places in split(np.arange(len(time)), thread):
            inner = self._threads.innermost(number)
            holder = np.append(inner.name, -1)[holding(time[places], inner.start, inner.end)]
            issuer[places] = np.append(self._of_range, -1)[holder]
        return issuer

    def call_issuers(self, call: Int) -> Int:
        """Return the code of the name of what issues each call, by its place; -1 where that is unknown."""
        spans = self._threads.recorded.calls.spans
        issuer, known = np.full(len(call), -1), call >= 0
        issuer[known] = self.at(spans.thread[call[known]], spans.start[call[known]])
        return issuer


def issuer(name: str) -> str:
    """Return the name of an issuer as people say it."""
    return name.removeprefix(_BACKWARD)


def _range_issuers(recorded: ProfileArrays) -> Int:
    """Return the code of the name of who issues what is called directly in each range."""
    ranges = recorded.ranges
    is_operator: Mask = ranges.kind == recorded.codes.get("operator", -2)
    named = np.array([not _NO_PLACE.fullmatch(text) for text in recorded.texts] + [False])
    says = (ranges.kind != recorded.codes.get("step", -2)) & named[ranges.spans.name]
    issuer, in_operator = np.where(says, ranges.spans.name, -1), is_operator.copy()
    for depth in range(1, int(ranges.depth.max(initial=0)) + 1):
        here = np.flatnonzero((ranges.depth == depth) & (ranges.parent >= 0))
        around = ranges.parent[here]
        issuer[here] = np.where(in_operator[around] | ~says[here], issuer[around], issuer[here])
        in_operator[here] |= in_operator[around]
    return issuer
