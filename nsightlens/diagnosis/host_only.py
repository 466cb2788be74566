"""What a profile without a GPU timeline says: what the host did most, launches of which no kernel was recorded, or nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightlens.columns.arrays import Int, split
from nsightlens.diagnosis.idle import alike
from nsightlens.diagnosis.recorded import Recorded, Row
from nsightlens.diagnosis.timeline import Threads
from nsightlens.intervals.coverage import coverage, union
from nsightlens.intervals.intersection import intersection

_RANGES = ("operator", "annotation", "nvtx_push_pop", "nvtx_start_end", "module")


@dataclass(frozen=True, slots=True)
class HostOnly:
    """What the host did in a profile without GPU work. name: the range or call with the largest time of its own, or ''.

    launches: successful launches of kernels; of_ns: first to last event of the host.
    """

    profile: Row
    name: str
    ns: int
    of_ns: int
    launches: int
    calls: int
    ranges: int


def host_only(recorded: Recorded) -> HostOnly:
    """Return what the host did most, by the time that each range has for itself; of calls where there are no ranges."""
    ranges, calls = recorded.ranges, recorded.calls
    launches = int(np.count_nonzero(calls.launches_kernel & calls.succeeds))
    kinds = [recorded.codes.get(kind, -2) for kind in _RANGES]
    some = np.isin(ranges.kind, kinds)
    whole = [spans for spans in (calls.spans, ranges.spans) if len(spans.start)]
    if not whole:
        return HostOnly(recorded.profile, "", 0, 0, launches, 0, 0)
    of_ns = int(max(spans.end.max() for spans in whole) - min(spans.start.min() for spans in whole))
    length = ranges.spans.end - ranges.spans.start
    if launches or not some.any():
        length = calls.spans.end - calls.spans.start
        return HostOnly(recorded.profile, *_largest(recorded, calls.spans.name, length), of_ns, launches, len(length),
                        int(np.count_nonzero(some)))
    inner = np.zeros(len(length), np.int64)
    held = np.flatnonzero(some & (ranges.parent >= 0))
    np.add.at(inner, ranges.parent[held], length[held])
    alone = np.maximum(length - inner - _elsewhere(recorded), 0)
    name, ns = _largest(recorded, ranges.spans.name[some], alone[some])
    named = [alike(recorded.text(code)) == alike(name) for code in range(len(recorded.texts))]
    mine = some & np.array(named)[ranges.spans.name]
    ns = min(ns, coverage(ranges.spans.start[mine], ranges.spans.end[mine]))  # ranges of one name may overlap
    return HostOnly(recorded.profile, name, ns, of_ns, launches, len(calls.spans.start), int(np.count_nonzero(some)))


def _elsewhere(recorded: Recorded) -> Int:
    """Return for how long each range that is no operator may have waited for another thread of its process, in its operators."""
    ranges = recorded.ranges
    spans, is_operator = ranges.spans, ranges.kind == recorded.codes.get("operator", -2)
    found, threads = np.zeros(len(spans.start), np.int64), Threads(recorded, 0)
    for thread, mine in split(np.flatnonzero(~is_operator), spans.thread[~is_operator]):
        others = is_operator & (spans.process == spans.process[mine[0]]) & (spans.thread != thread)
        busy, inner = union(spans.start[others], spans.end[others]), threads.innermost(thread)
        own = (inner.name >= 0) & ~np.append(is_operator, True)[inner.name]
        shared = intersection(inner.start[own], inner.end[own], busy.start, busy.end)
        np.add.at(found, inner.name[own][shared.place], shared.end - shared.start)
    return found


def _largest(recorded: Recorded, names: np.ndarray[tuple[int], np.dtype[np.int64]],
             length: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[str, int]:
    sums: dict[str, list[int]] = {}
    codes, which = np.unique(names, return_inverse=True)
    if not len(codes):
        return "", 0
    totals = np.zeros(len(codes), np.int64)
    np.add.at(totals, which, length)
    said: dict[str, str] = {}
    for code, ns in zip(codes.tolist(), totals.tolist(), strict=True):
        form = alike(recorded.text(code))
        said.setdefault(form, recorded.text(code))
        sums.setdefault(form, []).append(ns)
    form, each = max(sums.items(), key=lambda item: (sum(item[1]), item[0]))
    return said[form] if len(each) == 1 else form, sum(each)
