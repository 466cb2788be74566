"""What a process did in a window, as sorted arrays: GPU work, what each piece of it followed, and the pieces of each thread."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nsightlens.analyses._recorded_waits import RecordedWaits
from nsightlens.columns.arrays import MISSING, Int
from nsightlens.intervals.disjoint import outermost

BOUNDS = ("compute", "communication", "memory", "unknown", "cpu", "launch", "queue", "synchronisation")
"""What a stretch of the path can be bound by; a number in an array is a place here."""
AWAITS_COPY, AWAITS_WORK, WAITS_FOR_EVENT = 1, 2, 3
"""Calls that return when a copy, or the work launched before, has ended; and calls that make a stream wait for an event."""
STOP, LAUNCH = -2, -1
"""Work that followed nothing that is known; work that followed its call."""
_NOT_STATED = -2
"""In place of the work that a call awaited: CUPTI did not record which."""
_LAUNCH, _QUEUE, _SYNCHRONISATION = (BOUNDS.index(name) for name in ("launch", "queue", "synchronisation"))


class Thread:
    """What a CPU thread did: its outermost calls and operators, none within another, and the waits for the GPU that it made.

    Arrays to compute with have names in the plural; views of the same memory whose items are plain integers end in _of.
    """

    def __init__(self, number: int, starts: Int, ends: Int, operators: Int) -> None:
        self.number = number
        kept = outermost(starts, ends)
        self.starts, self.ends, self.operators = starts[kept], ends[kept], operators[kept]
        self.start_of, self.end_of, self.operator_of = (np.ascontiguousarray(values).data
                                                        for values in (self.starts, self.ends, self.operators))
        self.wait_ends = self.waited_for = np.zeros(0, np.int64).data
        self.stop_of = self.wait_ends

    def note_waits(self, ends: Int, waited_for: Int) -> None:
        """Note the waits for the GPU, by their ends, and the work that each waited for."""
        self.wait_ends, self.waited_for = ends.data, waited_for.data

    def note_stops(self, operator_ends: Int) -> None:
        """Note, for each piece, the first piece to whose start nothing leads away: no wait, and no operator that ended in a gap.

        operator_ends: those of all threads, sorted.
        """
        waits = np.searchsorted(np.asarray(self.wait_ends), self.starts, "right")
        ended = np.searchsorted(operator_ends, self.starts[1:], "left") > np.searchsorted(operator_ends, self.ends[:-1], "right")
        stops = np.ones(len(self.starts), np.bool_)
        stops[1:] = ended | (np.diff(waits) > 0)
        self.stop_of = np.maximum.accumulate(np.where(stops, np.arange(len(stops)), 0)).data


class Activity:
    """All that a process did in a window. Work is in order of its end; a place in that order names a piece of work.

    bound: what each piece of work is bound by, a place in BOUNDS. following: the work that it followed, else LAUNCH or STOP;
    until: when that ended, or its call; why: by what the time between is bound.
    """

    def __init__(self, work: pa.Table, calls: pa.Table, operators: pa.Table, waits: pa.Table) -> None:
        self.bound, self.starts, self.ends, self._queue = (
            work[name].to_numpy() for name in ("bound", "start_ns", "end_ns", "queue"))
        self.end_of = np.ascontiguousarray(self.ends).data
        self._call_starts, self._call_ends, self._call_threads, self._waits = (
            calls[name].to_numpy() for name in ("start_ns", "end_ns", "thread", "waits"))
        self._call = _places(calls["launch_id"].to_numpy(), work["launch_id"])
        self._recorded = RecordedWaits(waits, self._queue, self.ends, self._launched())
        self._recorded_call = _places(calls["launch_id"].to_numpy(), waits["launch_id"])
        self._follow()
        self.until_of, self.following_of = self.until.data, self.following.data
        self.threads: dict[int, Thread] = {}
        self._note_threads(operators)
        self._note_waits()
        self._note_operators()

    def launching_thread(self, work: int) -> int:
        """Return the thread of the call that launched a piece of work."""
        return int(self._call_threads[self._call[work]])

    def last_launched(self, begin: int, end: int) -> int | None:
        """Return the work that ended last of what calls launched that began between two times."""
        if not len(self._call_starts):
            return None
        began = self._call_starts[self._call]
        found = np.flatnonzero((self._call >= 0) & (begin <= began) & (began < end))
        return int(found[-1]) if len(found) else None

    def _launched(self) -> Int:
        """Return when the call of each piece of work began; MISSING where it is not known."""
        if not len(self._call_starts):
            return np.full(len(self._call), MISSING)
        return np.where(self._call >= 0, self._call_starts[self._call], MISSING)

    def _follow(self) -> None:
        """Compute for each piece of work what it followed: the last to end of its stream, its call, or the work awaited."""
        number = len(self.ends)
        before, neighbour = np.full(number, -1), np.full(number, -1)
        for queue in range(int(self._queue.max(initial=-1)) + 1):
            mine = np.flatnonzero(self._queue == queue)
            ended = np.searchsorted(self.ends[mine], self.starts[mine], "right")
            place = np.minimum(ended, np.arange(len(mine))) - 1
            before[mine] = np.where(place >= 0, mine[place], -1)
            neighbour[mine[1:]] = mine[:-1]
        ended = np.where(before >= 0, self.ends[before], MISSING)
        other = np.minimum(np.searchsorted(self.ends, self.starts, "right"), np.arange(number)) - 1
        if self._recorded.by_streams:
            known = np.where(self._recorded.awaited <= other, self._recorded.awaited, -1)
            other, awaited = np.where(self._recorded.is_open, other, known), self._recorded.is_open | (known >= 0)
        else:
            awaited = self._awaits_event(neighbour)
        awaited &= (other >= 0) & (self._queue[other] != self._queue)
        awaited &= (before < 0) | (self.ends[other] > ended)
        before, ended = np.where(awaited, other, before), np.where(awaited, self.ends[other], ended)
        launched = np.full(number, MISSING)
        known = self._call >= 0
        launched[known] = np.minimum(self._call_ends[self._call[known]], self.starts[known])
        follows = (before >= 0) & (~known | (ended >= launched))
        self.following = np.where(follows, before, np.where(known, LAUNCH, STOP))
        self.until = np.where(follows, ended, np.where(known, launched, self.starts))
        self.why = np.where(follows, np.where(awaited, _SYNCHRONISATION, _QUEUE), _LAUNCH)

    def _awaits_event(self, neighbour: Int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return whether the launching thread made a stream wait for an event since it last launched into this one.

        neighbour: the work of the same stream that is before each in order of end, or -1.
        """
        found = np.zeros(len(neighbour), np.bool_)
        if not len(self._waits):
            return found
        made = np.zeros(len(self._waits), np.int64)  # waits for events that the thread of each call had made before it
        for thread in np.unique(self._call_threads[self._waits == WAITS_FOR_EVENT]).tolist():
            mine = np.flatnonzero(self._call_threads == thread)
            made[mine] = np.cumsum(np.concatenate([[0], self._waits[mine] == WAITS_FOR_EVENT]))[:-1]
        known = np.flatnonzero(self._call >= 0)
        call, last = self._call[known], np.where(neighbour[known] >= 0, self._call[neighbour[known]], -1)
        same = (last >= 0) & (self._call_threads[last] == self._call_threads[call])
        found[known] = made[call] > np.where(same, made[last], 0)
        return found

    def _note_threads(self, operators: pa.Table) -> None:
        """Note what each thread did, without what lies within something else."""
        starts, ends, threads = (np.concatenate([of_calls, operators[name].to_numpy()]) for name, of_calls in (
            ("start_ns", self._call_starts), ("end_ns", self._call_ends), ("thread", self._call_threads)))
        operator = np.concatenate([np.full(len(self._call_starts), MISSING), np.arange(operators.num_rows)])
        order = np.lexsort((-ends, starts, threads))
        bounds = np.flatnonzero(np.diff(threads[order])) + 1
        for mine in np.split(order, bounds) if len(order) else ():
            number = int(threads[mine[0]])
            self.threads[number] = Thread(number, starts[mine], ends[mine], operator[mine])

    def _note_waits(self) -> None:
        """Note, by thread and end, the calls that returned because work had ended, and which."""
        known = np.flatnonzero(self._call >= 0)
        own = np.full(len(self._call_starts), -1)
        own[self._call[known]] = known  # the last to end
        rows = np.flatnonzero((self._waits == AWAITS_COPY) | (self._waits == AWAITS_WORK))
        awaited = np.where(self._waits[rows] == AWAITS_COPY, own[rows], self._last_awaited(rows))
        stated = np.full(len(self._call_starts), _NOT_STATED)
        by_host = np.flatnonzero((self._recorded_call >= 0) & self._recorded.is_by_host)
        stated[self._recorded_call[by_host]] = self._recorded.of_wait[by_host]
        awaited = np.where((self._waits[rows] == AWAITS_WORK) & (stated[rows] != _NOT_STATED), stated[rows], awaited)
        if not len(self.ends):
            return
        ended = self.ends[awaited]
        true = (awaited >= 0) & (self._call_starts[rows] < ended) & (ended <= self._call_ends[rows])
        rows, awaited = rows[true], awaited[true]
        order = np.lexsort((awaited, self._call_ends[rows]))
        rows, awaited = rows[order], awaited[order]
        for number, thread in self.threads.items():
            mine = self._call_threads[rows] == number
            thread.note_waits(self._call_ends[rows[mine]], awaited[mine])

    def _last_awaited(self, rows: Int) -> Int:
        """Return the work that ended last within each call, of what was launched before the call; -1 where there is none."""
        began = self._call_starts[rows]
        found = np.searchsorted(self.ends, self._call_ends[rows], "right") - 1
        launched = self._launched()
        inside = (found >= 0) & (self.ends[found] > began) if len(self.ends) else np.zeros(len(rows), np.bool_)
        launched_at = np.ascontiguousarray(launched).data
        for place in np.flatnonzero(inside & (launched[found] > began)).tolist():
            work, limit = int(found[place]), int(began[place])
            while work >= 0 and self.end_of[work] > limit and launched_at[work] > limit:
                work -= 1
            found[place] = work
            inside[place] = work >= 0 and self.end_of[work] > limit
        return np.where(inside, found, -1)

    def _note_operators(self) -> None:
        """Note the ends of the outermost operators of all threads, and where each thread can go back without a look at them."""
        with_operators = [(thread, thread.operators != MISSING) for thread in self.threads.values()]
        ends = np.concatenate([thread.ends[some] for thread, some in with_operators] or [np.zeros(0, np.int64)])
        threads = np.concatenate([np.full(np.count_nonzero(some), thread.number) for thread, some in with_operators]
                                 or [np.zeros(0, np.int64)])
        order = np.lexsort((threads, ends))
        self.operator_ends, self.operator_threads = ends[order].data, threads[order].data
        for thread in self.threads.values():
            thread.note_stops(ends[order])


def _places(ids: Int, wanted: pa.ChunkedArray) -> Int:
    """Return the place of each wanted id among `ids`, the last of several; -1 for NULL and for what is not there."""
    sought = wanted.fill_null(MISSING).to_numpy()
    if not len(ids):
        return np.full(len(sought), -1)
    order = np.argsort(ids, kind="stable")
    place = np.searchsorted(ids[order], sought, "right") - 1
    found = order[place]
    return np.where((place >= 0) & (ids[found] == sought), found, -1)
