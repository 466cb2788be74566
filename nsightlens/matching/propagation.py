"""How far the lateness of a rank reaches: waits in a collective that come from an earlier one, which released its last rank late.

The last rank L of a call has its lag behind the second last S in part from the calls that released the two, P and Q: P ended
later. That came from what the last rank of P did (it arrived later than the last of Q), or from P itself, which took longer.
What the last rank of P arrived later than that of Q, it had in part from the calls that released those two, and so on, call
by call towards the beginning, until one call released both. What is left of a lag at each stage is at most what was left of
it at the stage after, so that the shares add up to the lag; each is its share of what all ranks waited in the call.

Where the clocks cannot tell which rank S was, or which was the last of Q, each of those that it may have been is compared with:
a part is whose it is by all of them, and what is between them is nobody's. A part is also no more than what the call would
have begun earlier without it, as the other late ranks of that call would still have come when they did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from nsightlens.columns.arrays import CHUNK_ROWS, MISSING, Int, Mask, Places, sums

_FARTHEST = 1000
"""Calls over which a delay is followed back: what comes from further back belongs to nobody."""
_AT_ONCE = 1 << 12
"""Calls that are followed back together."""
_ENDLESS = np.iinfo(np.int64).max
_SAFE = 1 << 62
"""A product below has no more than 63 bits, however its floating-point estimate was rounded."""


@dataclass(frozen=True, slots=True)
class Several:
    """Some parts of each call: `begin` is where those of a call stand in `parts`, `size` how many they are."""

    parts: Places
    begin: Int
    size: Int

    def of(self, calls: Int) -> tuple[Int, Places]:
        """Return the parts of all `calls`, and before them the place in `calls` of the one that each is of."""
        size = self.size[calls]
        owner = np.repeat(np.arange(len(calls)), size)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
        return owner, self.parts[self.begin[calls][owner] + within]


@dataclass(frozen=True)
class Arrivals:
    """The parts of calls, their times on one clock (MISSING: on none), and of each call who came when.

    A part is a number: call, start, end and released are of each; there may be numbers that are of no call (-1).
    parts: those of each call, sorted by rank. released: the part that its rank's previous collective is, -1 for none. group,
    kind: of each call, a number for its communicator, and for its operation, payload and number of ranks; kind is -1 where
    unknown: like no other. limit: by how many ns the starts of two parts may be misplaced against each other, MISSING where
    unknown.
    """

    parts: Several
    call: Places
    start: Int
    end: Int
    released: Places
    group: Places
    kind: Places
    limit: Callable[[Places, Places], Int]

    def chunks(self) -> Iterator[Int]:
        """Yield the calls, some 100,000 parts at a time."""
        end = self.parts.begin + self.parts.size
        first = 0
        while first < len(end):
            last = max(int(np.searchsorted(end, self.parts.begin[first] + CHUNK_ROWS, side="right")), first + 1)
            yield np.arange(first, last)
            first = last

    @cached_property
    def _order(self) -> tuple[Places, Places, Places]:
        """Of each call the parts that began first, second last and last, of several the highest rank (first: the lowest)."""
        found = [np.full(len(self.group), -1, dtype=np.int32) for _ in range(3)]
        for calls in self.chunks():
            owner, parts = self.parts.of(calls)
            for whole, those in zip(found, _ordered(self.start[parts], owner), strict=True):
                whole[calls] = np.where(those < 0, -1, parts[those])
        return found[0], found[1], found[2]

    @property
    def first(self) -> Places:
        """The part of each call that began first, -1 where none is on a clock."""
        return self._order[0]

    @property
    def second(self) -> Places:
        """The part of each call that began second last, -1 where there are no two on one clock."""
        return self._order[1]

    @property
    def last(self) -> Places:
        """The part of each call that began last, -1 where none is on a clock."""
        return self._order[2]

    @cached_property
    def lag(self) -> Int:
        """By how many ns the last part of each call began after the second last."""
        return after(self.start, self.last, self.start, self.second)

    @cached_property
    def lag_limit(self) -> Int:
        """By how many ns these two may be misplaced against each other."""
        return np.where(self.lag == MISSING, MISSING, self.limit(self.second, self.last))

    @cached_property
    def is_named(self) -> Mask:
        """Whether the last rank of each call is known for certain."""
        return np.asarray((self.lag_limit != MISSING) & (self.lag > self.lag_limit))

    @cached_property
    def waited(self) -> Int:
        """What all ranks together waited in each call; ns."""
        found = np.zeros(len(self.group), dtype=np.int64)
        for calls in self.chunks():
            owner, parts = self.parts.of(calls)
            wait = after(self.start, self.last[calls][owner], self.start, parts)
            found[calls] = sums(np.maximum(wait, 0), np.flatnonzero(np.diff(owner, prepend=-1)))
        return found

    def later(self, one: Places, other: Places) -> Int:
        """Return by how many ns the call before the part `other` ended later than that before `one`; 0 where they are one."""
        first, second = self.released[one], self.released[other]
        apart = after(self.end, second, self.end, first)
        return np.where((apart == MISSING) | (self.call[first] == self.call[second]), 0, np.maximum(apart, 0))

    @cached_property
    def lasts(self) -> Several:
        """The parts of each call that may have begun last: the clocks cannot tell them from the last."""
        return self._tied(self.last, np.ones(len(self.group), dtype=np.bool_), False)

    @cached_property
    def seconds(self) -> Several:
        """The parts of each call that may have begun second last, where its last is known."""
        return self._tied(self.second, self.is_named, True)

    def _tied(self, of_call: Places, wanted: Mask, but_last: bool) -> Several:
        """Return the parts of each wanted call that the clocks cannot tell from one of them, but_last: without the last."""
        found, size = [np.zeros(0, dtype=np.int32)], np.zeros(len(of_call), dtype=np.int64)
        for stretch in self.chunks():
            calls = stretch[wanted[stretch]]
            owner, parts = self.parts.of(calls)
            which = of_call[calls][owner]
            earlier = after(self.start, which, self.start, parts)
            chosen = (earlier != MISSING) & ((parts == which) | (earlier <= np.maximum(self.limit(parts, which), 0)))
            if but_last:
                chosen &= parts != self.last[calls][owner]
            found.append(parts[chosen])
            size[calls] = np.bincount(owner[chosen], minlength=len(calls))
        return Several(np.concatenate(found), np.cumsum(size) - size, size)

    @cached_property
    def inherited(self) -> tuple[Int, Int]:
        """The least and the most, over all ranks that may have come second last, that each lag is due to an earlier call.

        0 where the last rank is not known.
        """
        least, most = (np.zeros(len(self.group), dtype=np.int64) for _ in range(2))
        for stretch in self.chunks():
            calls = stretch[self.is_named[stretch]]
            owner, seconds = self.seconds.of(calls)
            apart = self.later(seconds, self.last[calls][owner])
            for found, extreme in ((least, _least), (most, _most)):
                found[calls] = np.minimum(extreme(apart, owner, len(calls)), self.lag[calls])
        return least, most

    @cached_property
    def held(self) -> Int:
        """By how many ns each last rank, and all that the same call had released, came later than the others; 0 in doubt."""
        found = np.zeros(len(self.group), dtype=np.int64)
        for calls in self.chunks():
            owner, parts = self.parts.of(calls)
            last = self.last[calls][owner]
            behind = after(self.start, last, self.start, parts)
            doubt = self.limit(parts, last)
            behind[(doubt == MISSING) | (behind <= np.maximum(doubt, 0))] = 0
            before = self._before(parts)
            others = np.flatnonzero((before != self._before(last)) & (self.start[parts] != MISSING))
            found[calls] = _least(behind[others], owner[others], len(calls), _ENDLESS)
        return found

    def _before(self, parts: Places) -> Places:
        """Return the call that released each part; -1 for none."""
        released = self.released[parts]
        return np.where(released < 0, -1, self.call[released])


def _ordered(start: Int, owner: Int) -> tuple[Int, Int, Int]:
    """Return where in `start` each owner's first, second last and last are, -1 where there are no so many.

    owner: of each, sorted.
    """
    begins, place = np.flatnonzero(np.diff(owner, prepend=-1)), np.arange(len(start))

    def latest(times: Int) -> Int:
        """Return the last of those that are latest."""
        is_latest = (times == np.maximum.reduceat(times, begins)[owner]) & (times != MISSING)
        return np.maximum.reduceat(np.where(is_latest, place, -1), begins)

    last = latest(start)
    others = start.copy()
    others[last[last >= 0]] = MISSING
    first_start = np.minimum.reduceat(np.where(start == MISSING, _ENDLESS, start), begins)[owner]
    first = np.minimum.reduceat(np.where(start == first_start, place, len(start)), begins)
    return np.where(last < 0, -1, first), latest(others), last


def after(times: Int, which: npt.NDArray[Any], others: Int, other: npt.NDArray[Any]) -> Int:
    """Return times[which] - others[other]; MISSING where a place is -1 or a time is MISSING."""
    late, early = times[which], others[other]
    known = (which >= 0) & (other >= 0) & (late != MISSING) & (early != MISSING)
    return np.where(known, late - early, MISSING)


def share(waited: Int, part: Int, lag: Int) -> Int:
    """Return the share of a wait that `part` of a lag causes, in whole ns: all of it for all of the lag, none for none.

    A wait that is MISSING has MISSING shares.
    """
    divisor = np.maximum(lag, 1)
    part = np.clip(part, 0, divisor)
    whole, rest = waited // divisor, waited % divisor
    large = rest.astype(np.float64) * part >= _SAFE
    inner = rest * part // divisor
    inner[large] = rest[large].astype(object) * part[large] // divisor[large]
    return np.where(waited == MISSING, MISSING, np.where(lag <= 0, 0, whole * part + inner))


def propagated(arrivals: Arrivals) -> Int:
    """Return, for each call, what ranks waited in later calls because its last rank came late to it by itself; ns.

    Calls are compared only with calls of the same kind in another communicator, and nothing within the uncertainty of the clocks
    is passed on.
    """
    found = [np.zeros((2, 0), dtype=np.int64)]
    origins = np.flatnonzero(arrivals.is_named & (arrivals.inherited[0] > 0))
    for first in range(0, len(origins), _AT_ONCE):
        found += _followed(arrivals, origins[first : first + _AT_ONCE])
    call, passed_on = np.concatenate(found, axis=1)
    order = np.argsort(call, kind="stable")
    begins = np.flatnonzero(np.diff(call[order], prepend=-1))
    total = np.zeros(len(arrivals.group), dtype=np.int64)
    total[call[order][begins]] = sums(passed_on[order], begins)
    return total


def _followed(arrivals: Arrivals, origin: Int) -> Iterator[Int]:
    """Yield, at each stage, calls and what ranks waited in one of the calls `origin` for what the last rank did there.

    other: the call that held up the last rank. owner, one: the place of an origin, and a call that it is compared with.
    """
    left = arrivals.inherited[0][origin]
    other = arrivals.call[arrivals.released[arrivals.last[origin]]]
    owner, parts = arrivals.seconds.of(origin)
    for _ in range(_FARTHEST):
        owner, one = _alike(arrivals, other, owner, arrivals.call[arrivals.released[parts]])
        late, early = arrivals.last[other], arrivals.last[one]
        doubt = _most(_limits(arrivals, early, late[owner]), owner, len(other))
        arrived = np.minimum(left, _least(after(arrivals.start, late[owner], arrivals.start, early), owner, len(other)))
        arrived = np.where(arrived > doubt, arrived, 0)
        place, parts = arrivals.lasts.of(one)
        owner = owner[place]
        apart = arrivals.later(parts, late[owner])
        least, most = (np.minimum(extreme(apart, owner, len(other)), arrived) for extreme in (_least, _most))
        own = np.minimum(arrived - most, (arrivals.lag - arrivals.inherited[1])[other])
        own = np.where(arrivals.is_named[other] & (own > doubt), own, 0)
        above = (arrivals.lag[origin] - most, arrivals.lag[origin] - most - own)
        due, rest = (share(arrivals.waited[origin], part, arrivals.lag[origin]) for part in above)
        yield np.stack([other, np.where(due == MISSING, MISSING, due - rest)])[:, own > 0]
        left = np.minimum(least, arrivals.held[other])
        goes_on = left > 0
        if not goes_on.any():
            break
        kept = goes_on[owner]
        owner, parts = (np.cumsum(goes_on) - 1)[owner[kept]], parts[kept]
        origin, left, other = origin[goes_on], left[goes_on], arrivals.call[arrivals.released[late[goes_on]]]


def _alike(arrivals: Arrivals, other: Places, owner: Int, one: Places) -> tuple[Int, Int]:
    """Return, once each, the pairs of an owner and a call that its `other` may be compared with, sorted by owner."""
    mine = other[owner]
    is_alike = (arrivals.kind[one] == arrivals.kind[mine]) & (arrivals.kind[one] >= 0)
    is_alike &= arrivals.group[one] != arrivals.group[mine]
    calls = len(arrivals.group)
    pairs = np.unique(owner[is_alike] * calls + one[is_alike])
    return pairs // calls, pairs % calls


def _limits(arrivals: Arrivals, early: Places, late: Places) -> Int:
    """Return by how many ns two parts may be misplaced against each other; endless where unknown."""
    limit = arrivals.limit(early, late)
    return np.where(limit == MISSING, _ENDLESS, np.maximum(limit, 0))


def _least(values: Int, owner: Int, owners: int, of_none: int = 0) -> Int:
    """Return the least value of each owner; owner is sorted."""
    begins = np.flatnonzero(np.diff(owner, prepend=-1))
    found = np.full(owners, of_none)
    if len(begins):
        found[owner[begins]] = np.minimum.reduceat(values, begins)
    return found


def _most(values: Int, owner: Int, owners: int) -> Int:
    """Return the largest value of each owner, 0 for none; owner is sorted."""
    return -_least(-values, owner, owners)
