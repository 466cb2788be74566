"""What may be concluded from a profile: conditions with counts, before anything is said of its times."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nsightlens.columns.arrays import Int, Mask
from nsightlens.diagnosis.profile_arrays import KERNEL, MEMORY, ProfileArrays
from nsightlens.intervals.coverage import coverage
from nsightlens.intervals.disjoint import outermost

LOST, BEFORE_LAUNCH, UNLINKED, OVERHEAD = "launches without a kernel", "work before its launch", "kernels without a launch", (
    "profiler overhead")
RANKS, FRAGMENT, BLOCKING = "missing ranks", "fragment", "blocking launches"
_ABOVE_PCT, _LEADS_PCT = 20, 25
_FRAGMENT_PCT, _FRAGMENT = 50, 1000
"""Share of the kernels without a launch above which a capture is a fragment, and from how many kernels on it is none."""
_BLOCKING_PCT, _FEWEST = 95, 6
"""Share of the launches that last as long as their kernel from which on launches wait; and of how many at least."""
_WORTH_PCT = 5


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that failed: of how many, how many; ns, where it is about time."""

    code: str
    count: int
    of: int
    ns: int = 0

    @property
    def share_pct(self) -> float:
        """Return how large a share fails."""
        return 100 * self.count / self.of if self.of else 0.0


class Linked(NamedTuple):
    """Kernels of a profile, those without a launch, and whether launches were recorded at all."""

    kernels: int
    unlinked: int
    launches: bool


def check(recorded: ProfileArrays, launches: int, lost: Int) -> list[Condition]:
    """Return the conditions that fail in a profile. launches: those that should have a kernel; lost: those without."""
    failed = []
    if len(lost):
        failed.append(Condition(LOST, len(lost), launches))
    early, linked = before_launch(recorded)
    if len(early):
        failed.append(Condition(BEFORE_LAUNCH, len(early), linked))
    kernels = recorded.work.kind == KERNEL
    unlinked = int(np.count_nonzero(kernels & (recorded.work.call < 0)))
    if len(recorded.calls.launches) and 100 * unlinked > _ABOVE_PCT * np.count_nonzero(kernels):
        failed.append(Condition(UNLINKED, unlinked, int(np.count_nonzero(kernels))))
    return failed + _blocking(recorded) + _overhead(recorded)


def linked(recorded: ProfileArrays) -> Linked:
    """Return how many kernels of a profile have their launch."""
    kernels = recorded.work.kind == KERNEL
    unlinked = int(np.count_nonzero(kernels & (recorded.work.call < 0)))
    return Linked(int(np.count_nonzero(kernels)), unlinked, bool(recorded.calls.launches_kernel.any()))


def fragment(profiles: Sequence[Linked]) -> list[Condition]:
    """Return that a run, all its profiles together, was cut so short that shares of what is left say nothing of it."""
    kernels, unlinked = (sum(each) for each in list(zip(*profiles, strict=True))[:2])
    is_it = any(each.launches for each in profiles) and kernels < _FRAGMENT and 100 * unlinked > _FRAGMENT_PCT * kernels
    return [Condition(FRAGMENT, unlinked, kernels)] if is_it else []


def _blocking(recorded: ProfileArrays) -> list[Condition]:
    """Return that launches return only once their kernel is done, as under CUDA_LAUNCH_BLOCKING."""
    work, calls = recorded.work, recorded.calls
    launched = np.flatnonzero((work.kind == KERNEL) & (work.call >= 0))
    launched = launched[calls.launches_kernel[work.call[launched]]]
    waits = int(np.count_nonzero(calls.spans.end[work.call[launched]] >= work.end[launched]))
    is_it = len(launched) >= _FEWEST and 100 * waits >= _BLOCKING_PCT * len(launched)
    return [Condition(BLOCKING, waits, len(launched))] if is_it else []


def missing_ranks(ranks: Collection[int], world: int | None) -> list[Condition]:
    """Return that not all ranks of a job were captured."""
    return [Condition(RANKS, len(ranks), world)] if ranks and world and len(ranks) < world else []


def hides_much(failed: Iterable[Condition]) -> bool:
    """Return whether so many launches lack their kernel that only this can be said."""
    lost = [condition for condition in failed if condition.code == LOST]
    return _LEADS_PCT * sum(condition.of for condition in lost) < 100 * sum(condition.count for condition in lost)


def _overhead(recorded: ProfileArrays) -> list[Condition]:
    """Return for how long the profiler itself held threads between the first and the last GPU work."""
    work, spans = recorded.work, recorded.overheads
    if not len(work.start) or not len(spans.start):
        return []
    start, end = int(work.start.min()), int(work.end.max())
    covered_ns = coverage(np.maximum(spans.start, start), np.minimum(spans.end, end))
    return [Condition(OVERHEAD, len(spans.start), len(spans.start),
                      covered_ns)] if 100 * covered_ns > _WORTH_PCT * (end - start) else []


def before_launch(recorded: ProfileArrays) -> tuple[Int, int]:
    """Return the places of work that starts before its launch call does, and how much work has its call."""
    work = recorded.work
    linked = np.flatnonzero(work.call >= 0)
    early = linked[work.start[linked] < recorded.calls.spans.start[work.call[linked]]]
    return early, len(linked)


def lost_launches(recorded: ProfileArrays) -> tuple[int, Int]:
    """Return how many launches should have a kernel, and the places of the calls that have none.

    Launches while a graph is recorded have none, and those after the last with a kernel are cut off by the end of the capture.
    """
    calls, work = recorded.calls, recorded.work
    has_work = np.zeros(len(calls.launches), np.bool_)
    has_work[work.call[work.call >= 0]] = True
    lost, launches = [], 0
    for process in np.unique(calls.spans.process[calls.launches_kernel]).tolist():
        launching = np.flatnonzero(calls.launches_kernel & calls.succeeds & (calls.spans.process == process))
        kernels = np.flatnonzero((work.process == process) & (work.kind != MEMORY))
        launching = launching[~_in_capture(recorded, launching)]
        with_work = launching[has_work[launching]]
        if len(with_work):
            launching = launching[calls.spans.start[launching] <= calls.spans.start[with_work].max()]
        elif len(kernels):
            continue
        launches += len(launching)
        lost.append(_outer_without(recorded, launching, has_work))
    return launches, np.sort(np.concatenate(lost)) if lost else np.zeros(0, np.int64)


def cut_off(recorded: ProfileArrays, process: int) -> bool:
    """Return whether a process launched kernels after the last one that was recorded: its GPU worked on after that."""
    calls, work = recorded.calls, recorded.work
    launched = work.call[(work.call >= 0) & (work.process == process) & (work.kind != MEMORY)]
    if not len(launched):
        return False
    later_launches = np.flatnonzero(calls.launches_kernel & calls.succeeds & (calls.spans.process == process))
    later_launches = later_launches[(calls.spans.start[later_launches] > calls.spans.end[launched].max())
                                    & ~_in_capture(recorded, later_launches)]
    return bool(len(later_launches))


def _outer_without(recorded: ProfileArrays, own: Int, has_work: Mask) -> Int:
    """Return the outermost launches in which no launch has a kernel: one of the driver may lie in one of the runtime."""
    spans = recorded.calls.spans
    without_work = []
    for thread in np.unique(spans.thread[own]).tolist():
        of_thread = own[spans.thread[own] == thread]
        outer = of_thread[outermost(spans.start[of_thread], spans.end[of_thread])]
        outer_call = np.searchsorted(spans.start[outer], spans.start[of_thread], "right") - 1
        has = np.zeros(len(outer), np.bool_)
        np.logical_or.at(has, outer_call, has_work[of_thread])
        without_work.append(outer[~has])
    return np.concatenate(without_work) if without_work else np.zeros(0, np.int64)


def _in_capture(recorded: ProfileArrays, own: Int) -> Mask:
    """Return which calls lie between the begin and the end of a stream's capture, on any thread of the process."""
    spans = recorded.calls.spans
    names = [("Begin" in text) - ("End" in text) if "StreamBeginCapture" in text or "StreamEndCapture" in text else 0
             for text in recorded.texts]
    step = np.array([*names, 0])[spans.name]
    events = np.flatnonzero(step)
    if not len(events):
        return np.zeros(len(own), np.bool_)
    depth = np.cumsum(step[events])
    place = np.searchsorted(spans.start[events], spans.start[own], "right") - 1
    in_capture: Mask = (place >= 0) & (depth[place] > 0)
    return in_capture
