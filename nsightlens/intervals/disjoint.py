"""Disjoint intervals made of overlapping ones: cut, reduced to the outermost, or put in layers."""

from __future__ import annotations

import numpy as np

from nsightlens.columns.arrays import Int
from nsightlens.intervals.order import one_track, order, reached


def cut(start: Int, end: Int, track: Int) -> Int:
    """Return when each interval begins without the time of those before it in its track, its end at most.

    The intervals are sorted by track and start.
    """
    found: Int = np.minimum(np.maximum(start, reached(start, end, track)), np.maximum(start, end))
    return found


def outermost(start: Int, end: Int) -> Int:
    """Return the places of the intervals that begin when none before them lasts, ascending in time.

    Of those that begin at once, the last to end comes first. No interval overlaps another one of those that are returned.
    """
    track = one_track(len(start))
    places = order(start, track, end)
    if places is not None:
        start, end = start[places], end[places]
    found = np.flatnonzero(start >= reached(start, end, track))
    return found if places is None else places[found]


def non_overlapping_layers(start: Int, end: Int) -> list[Int]:
    """Return the places of intervals in groups, each in the first one within which it overlaps no other.

    The intervals are sorted by start.
    """
    found: list[Int] = []
    left = np.arange(len(start))
    while len(left) or not found:
        place = _one_after_another(start[left], end[left])
        found.append(left[place])
        left = np.delete(left, place)
    return found


def _one_after_another(start: Int, end: Int) -> Int:
    """Return the places of the first interval, of the next that begins when that has ended, and so on."""
    if not np.any(start[1:] < end[:-1]):
        return np.arange(len(start))
    following = np.maximum(np.searchsorted(start, end), np.arange(1, len(start) + 1)).tolist()
    found, place = [], 0
    while place < len(following):
        found.append(place)
        place = following[place]
    return np.array(found)
