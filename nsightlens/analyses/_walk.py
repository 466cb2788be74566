"""The backward walk along a critical path: from the last end, each time to what came last before it.

Where the walk goes from a piece of GPU work depends on that work alone, and is computed for all of it at once; a thread goes back
over call after call until something else ended in between, so that such stretches are one step. Only these steps are taken one by
one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nsightlens.analyses._activity import BOUNDS, LAUNCH, STOP, Activity, Thread
from nsightlens.columns.arrays import CHUNK_ROWS, MISSING, Int

_CPU, _SYNCHRONISATION = BOUNDS.index("cpu"), BOUNDS.index("synchronisation")
_FEW = 32
"""Steps below which they are written down one by one: arrays are dearer."""


class Segments(NamedTuple):
    """Stretches of the path: what bound each (a place in BOUNDS), its ends in ns, and what it lies on; integers, one per segment.

    work, operator: the row of that table; thread: its id. MISSING where it lies on none.
    """

    bound: Int
    start: Int
    end: Int
    work: Int
    thread: Int
    operator: Int


class Path:
    """The segments of one path, none of them empty, and each where the one before it ends."""

    def __init__(self) -> None:
        self._parts: list[Segments | tuple[Activity, Int, int] | tuple[Thread, int, int]] = []
        self._loose: list[tuple[int, ...]] = []

    def add(self, bound: int, start: int, end: int, work: int = MISSING, thread: int = MISSING, operator: int = MISSING) -> None:
        """Add the segment before those that are here."""
        if start < end:
            self._loose.append((bound, start, end, work, thread, operator))
            if len(self._loose) >= CHUNK_ROWS:
                self._settle()

    def add_works(self, activity: Activity, works: Int, begin: int) -> None:
        """Add pieces of work, each with the delay before it, the last first, as far as they lie after `begin`."""
        if len(works) < _FEW:
            for segment in zip(*(column.tolist() for column in _work_segments(activity, works, begin)), strict=True):
                self.add(*segment)
            return
        self._settle()
        self._parts.append((activity, works, begin))

    def add_pieces(self, thread: Thread, last: int, first: int) -> None:
        """Add what a thread did from the start of one of its pieces back to the start of an earlier one."""
        if last - first < _FEW:
            for segment in zip(*(column.tolist() for column in _thread_segments(thread, last, first)), strict=True):
                self.add(*segment)
            return
        self._settle()
        self._parts.append((thread, last, first))

    def segments(self) -> Iterator[Segments]:
        """Yield the segments, the last first, some 100,000 at a time."""
        self._settle()
        for part in self._parts:
            if isinstance(part, Segments):
                yield part
            elif isinstance(part[0], Thread):
                thread, last, first = part
                for place in range(last, first, -CHUNK_ROWS):
                    yield _thread_segments(thread, place, max(first, place - CHUNK_ROWS))
            else:
                activity, works, begin = part
                for place in range(0, len(works), CHUNK_ROWS):
                    yield _work_segments(activity, works[place:place + CHUNK_ROWS], begin)

    def _settle(self) -> None:
        if self._loose:
            self._parts.append(Segments(*np.array(self._loose, np.int64).T))
            self._loose = []


def _work_segments(activity: Activity, works: Int, begin: int) -> Segments:
    """Return the segments of pieces of work and of the delays before them, by turns."""
    start, until = np.maximum(activity.starts[works], begin), np.maximum(activity.until[works], begin)
    none = np.full(len(works), MISSING)
    return _by_turns((activity.bound[works], start, activity.ends[works], works, none, none),
                     (activity.why[works], until, start, works, none, none))


def _thread_segments(thread: Thread, last: int, first: int) -> Segments:
    """Return the segments from the start of a piece back to that of an earlier one: gaps and pieces by turns."""
    place = np.arange(last, first, -1)
    cpu, none, own = np.full(len(place), _CPU), np.full(len(place), MISSING), np.full(len(place), thread.number)
    return _by_turns((cpu, thread.ends[place - 1], thread.starts[place], none, own, none),
                     (cpu, thread.starts[place - 1], thread.ends[place - 1], none, own, thread.operators[place - 1]))


def _by_turns(one: tuple[Int, ...], other: tuple[Int, ...]) -> Segments:
    """Return the first of the one, the first of the other, the second of the one, ..., without those that have no length."""
    columns = [np.stack(both, axis=1).reshape(-1) for both in zip(one, other, strict=True)]
    some = columns[1] < columns[2]
    return Segments(*(column[some] for column in columns))


class Walk:
    """A place that moves back in time, on a piece of work or on a thread, and the path behind it."""

    def __init__(self, activity: Activity, begin: int) -> None:
        self._did = activity
        self._begin = begin
        self.path = Path()
        self.work: int | None = None
        self.thread: int | None = None
        self.at = 0
        self._waits: dict[int, int] = {}  # by thread: waits from this one on lie ahead

    def stand(self, at: int, *, work: int | None = None, thread: int | None = None) -> None:
        """Go to a piece of work, at its end, or to a thread."""
        self.at, self.work, self.thread = at, work, thread

    def back(self, to: int, bound: int, thread: int, operator: int = MISSING) -> None:
        """Go back to a time, and add what lies between to the path."""
        to = max(to, self._begin)
        if to < self.at:
            self.path.add(bound, to, self.at, thread=thread, operator=operator)
            self.at = to

    def go(self) -> bool:
        """Go back to what came last; return whether there is anything before."""
        if self.at <= self._begin:
            return False
        if self.work is not None:
            return self._from_work(self.work)
        thread = self._did.threads.get(self.thread) if self.thread is not None else None
        return thread is not None and self._from_thread(thread)

    def _from_work(self, work: int) -> bool:
        """Go back from work to the work that it followed, and on to the call that launched the first of them."""
        did, begin = self._did, self._begin
        until, following = did.until_of, did.following_of
        works = array("q")
        while True:
            works.append(work)
            before = following[work]
            if before < 0 or until[work] <= begin:
                break
            work = before
        self.path.add_works(did, np.frombuffer(works, np.int64), begin)
        self.at = max(until[work], begin)
        if before == STOP or self.at <= begin:
            return False
        assert before == LAUNCH
        self.stand(self.at, thread=did.launching_thread(work))
        return True

    def _from_thread(self, thread: Thread) -> bool:
        place = bisect_left(thread.start_of, self.at) - 1
        wait = min(bisect_right(thread.wait_ends, self.at), self._waits.get(thread.number, len(thread.wait_ends))) - 1
        inside = place >= 0 and self.at <= thread.end_of[place]
        floor = None if place < 0 else thread.start_of[place] if inside else thread.end_of[place]
        if wait >= 0 and (floor is None or thread.wait_ends[wait] > floor):
            self.back(thread.wait_ends[wait], _CPU, thread.number, thread.operator_of[place] if inside else MISSING)
            self._waits[thread.number] = wait  # once: work of no length would lead back to the same wait
            awaited = thread.waited_for[wait]
            self.back(self._did.end_of[awaited], _SYNCHRONISATION, thread.number)
            self.stand(self.at, work=awaited)
            return True
        if not inside:
            return self._between(thread, floor)
        self.back(thread.start_of[place], _CPU, thread.number, thread.operator_of[place])
        if self.at > self._begin:
            self._over_pieces(thread, place)
        return True

    def _over_pieces(self, thread: Thread, place: int) -> None:
        """Go back from the start of a piece over those before it, as far as nothing else ended since."""
        first = max(thread.stop_of[place], bisect_left(thread.start_of, self._begin))
        if first < place:
            self.path.add_pieces(thread, place, first)
            self.at = thread.start_of[first]

    def _between(self, thread: Thread, ended: int | None) -> bool:
        """Go back over time in which the thread did nothing that was recorded, to it or to the operator that ended last."""
        did = self._did
        other = bisect_left(did.operator_ends, self.at) - 1
        if other >= 0 and (ended is None or did.operator_ends[other] > ended):
            self.back(did.operator_ends[other], _CPU, thread.number)
            self.stand(self.at, thread=did.operator_threads[other])
            return True
        if ended is None:
            return False
        self.back(ended, _CPU, thread.number)
        return True


def walk(activity: Activity, within: tuple[int, int, int] | None = None) -> Path:
    """Return the path of the whole window, or of a range (start, end, thread). O(n log n)."""
    begins = [*activity.starts.min(initial=np.iinfo(np.int64).max, keepdims=True).tolist(),
              *(thread.start_of[0] for thread in activity.threads.values())]
    if not len(activity.ends) and not activity.threads:
        return Path()
    place = Walk(activity, min(begins) if within is None else within[0])
    if within is None:
        _stand_at_end(activity, place)
    else:
        last = activity.last_launched(within[0], within[1])
        if last is not None and activity.end_of[last] > within[1]:
            place.stand(activity.end_of[last], work=last)
        else:
            place.stand(within[1], thread=within[2])
    while place.go():
        pass
    return place.path


def _stand_at_end(activity: Activity, place: Walk) -> None:
    """Go to the last end of all: of a thread, or of work that ended after every thread."""
    threads = [(thread.end_of[len(thread.end_of) - 1], number) for number, thread in activity.threads.items()]
    last = len(activity.ends) - 1
    if last >= 0 and (not threads or activity.end_of[last] > max(threads)[0]):
        place.stand(activity.end_of[last], work=last)
    else:
        end, number = max(threads)
        place.stand(end, thread=number)
