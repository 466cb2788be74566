"""Where launches that ncu measured stand among those of a timeline: a few of many. Numbers only.

Their order alone says little. Two things locate a measured launch: the step and the ranges around it
(`by_surroundings`), and its number among the launches that ncu's filter finds (`by_position`). A launch call whose kernel the
timeline lacks is a HOLE: it may be anything that the ranges around it allow. Places are given only where no other is possible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightlens.columns.arrays import Int, Mask
from nsightlens.matching.sequence_alignment import HOLE

UNKNOWN = np.iinfo(np.int64).min
MARGIN = 2
"""Launches by which a stretch between two known places is widened: neighbours may be launched in the other order."""
LARGEST = 20_000_000
LONGEST = 200_000
"""The most states (a byte each) and launches that are looked at for positions."""


@dataclass(frozen=True, slots=True)
class OrderedLaunches:
    """Launches in order. Arrays of equal length.

    token: key and configuration, HOLE for a hole; ranges: a number per list of ranges around the launch, UNKNOWN where not
    known; step: the number of the step, UNKNOWN where there is none or it is not known.
    """

    token: Int
    ranges: Int
    step: Int


def by_surroundings(measured: OrderedLaunches, timeline: OrderedLaunches) -> Int:
    """Return the place in `timeline` (perhaps a hole) of each measured launch, -1 where it is not certain.

    In its step a measured launch is the one launch with its token and ranges, or n measured ones are the n launches alike in
    their order, holes among them. One whose step is not known is looked for between places found so far. Launches in the same
    ranges are believed together: all of them have their place, in the order of the timeline, but for neighbours. Else the two ran
    different kernels there.
    """
    place = np.full(len(measured.token), -1, dtype=np.int64)
    search = _Search(measured, timeline)
    steps = timeline.step[timeline.step != UNKNOWN]
    if not len(steps) or (np.diff(steps) < 0).any():
        return place
    first, last = _bounds_by_step(measured.step, timeline.step)
    search.fill(place, first, last, measured.step != UNKNOWN)
    for _ in range(4):
        before = int((place >= 0).sum())
        lower, upper, bounded = _between(place, len(timeline.token))
        search.fill(place, np.maximum(first, lower), np.minimum(last, upper), bounded)
        if int((place >= 0).sum()) == before:
            break
    return place


def _bounds_by_step(step: Int, of_timeline: Int) -> tuple[Int, Int]:
    """Return the first and last place that each measured launch may have by its step, or by the steps before and after it."""
    known = np.flatnonzero(of_timeline != UNKNOWN)
    steps, has_step = of_timeline[known], step != UNKNOWN
    never = np.iinfo(np.int64).max
    earlier = np.maximum.accumulate(np.where(has_step, step, UNKNOWN))
    later = np.minimum.accumulate(np.where(has_step, step, never)[::-1])[::-1]
    first = np.append(known, len(of_timeline))[np.searchsorted(steps, earlier, side="left")]
    last = np.append(-1, known)[np.searchsorted(steps, later, side="right")]
    return np.where(earlier == UNKNOWN, 0, first), np.where(later == never, len(of_timeline) - 1, last)


def _between(place: Int, length: int) -> tuple[Int, Int, Mask]:
    """Return, per measured launch, the stretch between the known places before and after it, and whether there are both."""
    found, number = place >= 0, np.arange(len(place))
    before = np.maximum.accumulate(np.where(found, number, -1))
    after = np.minimum.accumulate(np.where(found, number, len(place))[::-1])[::-1]
    bounded = (before >= 0) & (after < len(place)) & ~found
    lower = np.where(before >= 0, place[np.maximum(before, 0)] - MARGIN, 0)
    upper = np.where(after < len(place), place[np.minimum(after, len(place) - 1)] + MARGIN, length - 1)
    return lower, upper, bounded


class _Search:
    """The launches of a timeline by token, for those that were measured."""

    def __init__(self, measured: OrderedLaunches, timeline: OrderedLaunches) -> None:
        self.measured, self.timeline = measured, timeline
        ignorant = np.unique(measured.token[measured.ranges == UNKNOWN])
        self.ranges = np.where(np.isin(measured.token, ignorant), UNKNOWN, measured.ranges)
        order = np.argsort(timeline.token, kind="stable")
        tokens = timeline.token[order]
        self.places = {
            token: order[np.searchsorted(tokens, token, side="left") : np.searchsorted(tokens, token, side="right")]
            for token in np.unique(np.append(measured.token, HOLE)).tolist()
        }
        self.taken = np.zeros(len(timeline.token), dtype=np.bool_)

    def fill(self, place: Int, first: Int, last: Int, is_bounded: Mask) -> None:
        """Enter the places of launches that have as many alike in their stretch as there are measured ones."""
        for row in np.flatnonzero(is_bounded).tolist():
            if place[row] >= 0:
                continue
            token, ranges = int(self.measured.token[row]), int(self.ranges[row])
            alike = np.flatnonzero((place < 0) & (self.measured.token == token) & (self.ranges == ranges))
            alike = alike[(first[alike] <= last[row]) & (last[alike] >= first[row])]
            if not len(alike) or (first[alike] != first[row]).any() or (last[alike] != last[row]).any():
                continue
            launches, holes = (self._alike(one, ranges, int(first[row]), int(last[row])) for one in (token, HOLE))
            if len(launches) + len(holes) == len(alike):
                found = np.sort(np.concatenate([launches, holes]))
                place[alike] = found
                self.taken[found] = True
        self._doubt(place, first, last, is_bounded)

    def _doubt(self, place: Int, first: Int, last: Int, is_bounded: Mask) -> None:
        """Take the places back that were given in ranges where not every launch has one, or where they are in another order."""
        rows = np.flatnonzero(is_bounded)
        _, group = np.unique(np.stack([self.ranges[rows], first[rows], last[rows]], axis=1), axis=0, return_inverse=True)
        order = np.argsort(group.reshape(-1), kind="stable")
        rows, group = rows[order], group.reshape(-1)[order]
        is_doubtful = place[rows] < 0
        highest_place = place[rows].copy()
        for position in range(1, len(rows)):
            if group[position] == group[position - 1]:
                highest_place[position] = max(highest_place[position], highest_place[position - 1])
        is_doubtful |= place[rows] < highest_place - MARGIN
        withdrawn = rows[np.isin(group, group[is_doubtful])]
        self.taken[place[withdrawn][place[withdrawn] >= 0]] = False
        place[withdrawn] = -1

    def _alike(self, token: int, ranges: int, first: int, last: int) -> Int:
        """Return the places from first to last of launches with that token around which the ranges may be these."""
        places = self.places[token]
        places = places[np.searchsorted(places, first) : np.searchsorted(places, last, side="right")]
        around = self.timeline.ranges[places]
        fits = (around == ranges) | (around == UNKNOWN) if ranges != UNKNOWN else np.ones(len(places), dtype=np.bool_)
        found: Int = places[fits & ~self.taken[places]]
        return found


def by_position(measured: OrderedLaunches, position: Int, timeline: OrderedLaunches, found: Mask, *, whole: bool) -> Int:
    """Return the place in `timeline` of each measured launch by its number among the launches that the filter finds, else -1.

    position: that number, rising. found: which launches of `timeline` the filter finds (a HOLE: perhaps). whole: these are all
    launches of the process to its end, else there may be more behind. A measured launch that the timeline has nowhere with its
    token and ranges (another choice of a library) stands for any launch in its ranges or for none. Where one contradicts, none
    has a place.
    """
    nowhere = np.full(len(position), -1, dtype=np.int64)
    if not len(position):
        return nowhere
    merged = np.flatnonzero(found | (timeline.token == HOLE))
    count = np.cumsum(timeline.token[merged] != HOLE)
    merged = merged[: np.searchsorted(count, position[-1] + 1) + 1]
    hole = timeline.token[merged] == HOLE
    foreign = _foreign(measured, timeline)
    spare = int(hole.sum()) + int(foreign.sum())
    if not len(merged) or len(merged) > LONGEST or (len(merged) + 1) * (spare + 1) > LARGEST:
        return nowhere
    return _Paths(measured, position, timeline, merged, hole, foreign, spare).certain(whole)


def _foreign(measured: OrderedLaunches, timeline: OrderedLaunches) -> Mask:
    """Say which measured launches have no launch alike anywhere in the timeline."""
    places = {token: np.flatnonzero(timeline.token == token) for token in np.unique(measured.token).tolist()}
    around = {token: set(timeline.ranges[where].tolist()) for token, where in places.items()}
    both = zip(measured.token.tolist(), measured.ranges.tolist(), strict=True)
    return np.array([not around[token] or not (UNKNOWN in (ranges, *around[token]) or ranges in around[token])
                     for token, ranges in both], dtype=np.bool_)


class _Paths:
    """All ways to number the launches that the filter finds: state e before launch i means that its number is count[i] + e.

    A launch takes a number; a hole takes one or none (e + 1 or e); a measured launch with a foreign token may take its number
    without any launch (e + 1).
    """

    def __init__(
        self, measured: OrderedLaunches, position: Int, timeline: OrderedLaunches, merged: Int, hole: Mask, foreign: Mask,
        spare: int,
    ) -> None:
        self.merged, self.hole, self.spare = merged, hole, spare
        self.count = np.concatenate([[0], np.cumsum(~hole)])
        self.measured, self.timeline, self.foreign = measured, timeline, foreign
        self.row = np.full(int(max(position[-1], self.count[-1] + spare)) + 2, -1, dtype=np.int64)
        self.row[position] = np.arange(len(position))

    def _rows(self, i: int) -> Int:
        """Return the measured launch (-1: none) with the number that each state before launch i stands for."""
        some: Int = self.row[self.count[i] : self.count[i] + self.spare + 1]
        return some

    def _fits(self, i: int) -> Mask:
        """Return whether launch i can have the number of each state."""
        rows, at = self._rows(i), self.merged[i]
        mine = np.maximum(rows, 0)
        token = (self.measured.token[mine] == self.timeline.token[at]) | self.hole[i] | self.foreign[mine]
        for one, other in ((self.measured.ranges, self.timeline.ranges), (self.measured.step, self.timeline.step)):
            token &= (one[mine] == other[at]) | (one[mine] == UNKNOWN) | (other[at] == UNKNOWN)
        return np.asarray(token | (rows < 0))

    def _skipped(self, i: int, state: Mask) -> Mask:
        """Return the states with those added that foreign launches lead to without a launch."""
        rows = self._rows(i)
        ghost = (rows >= 0) & self.foreign[np.maximum(rows, 0)]
        if ghost.any():
            state = state.copy()
            for e in np.flatnonzero(ghost[:-1]).tolist():
                state[e + 1] |= state[e]
        return state

    def _unskipped(self, i: int, state: Mask) -> Mask:
        """Return the states from which foreign launches lead to one of `state` without a launch, and these."""
        rows = self._rows(i)
        ghost = (rows >= 0) & self.foreign[np.maximum(rows, 0)]
        if ghost.any():
            state = state.copy()
            for e in np.flatnonzero(ghost[:-1])[::-1].tolist():
                state[e] |= state[e + 1]
        return state

    def certain(self, whole: bool) -> Int:
        """Return the only place of each measured launch, else -1."""
        size = len(self.merged)
        reached = np.zeros((size + 1, self.spare + 1), dtype=np.bool_)
        reached[0, 0] = True
        for i in range(size):
            reached[i] = self._skipped(i, reached[i])
            taken = reached[i] & self._fits(i)
            reached[i + 1] = taken if not self.hole[i] else reached[i] | np.append(False, taken[:-1])
        reached[size] = self._skipped(size, reached[size])
        numbers = self.count[size] + np.arange(self.spare + 1)
        last = int(np.flatnonzero(self.row >= 0)[-1])
        ends = reached[size] & (numbers > last) if whole else reached[size]
        return self._only(reached, ends, numbers)

    def _only(self, reached: Mask, ends: Mask, numbers: Int) -> Int:
        rows = len(self.measured.token)
        partners, place = np.zeros(rows, dtype=np.int64), np.full(rows, -1, dtype=np.int64)
        beyond = self.row[int(numbers[ends].min()) :] if ends.any() else self.row
        partners[beyond[beyond >= 0]] = 2  # may lie behind the end of the timeline
        state = ends
        for i in range(len(self.merged) - 1, -1, -1):
            state = self._unskipped(i + 1, state)
            after = np.append(state[1:], False) if self.hole[i] else state
            taken = reached[i] & self._fits(i) & after
            mine = self._rows(i)[taken]
            mine = mine[mine >= 0]
            partners[mine] += 2 if self.hole[i] else 1
            place[mine] = self.merged[i]
            state = taken if not self.hole[i] else taken | (reached[i] & state)
        certain = (partners == 1) & ~self.foreign
        return np.where(certain, place, -1) if ends.any() else np.full(rows, -1, dtype=np.int64)
