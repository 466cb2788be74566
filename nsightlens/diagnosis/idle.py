"""Idle ns of a GPU by cause: what the thread did that launched the work after each gap; start-up and wind-down likewise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nsightlens.columns.arrays import Int, split
from nsightlens.diagnosis.branches import DELAY_NS, LONG_GAP_NS, IdleGaps, elsewhere, missing_from
from nsightlens.diagnosis.conditions import cut_off
from nsightlens.diagnosis.issuers import Issuers
from nsightlens.diagnosis.profile_arrays import GpuWork, ProfileArrays
from nsightlens.diagnosis.queue_drains import Owed, owed
from nsightlens.diagnosis.sampled_functions import Sampled, sampled
from nsightlens.diagnosis.timeline import CAUSES, NO_THREAD, Layer, Parts, Threads, joined, paint
from nsightlens.diagnosis.window import Window
from nsightlens.intervals.coverage import Union, union
from nsightlens.intervals.intersection import difference, intersection

_CONTEXT_NS = 10_000_000
"""How long the first API call lasts that creates the context, in start-up."""
_BEGINS = re.compile(r"Init$|Count$|GetUuid|LoadingMode|ProcAddress|SetDevice$|Ctx(Create|Retain)|PrimaryCtx|StreamCreate|"
                     r"(Module|Library)Load|Malloc|MemAlloc|HostAlloc|HostRegister|Free$", re.I)
"""Calls before the first launch or copy of a process which show that it only just began to use the GPU."""
_NUMBER = re.compile(r"(?<![A-Za-z_:])\d+")
_ISSUED = ("waiting", "API calls")
"""Causes of which it is said who issues the calls."""
_BESIDE = 3
"""Other launching threads that are looked at where one does nothing that was recorded."""
_HELD_BY = 3
"""Gaps that are named where they hold half of a cause."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One cause of idle time: its ns, its parts by name, the largest first, and the few gaps that hold half of it.

    gaps: how many have some; few: 1 to 3 gaps that hold half of it, with few_ns, 0 where more do; issued: of calls, the ns by
    name and by who issues them; sampled: what CPU samples say of it, None where too few could.
    """

    cause: str
    ns: int
    names: tuple[tuple[str, int], ...]
    gaps: int
    few: int = 0
    few_ns: int = 0
    issued: tuple[tuple[str, str, int], ...] = ()
    sampled: Sampled | None = None

    @property
    def main(self) -> tuple[tuple[str, int], ...]:
        """The name that holds half of it, or the two that do, with their ns; none where it takes more."""
        named = [(name, ns) for name, ns in self.names if name][:2]
        return next((tuple(named[:count]) for count in range(1, len(named) + 1)
                     if 2 * sum(ns for _, ns in named[:count]) >= self.ns), ())


class Idle(NamedTuple):
    """The causes of the idle time of a device, the largest first, which sum to it; what of it calls owe that wait; and when the
    host was in MPI meanwhile: starts and ends."""

    leaves: list[Leaf]
    owed: list[Owed]
    in_mpi: tuple[Int, Int]


def idle(recorded: ProfileArrays, work: GpuWork, gaps: IdleGaps, threads: Threads, issuers: Issuers) -> Idle:
    """Return why a device was idle."""
    number = np.flatnonzero(gaps.missing > gaps.start)
    start, end = gaps.start[number], gaps.missing[number]
    call = np.where(gaps.work[number] >= 0, work.call[gaps.work[number]], -1)
    spans = recorded.calls.spans
    known = call >= 0
    until = np.where(known, np.clip(spans.end[call] if len(spans.end) else 0, start, end), end)
    thread = np.where(known, spans.thread[call] if len(spans.thread) else NO_THREAD, _main(recorded, work))
    between = np.flatnonzero(until < end)
    after = _after(elsewhere(recorded, work), number[between], until[between], end[between], thread[between])
    not_empty = np.flatnonzero(start < until)
    parts = joined([paint(threads, number[not_empty], start[not_empty], until[not_empty], thread[not_empty], _fed(recorded, work),
                          _beside(recorded, work)), *after])
    mpi = np.flatnonzero(parts.cause == CAUSES.index("MPI"))
    mpi = mpi[np.argsort(parts.start[mpi], kind="stable")]
    return Idle(leaves(recorded, issuers, parts), owed(threads, issuers, work, parts, number, start, call),
                (parts.start[mpi], parts.start[mpi] + parts.ns[mpi]))


def _after(others: Union, number: Int, start: Int, end: Int, thread: Int) -> list[Parts]:
    """Return the idle time behind launch calls: while other devices work, and between kernels."""
    shared, rest = intersection(start, end, others.start, others.end), difference(start, end, others.start, others.end)
    return [Parts(number[found.place], np.full(len(found.place), CAUSES.index(cause)), np.full(len(found.place), -1),
                  found.end - found.start, found.start, thread[found.place])
            for cause, found in (("another GPU", shared), ("between kernels", rest))]


def _fed(recorded: ProfileArrays, work: GpuWork) -> dict[int, list[Layer]]:
    """Return of each thread that launched work of a device when that runs which it launched on other devices."""
    others = recorded.work.where(np.flatnonzero((recorded.work.device != work.device[0]) & (recorded.work.call >= 0)))
    spans, layers = recorded.calls.spans, {}
    launching = np.unique(spans.thread[work.call[work.call >= 0]])
    for thread, places in split(np.arange(len(others.call)), spans.thread[others.call]):
        if thread in launching:
            busy = union(others.start[places], others.end[places])
            layers[thread] = [Layer("another GPU", busy.start, busy.end, np.full(len(busy.start), -1))]
    return layers


def _beside(recorded: ProfileArrays, work: GpuWork) -> dict[int, list[int]]:
    """Return of each thread that launched work of a device the others of its process that did, those that launched most first;
    without any launch, of those that call the API or have ranges."""
    spans, calls = recorded.calls.spans, work.call[work.call >= 0]
    if not len(calls):
        recorded_spans = _recorded(recorded, work)
        return {thread: [other for other in recorded_spans if other != thread][:_BESIDE] for thread in recorded_spans}
    threads, first, count = np.unique(spans.thread[calls], return_index=True, return_counts=True)
    process = spans.process[calls][first]
    order = np.argsort(-count, kind="stable")
    return {int(thread): threads[order[(process[order] == of) & (threads[order] != thread)]].tolist()[:_BESIDE]
            for thread, of in zip(threads.tolist(), process.tolist(), strict=True)}


def _main(recorded: ProfileArrays, work: GpuWork) -> int:
    """Return the thread that launched most of the work; without any launch one that was recorded at all, else NO_THREAD."""
    threads = recorded.calls.spans.thread[work.call[work.call >= 0]]
    if not len(threads):
        return next(iter(_recorded(recorded, work)), NO_THREAD)
    values, count = np.unique(threads, return_counts=True)
    return int(values[np.argmax(count)])


def _recorded(recorded: ProfileArrays, work: GpuWork) -> list[int]:
    """Return the threads of the processes of work that call the API, most often first; then those that have ranges while it
    runs, the one with most time in them first."""
    calls, spans = recorded.calls.spans, recorded.ranges.spans
    processes = np.unique(work.process)
    calling = calls.thread[np.isin(calls.process, processes)]
    outermost_ranges = np.isin(spans.process, processes) & (recorded.ranges.parent < 0)
    start, end = np.maximum(spans.start, work.start.min()), np.minimum(spans.end, work.end.max())
    outermost_ranges &= end > start
    return list(dict.fromkeys([*_most(calling, np.ones(len(calling), np.int64)),
                               *_most(spans.thread[outermost_ranges], (end - start)[outermost_ranges])]))


def _most(thread: Int, amount: Int) -> list[int]:
    """Return threads, the one with the largest sum of amounts at the front."""
    threads, thread_number = np.unique(thread, return_inverse=True)
    sums = np.zeros(len(threads), np.int64)
    np.add.at(sums, thread_number, amount)
    return [int(each) for each in threads[np.argsort(-sums, kind="stable")]]


def leaves(recorded: ProfileArrays, issuers: Issuers, parts: Parts) -> list[Leaf]:
    """Return the sums of parts by cause and name, the largest first."""
    sums = []
    for place in np.unique(parts.cause).tolist():
        of_cause = np.flatnonzero(parts.cause == place)
        by_name, by_gap = np.zeros(len(recorded.texts) + 1, np.int64), np.zeros(int(parts.gap.max()) + 1, np.int64)
        np.add.at(by_name, parts.name[of_cause], parts.ns[of_cause])  # the last: of no name
        np.add.at(by_gap, parts.gap[of_cause], parts.ns[of_cause])
        total = int(by_name.sum())
        if total:
            few, few_ns = _few(by_gap, total)
            named = _alike((text, int(by_name[code])) for code, text in enumerate([*recorded.texts, ""]) if by_name[code])
            by = _issued(recorded, issuers, Parts(*(column[of_cause] for column in parts))) if CAUSES[place] in _ISSUED else ()
            seen = sampled(recorded.samples, recorded.texts, parts.start[of_cause], parts.ns[of_cause], parts.thread[of_cause])
            sums.append(Leaf(CAUSES[place], total, named, int(np.count_nonzero(by_gap)), few, few_ns, by, seen))
    return sorted(sums, key=lambda leaf: (-leaf.ns, leaf.cause))


def _issued(recorded: ProfileArrays, issuers: Issuers, parts: Parts) -> tuple[tuple[str, str, int], ...]:
    """Return the ns of calls by name and by who issues them."""
    by = issuers.at(parts.thread, parts.start)
    keys, pair = np.unique(np.stack([parts.name, by]), axis=1, return_inverse=True)
    sums = np.zeros(keys.shape[1], np.int64)
    np.add.at(sums, pair.ravel(), parts.ns)
    return tuple((recorded.text(name), recorded.text(code), ns)
                 for (name, code), ns in zip(keys.T.tolist(), sums.tolist(), strict=True) if code >= 0)


def _alike(named: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Return the sums of names that are alike but for numbers and what follows a comma, the largest first."""
    sums: dict[str, tuple[str, int]] = {}
    for name, ns in named:
        form = alike(name)
        name_of_form, before = sums.get(form, (name.partition(",")[0], 0))
        sums[form] = name_of_form if name_of_form == name.partition(",")[0] else form, before + ns
    return tuple(sorted(sums.values(), key=lambda item: (-item[1], item[0])))


def alike(name: str) -> str:
    """Return what names have in common that are alike but for numbers."""
    return _NUMBER.sub("#", name.partition(",")[0])


def _few(by_gap: Int, total: int) -> tuple[int, int]:
    """Return the fewest gaps that hold half of a cause and their ns, where there are 1 to 3 of more."""
    if 2 * _HELD_BY * int(by_gap.max()) < total:  # as mostly
        return 0, 0
    largest = np.sort(by_gap)[::-1][:_HELD_BY]
    sums = np.cumsum(largest)
    enough = np.flatnonzero(2 * sums >= total)
    if not len(enough):
        return 0, 0
    return int(enough[0]) + 1, int(sums[enough[0]])


@dataclass(frozen=True, slots=True)
class Outside:
    """What lies before the first GPU work of a process, or after its last: start_ns to end_ns, and its causes.

    queued_ns: time before the first GPU work in which the GPU worked off what was launched before the capture: that work was
    queued already, or the host waited. begins: whether the process began to use the GPU in this capture.
    """

    ns: int
    leaves: tuple[Leaf, ...]
    queued_ns: int = 0
    start: int = 0
    end: int = 0
    begins: bool = True


def start_up(recorded: ProfileArrays, work: GpuWork, window: Window, threads: Threads, issuers: Issuers) -> Outside:
    """Return the time from the first call of a process to its first GPU work, or to its first marked step if that is earlier."""
    process, number = int(work.process[0]), int(work.window[0])
    began = _began(recorded, process, number)
    first = int(work.start.min())
    until = min(first, window.marked) if window.steps and window.marked is not None else first
    if began is None or began >= until:
        return Outside(0, ())
    missing = until
    if until == first:
        missing = int(missing_from(recorded, work, np.array([0]), np.array([began]), np.array([until]))[0])
    call = int(work.call[0])
    thread = int(recorded.calls.spans.thread[call]) if call >= 0 else _main(recorded, work)
    begins = _begins(recorded, process, number)
    context = _context(recorded, process, number, began, missing, begins=begins)
    begins = begins or bool(context)
    waits = union(*(np.zeros((2, 0), np.int64) if begins else _awaits(recorded, work, process, number)))
    rest = difference(np.array([began]), np.array([missing]), waits.start, waits.end)
    parts = paint(threads, rest.place, rest.start, rest.end, np.full(len(rest.place), thread), {thread: context})
    ns = int((rest.end - rest.start).sum())
    return Outside(ns, tuple(leaves(recorded, issuers, parts)) if ns else (), until - began - ns, began, missing, begins)


def _begins(recorded: ProfileArrays, process: int, number: int) -> bool:
    """Return whether calls before the first launch or copy of a process show that it only just began to use the GPU.

    The PyTorch profiler starts within the process, whose allocator may grow at any time.
    """
    if recorded.profile["tool"] != "nsys":
        return False
    calls, spans = recorded.calls, recorded.calls.spans
    of_process = (spans.process == process) & (spans.window == number)
    first = spans.start[of_process & (calls.launches | calls.copies)].min(initial=np.iinfo(np.int64).max)
    return bool((of_process & (spans.start < first) & recorded.named(spans, _BEGINS)).any())


def _awaits(recorded: ProfileArrays, work: GpuWork, process: int, number: int) -> Int:
    """Return when a process waited for work that was launched before the capture, as rows of starts and ends.

    So do calls that wait before its first launch or copy, and a copy to the host that begins long after its call, as the first.
    """
    calls, spans = recorded.calls, recorded.calls.spans
    of_process = (spans.process == process) & (spans.window == number)
    first = spans.start[of_process & (calls.launches | calls.copies)].min(initial=np.iinfo(np.int64).max)
    long_waits = of_process & calls.waits & (spans.start < first) & (spans.end - spans.start > LONG_GAP_NS)
    call, begins = int(work.call[0]), int(work.start[0])
    wait_spans = [np.stack([spans.start[long_waits], spans.end[long_waits]])]
    if call >= 0 and calls.copies[call] and recorded.text(int(work.direction[0])) == "DtoH":
        launched = int(spans.start[call]) + DELAY_NS
        wait_spans += [np.array([[launched], [begins]])] if begins - launched > LONG_GAP_NS and spans.start[call] == first else []
    return np.concatenate(wait_spans, axis=1)


def wind_down(recorded: ProfileArrays, work: GpuWork, threads: Threads, issuers: Issuers) -> Outside:
    """Return the time from the last GPU work of a process to the end of its last API call; none where that work is cut off."""
    process, number = int(work.process[0]), int(work.window[0])
    spans = recorded.calls.spans
    of_process = (spans.process == process) & (spans.window == number)
    last = int(work.end.max())
    end = int(spans.end[of_process].max(initial=last))
    if end == last or cut_off(recorded, process):
        return Outside(0, ())
    thread = int(spans.thread[of_process][np.argmax(spans.end[of_process])])
    parts = paint(threads, np.array([0]), np.array([last]), np.array([end]), np.array([thread]))
    return Outside(end - last, tuple(leaves(recorded, issuers, parts)), 0, last, end)


def _began(recorded: ProfileArrays, process: int, number: int) -> int | None:
    """Return when the first API call of a process began, or of PyTorch its first operator."""
    starts = []
    for spans, wanted in ((recorded.calls.spans, None), (recorded.ranges.spans, recorded.codes.get("operator", -2))):
        of_process = (spans.process == process) & (spans.window == number)
        if wanted is not None:
            of_process &= recorded.ranges.kind == wanted
        starts += [int(spans.start[of_process].min())] if of_process.any() else []
    return min(starts) if starts else None


def _context(recorded: ProfileArrays, process: int, number: int, began: int, until: int, *, begins: bool) -> list[Layer]:
    """Return the first API call of a process that lasts long enough to have created the context, as a layer.

    One that waits does where the process begins: it has launched nothing to wait for.
    """
    calls = recorded.calls
    of_process = np.flatnonzero((calls.spans.process == process) & (calls.spans.window == number))
    if not len(of_process):
        return []
    length = np.minimum(calls.spans.end[of_process], until) - np.maximum(calls.spans.start[of_process], began)
    works = (calls.launches | calls.copies)[of_process]
    long = (length > _CONTEXT_NS) & ~works & ~(calls.waits[of_process] & ~(begins & (np.cumsum(works) == 0)))
    first = of_process[long][:1]
    if not len(first):
        return []
    return [Layer("context creation", calls.spans.start[first], calls.spans.end[first], calls.spans.name[first])]

