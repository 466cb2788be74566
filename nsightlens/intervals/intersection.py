"""Intersections and differences of intervals with sorted, disjoint ones such as `outermost` gives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nsightlens.columns.arrays import Int


class Shared(NamedTuple):
    """Times that an interval shares with another one: the places of both, by place and start."""

    place: Int
    other: Int
    start: Int
    end: Int


class Rest(NamedTuple):
    """Parts of intervals outside of all others: the place of the interval, by place and start."""

    place: Int
    start: Int
    end: Int


def intersection(start: Int, end: Int, other_start: Int, other_end: Int) -> Shared:
    """Return what each interval shares with each of the others, where that holds an instant."""
    first = np.searchsorted(other_end, start)
    count = np.maximum(np.searchsorted(other_start, end) - first, 0)
    place = np.repeat(np.arange(len(start)), count)
    other = np.repeat(first - np.cumsum(count) + count, count) + np.arange(len(place))
    found = Shared(place, other, np.maximum(start[place], other_start[other]), np.minimum(end[place], other_end[other]))
    lasting = found.start < found.end
    return Shared(*(column[lasting] for column in found))


def difference(start: Int, end: Int, other_start: Int, other_end: Int) -> Rest:
    """Return the parts of each interval that no other one holds."""
    return outside(start, end, intersection(start, end, other_start, other_end))


def outside(start: Int, end: Int, shared: Shared) -> Rest:
    """Return the parts of each interval outside of what it shares with others: before, between and after these."""
    place = np.repeat(np.arange(len(start)), np.bincount(shared.place, minlength=len(start)) + 1)
    of = np.arange(len(shared.place)) + shared.place
    begins, ends = start[place], end[place]
    begins[of + 1], ends[of] = shared.end, shared.start
    lasting = begins < ends
    return Rest(place[lasting], begins[lasting], ends[lasting])


def holding(time: Int, start: Int, end: Int) -> Int:
    """Return the place of the interval that holds each time, -1 where none does; the intervals are sorted and do not overlap."""
    place = np.searchsorted(end, time, "right")
    return np.where((np.append(start, 0)[place] <= time) & (place < len(start)), place, -1)
