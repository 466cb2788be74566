"""How far the lateness of a rank reaches: waits in a collective that come from an earlier one, which released its last rank late.

The last rank L of a call has its lag behind the second last S in part from the calls that released the two, P and Q: P ended
later. That came from what the last rank of P did (it arrived later than the last of Q), or from P itself, which took longer.
What the last rank of P arrived later than that of Q, it had in part from the calls that released those two, and so on, call
by call towards the beginning, until one call released both. What is left of a lag at each stage is at most what was left of
it at the stage after, so that the shares add up to the lag; each is its share of what all ranks waited in the call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nsightlens.columns.arrays import MISSING, Int, Mask

_FARTHEST = 1000
"""Calls over which a delay is followed back: what comes from further back belongs to nobody."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The parts of calls, sorted by call: their times on one clock (MISSING: on none); and of each call who came when.

    call, start, end: of each part. released: the part that its rank's previous collective is, -1 for none. second, last: of
    each call, the parts that began so; -1 for none. is_named: whether its last rank is known for certain. group, kind: a
    number for its communicator, and for its operation, payload and number of ranks; kind is -1 where unknown: like no other.
    """

    call: Int
    start: Int
    end: Int
    released: Int
    second: Int
    last: Int
    is_named: Mask
    group: Int
    kind: Int

    def later(self, one: Int, other: Int) -> Int:
        """Return by how many ns the call before the part `other` ended later than that before `one`; 0 where they are one."""
        first, second = self.released[one], self.released[other]
        apart = after(self.end, second, self.end, first)
        return np.where((apart == MISSING) | (self.call[first] == self.call[second]), 0, np.maximum(apart, 0))

    def released_as_one(self) -> Mask:
        """Return of each call whether one earlier call released all of its ranks: then it came from there, whoever was last."""
        begins = np.flatnonzero(np.diff(self.call, prepend=-1))
        before = np.where(self.released < 0, -1, self.call[self.released])
        least, most = (ends.reduceat(before, begins) for ends in (np.minimum, np.maximum))
        return np.asarray((least == most) & (least >= 0))


def after(times: Int, which: Int, others: Int, other: Int) -> Int:
    """Return times[which] - others[other]; MISSING where a place is -1 or a time is MISSING."""
    late, early = times[which], others[other]
    known = (which >= 0) & (other >= 0) & (late != MISSING) & (early != MISSING)
    return np.where(known, late - early, MISSING)


def share(waited: Int, part: Int, lag: Int) -> Int:
    """Return the share of a wait that `part` of a lag causes, in whole ns: all of it for all of the lag, none for none."""
    divisor = np.maximum(lag, 1)
    fits = waited.astype(np.float64) * lag < np.iinfo(np.int64).max
    inner = np.where(fits, waited * part // divisor, np.floor(waited * (part / divisor)).astype(np.int64))
    return np.where(part <= 0, 0, np.where(part >= lag, waited, inner))


def propagated(arrivals: Arrivals, waited: Int, lag: Int, limit: Callable[[Int, Int], Int]) -> Int:
    """Return, for each call, what ranks waited in later calls because its last rank came late to it by itself; ns.

    waited: what all ranks together waited in each call. lag: of its last rank. limit: by how many ns the starts of two parts
    may be misplaced against each other, MISSING where unknown: nothing within it is passed on. Calls are compared only with
    calls of the same kind in another communicator, and where it is known who was last, or one call released all.
    """
    found = np.zeros(len(lag), dtype=np.int64)
    is_known = arrivals.is_named | arrivals.released_as_one()
    origin = np.flatnonzero(arrivals.is_named)
    late, early = arrivals.last[origin], arrivals.second[origin]
    left = np.minimum(lag[origin], arrivals.later(early, late))
    for _ in range(_FARTHEST):
        goes_on = left > 0
        origin, left = origin[goes_on], left[goes_on]
        if not len(origin):
            break
        one, other = (arrivals.call[arrivals.released[part[goes_on]]] for part in (early, late))
        early, late = arrivals.last[one], arrivals.last[other]
        arrived = np.minimum(after(arrivals.start, late, arrivals.start, early), left)
        doubt = limit(early, late)
        is_alike = (arrivals.kind[one] == arrivals.kind[other]) & (arrivals.kind[one] >= 0)
        is_alike &= (arrivals.group[one] != arrivals.group[other])
        is_sure = is_known[other] & (doubt != MISSING) & (arrived > np.maximum(doubt, 0))
        arrived = np.where(is_alike & is_sure, arrived, 0)
        left = np.minimum(arrived, arrivals.later(early, late))
        own = share(waited[origin], arrived, lag[origin]) - share(waited[origin], left, lag[origin])
        np.add.at(found, other, np.where(arrivals.is_named[other] & (arrived - left > np.maximum(doubt, 0)), own, 0))
    return found
