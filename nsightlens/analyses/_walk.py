"""The backward walk along a critical path: from the last end, each time to what came last before it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Calls that return when work on the GPU has ended. A copy awaits itself; the others what was launched before.
_AWAIT_COPY = ("cudaMemcpy", "cudaMemcpyAsync", "cudaMemcpy2D", "cudaMemcpyToSymbol", "cudaMemcpyFromSymbol", "cuMemcpyDtoH",
               "cuMemcpyHtoD", "cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync", "hipMemcpy", "hipMemcpyAsync", "hipMemcpyWithStream")
_AWAIT_WORK = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cuCtxSynchronize",
               "cuStreamSynchronize", "cuEventSynchronize", "hipDeviceSynchronize", "hipStreamSynchronize", "hipEventSynchronize")
_WAIT_EVENT = ("cudaStreamWaitEvent", "cuStreamWaitEvent", "hipStreamWaitEvent")
_BUSY = ("compute", "communication", "memory", "unknown")
_KIND = {"memory": "memory", "graph": "unknown"}


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the path: what bound it, its ends in ns, and the work or thread (with the operator's row) it lies on."""

    bound_by: str
    start: int
    end: int
    work: int | None = None
    thread: int | None = None
    operator: int | None = None


Path = list[Segment]


class Thread:
    """What a CPU thread did: its outermost calls and operators, none within another, and the waits for the GPU that it made."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.operators: list[int | None] = []
        self.wait_ends: list[int] = []
        self.waited_for: list[int] = []

    def at(self, at: int) -> int | None:
        """Return the place of the last outermost piece that began before `at`."""
        place = bisect_left(self.starts, at) - 1
        return place if place >= 0 else None


class Activity:
    """All that a process did in a window. Work is in order of its end; a place in that order names a piece of work."""

    def __init__(self, work: pa.Table, calls: pa.Table, operators: pa.Table) -> None:
        self._work, self._operators = work, operators
        self.kinds: list[str] = work["kind"].to_pylist()
        self.families: list[str | None] = work["family"].to_pylist()
        self.starts: list[int] = work["start_ns"].to_pylist()
        self.ends: list[int] = work["end_ns"].to_pylist()
        self._streams(work)
        self._launches(work, calls)
        self.threads: dict[int, Thread] = {}
        self._outermost(calls, operators)
        self._waits(calls)

    def _streams(self, work: pa.Table) -> None:
        """Note, for each piece of work, its stream's work in order of end, and its place there."""
        keys = list(zip(*(work[name].to_pylist() for name in ("device_id", "context", "stream")), strict=True))
        self.queues: dict[tuple[Any, ...], list[int]] = {}
        self.queue_ends: dict[tuple[Any, ...], list[int]] = {}
        self.queue_of, self.place_in_queue = keys, []
        for place, key in enumerate(keys):
            queue = self.queues.setdefault(key, [])
            self.place_in_queue.append(len(queue))
            queue.append(place)
            self.queue_ends.setdefault(key, []).append(self.ends[place])

    def _launches(self, work: pa.Table, calls: pa.Table) -> None:
        """Note the call that launched each piece of work, and how many waits for events the thread had made before each call."""
        row_of = {launch: row for row, launch in enumerate(calls["launch_id"].to_pylist())}
        self.call_of = [row_of.get(launch) for launch in work["launch_id"].to_pylist()]
        self.call_starts: list[int] = calls["start_ns"].to_pylist()
        self.call_ends: list[int] = calls["end_ns"].to_pylist()
        self.call_threads: list[int] = calls["thread"].to_pylist()
        made: dict[int, int] = {}  # waits for events, by thread
        self.waits_before: list[int] = []
        for name, thread in zip(calls["name"].to_pylist(), self.call_threads, strict=True):
            self.waits_before.append(made.get(thread, 0))
            if name in _WAIT_EVENT:
                made[thread] = self.waits_before[-1] + 1

    def _outermost(self, calls: pa.Table, operators: pa.Table) -> None:
        """Note what each thread did, without what lies within something else."""
        starts = np.concatenate([np.array(table["start_ns"], dtype=np.int64) for table in (calls, operators)])
        ends = np.concatenate([np.array(table["end_ns"], dtype=np.int64) for table in (calls, operators)])
        threads = np.concatenate([np.array(table["thread"], dtype=np.int64) for table in (calls, operators)])
        for row in np.lexsort((-ends, starts)).tolist():
            thread = self.threads.setdefault(int(threads[row]), Thread())
            if not thread.ends or starts[row] >= thread.ends[-1]:
                thread.starts.append(int(starts[row]))
                thread.ends.append(int(ends[row]))
                thread.operators.append(row - calls.num_rows if row >= calls.num_rows else None)
        by_end = [(end, thread) for thread, did in self.threads.items()
                for end, operator in zip(did.ends, did.operators, strict=True) if operator is not None]
        by_end.sort()
        self.operator_ends = [end for end, _ in by_end]
        self.operator_threads = [thread for _, thread in by_end]

    def _waits(self, calls: pa.Table) -> None:
        """Note, by thread and end, the calls that returned because work had ended, and which."""
        own: dict[int, int] = {}
        for work, row in enumerate(self.call_of):
            if row is not None:
                own[row] = work  # the last to end
        waits = []
        for row, name in enumerate(calls["name"].to_pylist()):
            if name in _AWAIT_COPY:
                awaited = own.get(row)
            elif name in _AWAIT_WORK:
                awaited = self._last_awaited(row)
            else:
                continue
            if awaited is not None and self.call_starts[row] < self.ends[awaited] <= self.call_ends[row]:
                waits.append((self.call_ends[row], self.call_threads[row], awaited))
        for end, thread, awaited in sorted(waits):
            self.threads[thread].wait_ends.append(end)
            self.threads[thread].waited_for.append(awaited)

    def _last_awaited(self, row: int) -> int | None:
        """Return the work that ended last within a call, of what was launched before the call."""
        began = self.call_starts[row]
        work = bisect_right(self.ends, self.call_ends[row]) - 1
        while work >= 0 and self.ends[work] > began:
            call = self.call_of[work]
            if call is None or self.call_starts[call] <= began:
                return work
            work -= 1
        return None

    def bound(self, work: int) -> str:
        """Return what a piece of work is bound by: compute, communication, memory or unknown."""
        return _KIND.get(self.kinds[work]) or ("communication" if self.families[work] == "collective" else "compute")

    def before_in_stream(self, work: int) -> int | None:
        """Return the work of the same stream that ended last before this one began."""
        key = self.queue_of[work]
        place = min(bisect_right(self.queue_ends[key], self.starts[work]), self.place_in_queue[work]) - 1
        return self.queues[key][place] if place >= 0 else None

    def awaits_event(self, work: int) -> bool:
        """Return whether the launching thread made some stream wait for an event since it last launched into this stream."""
        call, place = self.call_of[work], self.place_in_queue[work]
        if call is None:
            return False
        before = self.call_of[self.queues[self.queue_of[work]][place - 1]] if place else None
        if before is None or self.call_threads[before] != self.call_threads[call]:
            return self.waits_before[call] > 0
        return self.waits_before[call] > self.waits_before[before]

    def before_anywhere(self, work: int) -> int | None:
        """Return the work of the process that ended last before this one began."""
        place = min(bisect_right(self.ends, self.starts[work]), work) - 1
        return place if place >= 0 else None

    def described(self, path: Path) -> dict[str, pa.Array]:
        """Return the columns that say where the segments of a path lie."""
        work = pa.array([segment.work for segment in path], pa.int64())
        busy = pa.array([segment.work if segment.bound_by in _BUSY else None for segment in path], pa.int64())
        operator = pa.array([segment.operator for segment in path], pa.int64())
        names = pc.coalesce(*(table["name"].take(rows).cast(pa.string())
                              for table, rows in ((self._work, busy), (self._operators, operator))))
        return {"device_id": self._work["device_id"].take(work).cast(pa.string()), "stream": self._work["stream"].take(work),
                "thread": pa.array([segment.thread for segment in path], pa.int64()), "name": names}


class Walk:
    """A place that moves back in time, on a piece of work or on a thread, and the path behind it."""

    def __init__(self, activity: Activity, begin: int) -> None:
        self._did = activity
        self._begin = begin
        self.path: Path = []
        self.work: int | None = None
        self.thread: int | None = None
        self.at = 0
        self._waits: dict[int, int] = {}  # by thread: waits from this one on lie ahead

    def stand(self, at: int, *, work: int | None = None, thread: int | None = None) -> None:
        """Go to a piece of work, at its end, or to a thread."""
        self.at, self.work, self.thread = at, work, thread

    def back(self, to: int, bound_by: str, **where: int | None) -> None:
        """Go back to a time, and add what lies between to the path."""
        to = max(to, self._begin)
        if to < self.at:
            self.path.append(Segment(bound_by, to, self.at, **where))
            self.at = to

    def go(self) -> bool:
        """Go back to what came last; return whether there is anything before."""
        if self.at <= self._begin:
            return False
        if self.work is not None:
            return self._from_work(self.work)
        return self.thread is not None and self.thread in self._did.threads and self._from_thread(self.thread)

    def _from_work(self, work: int) -> bool:
        did = self._did
        began = did.starts[work]
        self.back(began, did.bound(work), work=work)
        before, call = did.before_in_stream(work), did.call_of[work]
        ended = None if before is None else did.ends[before]
        launched = None if call is None else min(did.call_ends[call], began)
        why = "queue"
        if did.awaits_event(work):
            other = did.before_anywhere(work)
            if other is not None and did.queue_of[other] != did.queue_of[work] and (ended is None or did.ends[other] > ended):
                before, ended, why = other, did.ends[other], "synchronisation"
        if before is not None and ended is not None and (launched is None or ended >= launched):
            self.back(ended, why, work=work)
            self.stand(self.at, work=before)
            return True
        if launched is None or call is None:
            return False
        self.back(launched, "launch", work=work)
        self.stand(self.at, thread=did.call_threads[call])
        return True

    def _from_thread(self, thread: int) -> bool:
        did = self._did.threads[thread]
        place = did.at(self.at)
        wait = min(bisect_right(did.wait_ends, self.at), self._waits.get(thread, len(did.wait_ends))) - 1
        inside = place is not None and self.at <= did.ends[place]
        floor = did.starts[place] if place is not None and inside else did.ends[place] if place is not None else None
        if wait >= 0 and (floor is None or did.wait_ends[wait] > floor):
            operator = did.operators[place] if place is not None and inside else None
            self.back(did.wait_ends[wait], "cpu", thread=thread, operator=operator)
            self._waits[thread] = wait  # once: work of no length would lead back to the same wait
            awaited = did.waited_for[wait]
            self.back(self._did.ends[awaited], "synchronisation", thread=thread)
            self.stand(self.at, work=awaited)
            return True
        if place is not None and inside:
            self.back(did.starts[place], "cpu", thread=thread, operator=did.operators[place])
            return True
        return self._between(thread, floor)

    def _between(self, thread: int, ended: int | None) -> bool:
        """Go back over time in which the thread did nothing that was recorded, to it or to the operator that ended last."""
        other = bisect_left(self._did.operator_ends, self.at) - 1
        if other >= 0 and (ended is None or self._did.operator_ends[other] > ended):
            self.back(self._did.operator_ends[other], "cpu", thread=thread)
            self.stand(self.at, thread=self._did.operator_threads[other])
            return True
        if ended is None:
            return False
        self.back(ended, "cpu", thread=thread)
        return True


def walk(activity: Activity, within: tuple[int, int, int] | None = None) -> Path:
    """Return the path, last segment first: of the whole window, or of a range (start, end, thread). O(n log n)."""
    begins = [*activity.starts, *(did.starts[0] for did in activity.threads.values() if did.starts)]
    if not begins:
        return []
    place = Walk(activity, min(begins) if within is None else within[0])
    if within is None:
        threads = [(did.ends[-1], thread) for thread, did in activity.threads.items() if did.ends]
        end, thread = max(threads, default=(min(begins), 0))
        if activity.ends and (not threads or activity.ends[-1] > end):
            place.stand(activity.ends[-1], work=len(activity.ends) - 1)
        else:
            place.stand(end, thread=thread)
    else:
        last = _last_launched(activity, within[0], within[1])
        if last is not None and activity.ends[last] > within[1]:
            place.stand(activity.ends[last], work=last)
        else:
            place.stand(within[1], thread=within[2])
    while place.go():
        pass
    return place.path


def _last_launched(activity: Activity, begin: int, end: int) -> int | None:
    """Return the work that ended last of what calls launched that began between two times."""
    for work in range(len(activity.ends) - 1, -1, -1):
        call = activity.call_of[work]
        if call is not None and begin <= activity.call_starts[call] < end:
            return work
    return None
