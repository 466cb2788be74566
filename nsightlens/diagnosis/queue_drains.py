"""Idle time after a blocking call that drained the launch queue: by so much the host would have launched ahead otherwise.

Calls that wait hold it, and the profiler does. Without that, all that follows is launched earlier by the time that it held the
host while the GPU still worked. Gaps in which the host does no more than launch are owed to it as long as they would be gone
then, whatever the thread does in them. One that would only be shorter is not: there the host is slower than the GPU with or
without it. The leaves of both stay.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from nsightlens.columns.arrays import Int, Mask, numbered, split
from nsightlens.diagnosis.fences import fences
from nsightlens.diagnosis.issuers import Issuers
from nsightlens.diagnosis.profile_arrays import MEMORY, GpuWork, ProfileArrays
from nsightlens.diagnosis.timeline import CAUSES, LONG_NS, Parts, Threads
from nsightlens.intervals.coverage import union
from nsightlens.intervals.disjoint import outermost
from nsightlens.intervals.intersection import holding

ALLOCATES = re.compile(r"Malloc|MemAlloc|Free")
"""Calls that reusing buffers cures, all at once."""
_WAITS_ON_GPU = re.compile("StreamWait")
"""Calls that let a stream wait, not the host."""
_WAITS_TO_ALLOCATE = re.compile(rf"^(?!.*Async).*(?:{ALLOCATES.pattern})")


class Owed(NamedTuple):
    """Idle time of a leaf (cause, and name in it) that is owed to a call, '' for a fence (fences.py); by: who issued it, ''
    where that is unknown."""

    cause: str
    name: str
    to: str
    by: str
    ns: int


class _Holds(NamedTuple):
    """What held a thread until the queue may have been empty, by start: calls that wait, and the profiler, whose call is -1."""

    start: Int
    end: Int
    name: Int
    thread: Int
    call: Int


def owed(threads: Threads, issuers: Issuers, work: GpuWork, parts: Parts, gap: Int, start: Int, launch: Int) -> list[Owed]:
    """Return what of the parts of gaps is owed to what emptied the queue.

    gap, start, launch: the number of each gap, when it begins, and the call that launched what ends it, -1 unknown; by start.
    """
    recorded = threads.recorded
    blocks = _blocks(recorded, work)
    holds = _holds(threads, work, blocks)
    hold = _emptied_by(recorded, holds, start, launch) if len(holds.start) else np.zeros(0, np.int64)
    emptied = np.flatnonzero(hold >= 0)
    if not len(emptied):
        return []
    hold = hold[emptied]
    place = np.flatnonzero(_pays(recorded, parts, blocks))
    place = place[np.argsort(parts.gap[place], kind="stable")]
    after = np.searchsorted(gap[emptied], parts.gap[place], "right") - 1
    place, after = place[after >= 0], after[after >= 0]
    if not len(place):
        return []
    kind = np.where(recorded.named(holds, ALLOCATES), -2, holds.name)[hold]
    turn = np.cumsum(np.concatenate([[0], kind[1:] != kind[:-1]]))
    lead = _busy_before(work, start[emptied]) - _busy_before(work, np.minimum(holds.start[hold], start[emptied]))
    paid = np.zeros(len(place), np.int64)
    for number, of_gap in split(np.arange(len(place)), turn[after]):
        first = int(np.searchsorted(turn, number))
        paid[of_gap] = _paid(parts.ns[place[of_gap]], np.cumsum(lead[first:after[of_gap[-1]] + 1])[after[of_gap] - first])
    left = np.bincount(parts.gap[place], parts.ns[place] - paid)[parts.gap[place]]
    call = holds.call[hold]
    to = np.where((call >= 0) & fences(recorded)[call], -1, holds.name[hold])[after]
    return _sums(recorded, parts, place, to, issuers.call_issuers(call)[after], np.where(left == 0, paid, 0))


def _holds(threads: Threads, work: GpuWork, blocks: Mask) -> _Holds:
    spans, blocking = threads.recorded.calls.spans, np.flatnonzero(blocks)
    holds = [_Holds(spans.start[blocking], spans.end[blocking], spans.name[blocking], spans.thread[blocking], blocking)]
    for thread in np.unique(spans.thread[work.call[work.call >= 0]]).tolist():
        profiled = threads.profiler(thread)
        holds.append(_Holds(profiled.start, profiled.end, profiled.name, np.full(len(profiled.start), thread),
                            np.full(len(profiled.start), -1)))
    every = _Holds(*(np.concatenate(columns) for columns in zip(*holds, strict=True)))
    order = np.lexsort((-every.end, every.start))
    return _Holds(*(column[order] for column in every))


def _busy_before(work: GpuWork, times: Int) -> Int:
    """Return how long the GPU had worked until each time."""
    busy = union(work.start, work.end)
    length = busy.end - busy.start
    place = np.searchsorted(busy.start, times, "right") - 1
    before = np.concatenate([[0], np.cumsum(length)])[place]
    busy_ns: Int = np.where(place >= 0, before + np.minimum(times - busy.start[place], length[place]), 0)
    return busy_ns


def _sums(recorded: ProfileArrays, parts: Parts, place: Int, to: Int, by: Int, paid: Int) -> list[Owed]:
    cause, name = parts.cause[place], parts.name[place]
    _, first, key = np.unique(numbered(cause, name, to, by), return_index=True, return_inverse=True)
    ns = np.zeros(len(first), np.int64)
    np.add.at(ns, key, paid)
    return [Owed(CAUSES[cause[row]], recorded.text(int(name[row])), recorded.text(int(to[row])), recorded.text(int(by[row])), of)
            for row, of in zip(first.tolist(), ns.tolist(), strict=True) if of]


def _pays(recorded: ProfileArrays, parts: Parts, blocks: Mask) -> Mask:
    """Return in which parts of gaps the host only launches, and what it launched starts.

    What a call that waits takes itself is its own; what was launched before its gap began would start no earlier; and code that
    holds the host for long is a cause of its own.
    """
    is_of = {cause: parts.cause == CAUSES.index(cause) for cause in CAUSES}
    waiting = np.unique(recorded.calls.spans.name[blocks])
    code = is_of["ranges"] | is_of["unknown"]
    gap, gaps = parts.gap, int(parts.gap.max(initial=0)) + 1
    in_code_ns = np.bincount(gap[code], parts.ns[code], gaps)[gap]
    launched = np.bincount(gap[~is_of["between kernels"]], minlength=gaps)[gap] > 0
    pays: Mask = (is_of["launching"] | is_of["operators"] | (is_of["between kernels"] & launched)
                  | (code & (in_code_ns <= LONG_NS))
                  | (is_of["API calls"] & ~np.isin(parts.name, waiting)))
    return pays


def _paid(ns: Int, ahead: Int) -> Int:
    """Return how much of each part would be gone, if launches came earlier by so much. ahead: in all until each."""
    whole = np.cumsum(ns)
    unpaid = np.maximum.accumulate(np.maximum(whole - ahead, 0))
    return ns - np.diff(unpaid, prepend=0)


def _emptied_by(recorded: ProfileArrays, holds: _Holds, start: Int, launch: Int) -> Int:
    """Return the place of what emptied the queue before each gap, -1 where nothing did.

    It holds a thread, the gap begins meanwhile, and its thread launched what ends the gap only then: the queue held nothing more.
    """
    spans = recorded.calls.spans
    emptied_by = np.full(len(start), -1)
    linked_gaps = np.flatnonzero(launch >= 0)
    for thread, gaps_of_thread in split(linked_gaps, spans.thread[launch[linked_gaps]]):
        holds_of_thread = np.flatnonzero(holds.thread == thread)
        holds_of_thread = holds_of_thread[outermost(holds.start[holds_of_thread], holds.end[holds_of_thread])]
        holder = holding(start[gaps_of_thread], holds.start[holds_of_thread], holds.end[holds_of_thread])
        hold = np.append(holds_of_thread, -1)[holder]
        launched_at = spans.start[launch[gaps_of_thread]]
        emptied_by[gaps_of_thread] = np.where((holder >= 0) & (launched_at >= holds.start[hold]), hold, -1)
    return emptied_by


def _blocks(recorded: ProfileArrays, work: GpuWork) -> Mask:
    """Return which calls wait for the GPU: synchronisation, freeing and taking memory, copies that return once they are done."""
    calls = recorded.calls
    blocks = (calls.waits & ~recorded.named(calls.spans, _WAITS_ON_GPU)
              | recorded.named(calls.spans, _WAITS_TO_ALLOCATE))
    copies = work.call[(work.kind == MEMORY) & (work.call >= 0)]
    done = work.end[(work.kind == MEMORY) & (work.call >= 0)]
    blocks[copies[calls.copies[copies] & (calls.spans.end[copies] >= done)]] = True
    return blocks
