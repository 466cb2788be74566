"""Which intervals lie in no other, and which lie side by side."""

from __future__ import annotations

import numpy as np

from nsightlens.columns.arrays import Int
from nsightlens.intervals.coverage import reached


def outermost(start: Int, end: Int) -> Int:
    """Return the places of the intervals that begin when none before them lasts, by start.

    Of those that begin at once, the longest comes first. The intervals found are apart from one another.
    """
    order = _longest_first(start, end)
    start, end = start[order], np.maximum(start, end)[order]
    before = reached(end)[:-1]
    free = start >= before
    return order[free]


def layers(start: Int, end: Int) -> list[Int]:
    """Return the places of intervals in groups, within each of which none overlaps another; sorted by start."""
