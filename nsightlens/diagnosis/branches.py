"""The five branches of a window: computing, exposed communication, exposed copies, idle and what was not recorded, to the ns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nsightlens.columns.arrays import Int, Mask
from nsightlens.diagnosis.profile_arrays import COMMUNICATION, COMPUTING, COPIES, GpuWork, ProfileArrays
from nsightlens.diagnosis.window import Window
from nsightlens.intervals.coverage import Union, gaps, union
from nsightlens.intervals.intersection import difference

BRANCHES = ("computing", "communication", "copies", "idle", "not recorded")
LONG_GAP_NS = 50_000
"""Gaps up to this length are never called not recorded."""
DELAY_NS = 20_000
"""How long after the return of its launch call work may start late without another cause."""


class IdleGaps(NamedTuple):
    """Times of a window in which nothing ran, by start. work: the place of the work that ends each, -1 at the window's end.

    missing: when each begins to be not recorded: its end where it is idle to the last.
    """

    start: Int
    end: Int
    work: Int
    missing: Int


class Branches(NamedTuple):
    """What a window consists of, as times that neither overlap nor leave anything out."""

    computing: Union
    communication: Union
    copies: Union
    gaps: IdleGaps

    def lengths(self) -> dict[str, int]:
        """Return the ns of each branch."""
        idle = int((self.gaps.missing - self.gaps.start).sum())
        missing = int((self.gaps.end - self.gaps.missing).sum())
        times = [int((part.end - part.start).sum()) for part in (self.computing, self.communication, self.copies)]
        return dict(zip(BRANCHES, (*times, idle, missing), strict=True))


def branches(recorded: ProfileArrays, work: GpuWork, window: Window, lost: Int) -> Branches:
    """Return the branches of a window of one device's work. lost: when its launches without a kernel were called, ascending."""
    parts = {}
    taken_start = taken_end = np.zeros(0, np.int64)
    for branch in (COMPUTING, COMMUNICATION, COPIES):
        in_branch = work.branch == branch
        busy = union(np.maximum(work.start[in_branch], window.start), np.minimum(work.end[in_branch], window.end))
        alone = difference(busy.start, busy.end, taken_start, taken_end)
        parts[branch] = Union(alone.start, alone.end, np.zeros(len(alone.start), np.int64))
        taken = union(np.concatenate([taken_start, busy.start]), np.concatenate([taken_end, busy.end]))
        taken_start, taken_end = taken.start, taken.end
    return Branches(parts[COMPUTING], parts[COMMUNICATION], parts[COPIES], _gaps(recorded, work, window, lost))


def elsewhere(recorded: ProfileArrays, work: GpuWork) -> Union:
    """Return when other devices work for the processes whose work it is."""
    others = (recorded.work.device != work.device[0]) & np.isin(recorded.work.process, np.unique(work.process))
    return union(recorded.work.start[others], recorded.work.end[others])


def _gaps(recorded: ProfileArrays, work: GpuWork, window: Window, lost: Int) -> IdleGaps:
    """Return the gaps of a window; its bounds are work of no length, so that one at either end is a gap, too."""
    inside = np.flatnonzero((work.end >= window.start) & (work.start <= window.end))
    start = np.concatenate([np.maximum(work.start[inside], window.start), [window.start, window.end]])
    end = np.concatenate([np.minimum(work.end[inside], window.end), [window.start, window.end]])
    idle = gaps(start, end)
    ended_by = np.concatenate([inside, [-1, -1]])[idle.until]
    missing = missing_from(recorded, work, ended_by, idle.start, idle.end)
    missing = np.maximum(missing, _awaited(elsewhere(recorded, work), missing, idle.end))
    if len(lost):
        missing = np.where(_hold(recorded, work, ended_by, idle.start, idle.end, lost), idle.start, missing)
    return IdleGaps(idle.start, idle.end, ended_by, missing)


def _awaited(others: Union, start: Int, end: Int) -> Int:
    """Return until when work may wait for that of other devices: their last in each of some times, and the delay after it."""
    if not len(others.start):
        return start
    last = np.searchsorted(others.start, end, "left") - 1
    until = np.where(last >= 0, others.end[last] + DELAY_NS, start)
    return np.clip(until, start, end)


def _hold(recorded: ProfileArrays, work: GpuWork, ended_by: Int, start: Int, end: Int, lost: Int) -> Mask:
    """Return which gaps hold a launch without a kernel: called between the launches of the work before and after the gap."""
    calls = recorded.calls.spans.start
    by_end = np.argsort(work.end, kind="stable")
    before = by_end[np.maximum(np.searchsorted(work.end[by_end], start, "right") - 1, 0)]
    lower, upper = (np.where((place >= 0) & (work.call[place] >= 0), calls[work.call[place]], otherwise)
                    for place, otherwise in ((before, start), (ended_by, end)))
    holds_lost: Mask = np.searchsorted(lost, upper) > np.searchsorted(lost, lower, "right")
    return holds_lost


def missing_from(recorded: ProfileArrays, work: GpuWork, ended_by: Int, start: Int, end: Int) -> Int:
    """Return from when on each gap is not recorded: launched, not started; its end where it is not."""
    call = np.where(ended_by >= 0, work.call[ended_by] if len(work.call) else -1, -1)
    returned = recorded.calls.spans.end[call] if len(recorded.calls.spans.end) else np.zeros(len(call), np.int64)
    late = (call >= 0) & (end - start > LONG_GAP_NS)
    return np.where(late, np.clip(returned + DELAY_NS, start, end), end)
