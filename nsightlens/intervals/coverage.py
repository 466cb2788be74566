"""Unions of intervals, the ns that they cover, and the gaps between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nsightlens.columns.arrays import MISSING, Int
from nsightlens.intervals.order import one_track, order, reached


class Union(NamedTuple):
    """Intervals that neither overlap nor touch, by track and start."""

    start: Int
    end: Int
    track: Int


class Gaps(NamedTuple):
    """Times between intervals of a track, by track and start; until: the place of the interval that begins when each ends."""

    start: Int
    end: Int
    until: Int


def union(start: Int, end: Int, track: Int | None = None) -> Union:
    """Return the instants that intervals hold, as the fewest intervals that hold them."""
    lasting = start < end
    start, end, track, _ = _sorted(start[lasting], end[lasting], None if track is None else track[lasting])
    first = np.flatnonzero(start > reached(start, end, track))  # MISSING lies before every start
    return Union(start[first], np.maximum.reduceat(end, first) if len(first) else end, track[first])


def coverage(start: Int, end: Int) -> int:
    """Return how many ns at least one interval holds."""
    united = union(start, end)
    return int((united.end.view(np.uint64) - united.start.view(np.uint64)).sum(dtype=np.uint64))  # exact below 2^64


def gaps(start: Int, end: Int, track: Int | None = None) -> Gaps:
    """Return the times in which nothing runs, between the first and the last start of each track.

    An interval that holds no instant is there all the same: a gap ends where it stands, and the next one begins.
    """
    start, end, track, places = _sorted(start, end, track)
    before = reached(start, end, track)
    found = np.flatnonzero((before != MISSING) & (start > before))
    return Gaps(before[found], start[found], found if places is None else places[found])


def _sorted(start: Int, end: Int, track: Int | None) -> tuple[Int, Int, Int, Int | None]:
    """Return starts, ends and tracks in order, and the place that each had; None where they lay so."""
    track = one_track(len(start)) if track is None else track
    places = order(start, track)
    return (start, end, track, None) if places is None else (start[places], end[places], track[places], places)
