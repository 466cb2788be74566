"""Idle time behind a call that waited until the queue was empty: by so much the host would have launched ahead without it.

Without the call, all that follows is launched earlier by the time that it held the host while the GPU still worked. Gaps in which
the host does no more than launch are owed to it as long as they would be gone then, whatever the thread does in them. One that
would only be shorter is not: there the host is slower than the GPU with or without the call. The leaves of both stay.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from nsightlens.columns.arrays import Int, Mask, numbered, split
from nsightlens.diagnosis.recorded import MEMORY, Recorded, Work
from nsightlens.diagnosis.timeline import CAUSES, LONG_NS, Parts
from nsightlens.intervals.apart import outermost
from nsightlens.intervals.coverage import union
from nsightlens.intervals.intersection import holding

ALLOCATES = re.compile(r"Malloc|MemAlloc|Free")
"""Calls that reusing buffers cures, all at once."""
_WAITS_ON_GPU = re.compile("StreamWait")
"""Calls that let a stream wait, not the host."""
_WAITS_TO_ALLOCATE = re.compile(rf"^(?!.*Async).*(?:{ALLOCATES.pattern})")


class Owed(NamedTuple):
    """Idle time of a leaf (cause, and name in it) that is owed to a call."""

    cause: str
    name: str
    to: str
    ns: int


def owed(recorded: Recorded, work: Work, parts: Parts, gap: Int, start: Int, launch: Int) -> list[Owed]:
    """Return what of the parts of gaps is owed to calls that emptied the queue.

    gap, start, launch: the number of each gap, when it begins, and the call that launched what ends it, -1 unknown; by start.
    """
    spans, blocks = recorded.calls.spans, _blocks(recorded, work)
    call = _emptied_by(recorded, blocks, start, launch)
    emptied = np.flatnonzero(call >= 0)
    if not len(emptied):
        return []
    call = call[emptied]
    place = np.flatnonzero(_pays(recorded, parts, blocks))
    place = place[np.argsort(parts.gap[place], kind="stable")]
    after = np.searchsorted(gap[emptied], parts.gap[place], "right") - 1
    place, after = place[after >= 0], after[after >= 0]
    if not len(place):
        return []
    kind = np.where(recorded.named(spans, ALLOCATES), -2, spans.name)[call]
    turn = np.cumsum(np.concatenate([[0], kind[1:] != kind[:-1]]))
    lead = _busy_before(work, start[emptied]) - _busy_before(work, np.minimum(spans.start[call], start[emptied]))
    paid = np.zeros(len(place), np.int64)
    for number, mine in split(np.arange(len(place)), turn[after]):
        first = int(np.searchsorted(turn, number))
        paid[mine] = _paid(parts.ns[place[mine]], np.cumsum(lead[first:after[mine[-1]] + 1])[after[mine] - first])
    left = np.bincount(parts.gap[place], parts.ns[place] - paid)[parts.gap[place]]
    return _sums(recorded, parts, place, spans.name[call][after], np.where(left == 0, paid, 0))


def _busy_before(work: Work, times: Int) -> Int:
    """Return how long the GPU had worked until each time."""
    busy = union(work.start, work.end)
    length = busy.end - busy.start
    place = np.searchsorted(busy.start, times, "right") - 1
    before = np.concatenate([[0], np.cumsum(length)])[place]
    found: Int = np.where(place >= 0, before + np.minimum(times - busy.start[place], length[place]), 0)
    return found


def _sums(recorded: Recorded, parts: Parts, place: Int, to: Int, paid: Int) -> list[Owed]:
    cause, name = parts.cause[place], parts.name[place]
    _, first, which = np.unique(numbered(cause, name, to), return_index=True, return_inverse=True)
    ns = np.zeros(len(first), np.int64)
    np.add.at(ns, which, paid)
    return [Owed(CAUSES[cause[row]], recorded.text(int(name[row])), recorded.text(int(to[row])), total)
            for row, total in zip(first.tolist(), ns.tolist(), strict=True) if total]


def _pays(recorded: Recorded, parts: Parts, blocks: Mask) -> Mask:
    """Return in which parts of gaps the host only launches, and what it launched starts.

    What a call that waits takes itself is its own; what was launched before its gap began would start no earlier; and code that
    holds the host for long is a cause of its own.
    """
    is_of = {cause: parts.cause == CAUSES.index(cause) for cause in CAUSES}
    waiting = np.unique(recorded.calls.spans.name[blocks])
    code = is_of["ranges"] | is_of["unknown"]
    gap, gaps = parts.gap, int(parts.gap.max(initial=0)) + 1
    held = np.bincount(gap[code], parts.ns[code], gaps)[gap]
    launched = np.bincount(gap[~is_of["between kernels"]], minlength=gaps)[gap] > 0
    found: Mask = (is_of["launching"] | is_of["operators"] | (is_of["between kernels"] & launched) | (code & (held <= LONG_NS))
                   | (is_of["API calls"] & ~np.isin(parts.name, waiting)))
    return found


def _paid(ns: Int, ahead: Int) -> Int:
    """Return how much of each part would be gone, if launches came earlier by so much. ahead: in all until each."""
    whole = np.cumsum(ns)
    left = np.maximum.accumulate(np.maximum(whole - ahead, 0))
    return ns - np.diff(left, prepend=0)


def _emptied_by(recorded: Recorded, blocks: Mask, start: Int, launch: Int) -> Int:
    """Return the place of the call that emptied the queue before each gap, -1 where none did.

    It waits for the GPU, the gap begins in it, and its thread launched what ends the gap only then: the queue held nothing more.
    """
    spans = recorded.calls.spans
    found = np.full(len(start), -1)
    known = np.flatnonzero(launch >= 0)
    for number, places in split(known, spans.thread[launch[known]]):
        own = np.flatnonzero(blocks & (spans.thread == number))
        own = own[outermost(spans.start[own], spans.end[own])]
        held = holding(start[places], spans.start[own], spans.end[own])
        call = np.append(own, -1)[held]
        found[places] = np.where((held >= 0) & (spans.start[launch[places]] >= spans.start[call]), call, -1)
    return found


def _blocks(recorded: Recorded, work: Work) -> Mask:
    """Return which calls wait for the GPU: synchronisation, freeing and taking memory, copies that return once they are done."""
    calls = recorded.calls
    found = (calls.waits & ~recorded.named(calls.spans, _WAITS_ON_GPU)
             | recorded.named(calls.spans, _WAITS_TO_ALLOCATE))
    copies = work.call[(work.kind == MEMORY) & (work.call >= 0)]
    done = work.end[(work.kind == MEMORY) & (work.call >= 0)]
    found[copies[calls.copies[copies] & (calls.spans.end[copies] >= done)]] = True
    return found
