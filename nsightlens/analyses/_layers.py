"""Intervals of one thread -> groups within which none overlaps another."""

from __future__ import annotations

import numpy as np

from nsightlens.columns.arrays import Int


def layers(start: Int, end: Int) -> list[Int]:
    """Return the places of intervals, sorted by start, in groups within which none overlaps another."""
    if not np.any(start[1:] < end[:-1]):
        return [np.arange(len(start))]
    groups: list[list[int]] = []
    ends: list[int] = []
    for place, (begin, stop) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        at = next((number for number, free in enumerate(ends) if free <= begin), len(ends))
        if at == len(ends):
            ends.append(stop)
            groups.append([place])
        else:
            ends[at] = stop
            groups[at].append(place)
    return [np.array(group, np.int64) for group in groups]
