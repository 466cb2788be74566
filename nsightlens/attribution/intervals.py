"""Which interval lies around which, on many tracks at once: integer arrays only, n log n, no join.

Intervals are sorted by track, start and falling end. The innermost one around [s, e) is then the last before it whose end is at
least e, whether or not intervals cross. It is found by jumping: whatever lies between an interval and the one it points
to ends before it does, so that no jump can pass over the answer, and each round doubles the jumps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nsightlens.columns.arrays import Int, Mask, Places


@dataclass(frozen=True, slots=True)
class Nest:
    """Intervals in order. rows: which interval stands at each place. above: the place of the innermost one around it, -1: none.
    first: the place where each track begins, and the end of the last."""

    rows: Places
    start: Int
    end: Int
    above: Places
    first: Int

    def innermost(self, track: Places, start: Int, end: Int) -> Places:
        """Return the place of the innermost interval around each [start, end) on its track, -1 where there is none."""
        found = np.full(len(track), -1, dtype=np.int32)
        if not len(track):
            return found
        by_track = np.arange(len(track))
        if (lowest := int(track.min())) != (highest := int(track.max())):
            few = lowest >= -1 and highest < (1 << 16) - 1
            by_track = np.argsort((track + 1).astype(np.uint16) if few else track, kind="stable")  # 16 bits: in linear time
        tracks, begins = np.unique(track[by_track], return_index=True)
        for one, begin, stop in zip(tracks.tolist(), begins.tolist(), [*begins[1:].tolist(), len(track)], strict=True):
            low, high = (self.first[one], self.first[one + 1]) if 0 <= one < len(self.first) - 1 else (0, 0)
            if low < high:
                some = by_track[begin:stop]
                at = np.searchsorted(self.start[low:high], start[some], side="right") + (low - 1)
                found[some] = np.where(at >= low, at, -1)
        todo = np.flatnonzero(found >= 0)
        while len(todo):
            todo = todo[self.end[found[todo]] < end[todo]]
            found[todo] = self.above[found[todo]]
            todo = todo[found[todo] >= 0]
        return found

    def nearest(self, wanted: Mask) -> Places:
        """Return for each place the nearest wanted one among itself and those around it, -1 where there is none."""
        found = np.where(wanted, np.arange(len(self.above), dtype=np.int32), self.above)
        todo = np.flatnonzero(~wanted & (found >= 0))
        while len(todo):
            todo = todo[~wanted[found[todo]]]
            found[todo] = found[found[todo]]
            todo = todo[found[todo] >= 0]
        return found

    def depth(self) -> Places:
        """Return for each place how many intervals lie around it."""
        depth = (self.above >= 0).astype(np.int32)
        jump = self.above.copy()
        todo = np.flatnonzero(jump >= 0)
        while len(todo):
            depth[todo] += depth[jump[todo]]
            jump[todo] = jump[jump[todo]]
            todo = todo[jump[todo] >= 0]
        return depth

    def with_those_around(self, places: Places) -> Places:
        """Return the places and all that lie around them, ascending."""
        seen = np.zeros(len(self.above), dtype=np.bool_)
        while len(places):
            seen[places] = True
            places = each_once(self.above[places])
            places = places[~seen[places]]
        return np.flatnonzero(seen).astype(np.int32)


def nest(track: Places, start: Int, end: Int) -> Nest:
    """Return the intervals [start, end] in order; those with a negative track are left out."""
    rows = np.flatnonzero(track >= 0).astype(np.int32)
    keeps_all = len(rows) == len(track)
    if not keeps_all:
        track, start, end = track[rows], start[rows], end[rows]
    order = np.lexsort((-end, start, track)).astype(np.int32)
    track, start, end = track[order], start[order], end[order]
    rows = order if keeps_all else rows[order]
    del order
    first = np.searchsorted(track, np.arange(int(track[-1]) + 2 if len(track) else 1))
    return Nest(rows, start, end, _above(end, first), first)


def _above(end: Int, first: Int) -> Places:
    """Return for each place the last earlier one of its track that ends no sooner, -1 where there is none."""
    above = np.arange(-1, len(end) - 1, dtype=np.int32)
    above[first[:-1][first[:-1] < len(end)]] = -1
    todo = np.flatnonzero(above >= 0).astype(np.int32)
    while len(todo):
        todo = todo[end[above[todo]] < end[todo]]
        above[todo] = above[above[todo]]
        todo = todo[above[todo] >= 0]
    return above


def at(values: npt.NDArray[Any], places: Places, missing: int = -1) -> npt.NDArray[Any]:
    """Return values[places], `missing` where a place is negative."""
    if not len(values):
        return np.full(len(places), missing, dtype=values.dtype)
    found = values[places]
    found[places < 0] = missing
    return found


def each_once(places: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the places that are not negative, ascending, each once."""
    ascending = np.sort(places[places >= 0])
    is_first = np.ones(len(ascending), dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    once: npt.NDArray[Any] = ascending[is_first]
    return once
