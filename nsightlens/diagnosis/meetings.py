"""Blocking collectives of MPI, as ranges or as nsys's tables have them: the calls of all ranks, matched by their order."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from nsightlens.columns.arrays import Int, Mask
from nsightlens.diagnosis.exchanges import Exchanges
from nsightlens.diagnosis.profile_arrays import ProfileArrays
from nsightlens.intervals.disjoint import outermost

_MEETS = re.compile(r"^P?MPI_(Barrier|All(reduce|gatherv?|toall[vw]?)|Reduce_scatter(_block)?)$")
"""Those that no rank leaves before all have come."""
_ENDS_NS, _ENDS_PCT = 50_000, 10
"""How far the ends of a call may lie apart, or in percent of the call that is shortest."""


class Meetings(NamedTuple):
    """Such calls of some processes, by start; ns of the profile's clock. names: of each, as it was recorded."""

    start: Int
    end: Int
    names: tuple[str, ...]


def meetings(recorded: ProfileArrays, process: Int) -> Meetings:
    """Return the calls of processes, by their tables where there are some, else by ranges."""
    spans = recorded.mpi if len(recorded.mpi.start) else recorded.ranges.spans
    outer = np.flatnonzero(recorded.named(spans, _MEETS) & np.isin(spans.process, process))
    outer = outer[np.lexsort((-spans.end[outer], spans.start[outer]))]
    outer = outer[outermost(spans.start[outer], spans.end[outer])]
    return Meetings(spans.start[outer], spans.end[outer], tuple(recorded.text(code) for code in spans.name[outer].tolist()))


def matched(by_rank: dict[int, tuple[Meetings, int]]) -> Exchanges | None:
    """Return the calls of ranks as exchanges; None where their names or counts differ, or most of their ends do not agree.

    by_rank: of each rank its calls and the origin of its clock. A difference that the ends of all calls have is the clock's.
    """
    calls_by_rank = [by_rank[rank] for rank in sorted(by_rank)]
    if len(calls_by_rank) < 2 or len({calls.names for calls, _ in calls_by_rank}) > 1 or not calls_by_rank[0][0].names:
        return None
    start, end = (np.stack([getattr(calls, name) + origin for calls, origin in calls_by_rank]) for name in ("start", "end"))
    agree = _agree(start, end)
    if 2 * np.count_nonzero(agree) < len(agree):
        return None
    ranks, calls = np.repeat(sorted(by_rank), np.count_nonzero(agree)), np.tile(np.flatnonzero(agree), len(calls_by_rank))
    return Exchanges(calls, np.zeros(len(calls), np.int64), ranks, start[:, agree].ravel(), end[:, agree].ravel())


def _agree(start: Int, end: Int) -> Mask:
    """Return of which calls all ranks end together: a row for each rank, a column for each call."""
    apart = end - end[0]
    apart = apart - np.median(apart, axis=1, keepdims=True).astype(np.int64)
    limit = np.maximum(_ENDS_NS, _ENDS_PCT * (end - start).min(axis=0) // 100)
    agrees: Mask = apart.max(axis=0) - apart.min(axis=0) <= limit
    return agrees
