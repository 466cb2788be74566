"""Intervals sorted by track and start, and the latest end among those before each one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from nsightlens.columns.arrays import MISSING, Int


def order(start: Int, track: Int, end: Int | None = None) -> Int | None:
    """Return the places of intervals by track and start; None where they lie in this order.

    end: given, of those that begin at once the last to end comes first.
    """
    fits = start[1:] >= start[:-1] if end is None else (start[1:] > start[:-1]) | (
        (start[1:] == start[:-1]) & (end[1:] <= end[:-1]))
    if np.all((track[1:] > track[:-1]) | ((track[1:] == track[:-1]) & fits)):
        return None
    return np.lexsort((start, track) if end is None else (~end, start, track))  # ~: as minus, but without an overflow


def one_track(count: int) -> Int:
    """Return the tracks of intervals that are all on one; they take no memory."""
    return np.broadcast_to(np.int64(0), count)


def track_slices(track: Int) -> Iterator[slice]:
    """Yield the places of each track, of intervals sorted by track."""
    bounds = [0, *(np.flatnonzero(track[1:] != track[:-1]) + 1).tolist(), len(track)]
    return (slice(begin, end) for begin, end in pairwise(bounds) if begin < end)


def reached(start: Int, end: Int, track: Int) -> Int:
    """Return how far the intervals before each one of its track reach, MISSING where there is none; in their order."""
    found = np.empty(len(end), np.int64)
    for some in track_slices(track):
        here, before = found[some], slice(some.start, some.stop - 1)
        here[0] = MISSING
        np.maximum(start[before], end[before], out=here[1:])
        np.maximum.accumulate(here, out=here)
    return found
