"""What a profile without a GPU timeline says: what the host did most, launches of which no kernel was recorded, or nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightlens.columns.arrays import Int, split
from nsightlens.diagnosis.idle import alike
from nsightlens.diagnosis.profile_arrays import ProfileArrays, Row
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


def host_only(recorded: ProfileArrays) -> HostOnly:
    """Return what the host did most, by the time that each range has for itself; of calls where there are no ranges."""
    ranges, calls = recorded.ranges, recorded.calls
    launches = int(np.count_nonzero(calls.launches_kernel & calls.succeeds))
    kinds = [recorded.codes.get(kind, -2) for kind in _RANGES]
    of_kind = np.isin(ranges.kind, kinds)
    whole = [spans for spans in (calls.spans, ranges.spans) if len(spans.start)]
    if not whole:
        return HostOnly(recorded.profile, "", 0, 0, launches, 0, 0)
    of_ns = int(max(spans.end.max() for spans in whole) - min(spans.start.min() for spans in whole))
    length = ranges.spans.end - ranges.spans.start
    if launches or not of_kind.any():
        length = calls.spans.end - calls.spans.start
        return HostOnly(recorded.profile, *_largest(recorded, calls.spans.name, length), of_ns, launches, len(length),
                        int(np.count_nonzero(of_kind)))
    inner = np.zeros(len(length), np.int64)
    nested = np.flatnonzero(of_kind & (ranges.parent >= 0))
    np.add.at(inner, ranges.parent[nested], length[nested])
    alone = np.maximum(length - inner - _elsewhere(recorded), 0)
    name, ns = _largest(recorded, ranges.spans.name[of_kind], alone[of_kind])
    named = [alike(recorded.text(code)) == alike(name) for code in range(len(recorded.texts))]
    chosen = of_kind & np.array(named)[ranges.spans.name]
    ns = min(ns, coverage(ranges.spans.start[chosen], ranges.spans.end[chosen]))  # ranges of one name may overlap
    return HostOnly(recorded.profile, name, ns, of_ns, launches, len(calls.spans.start), int(np.count_nonzero(of_kind)))


def _elsewhere(recorded: ProfileArrays) -> Int:
    """Return for how long each range that is no operator may have waited for another thread of its process, in its operators."""
    ranges = recorded.ranges
    spans, is_operator = ranges.spans, ranges.kind == recorded.codes.get("operator", -2)
    other_ns, threads = np.zeros(len(spans.start), np.int64), Threads(recorded, 0)
    for thread, of_thread in split(np.flatnonzero(~is_operator), spans.thread[~is_operator]):
        others = is_operator & (spans.process == spans.process[of_thread[0]]) & (spans.thread != thread)
        busy, inner = union(spans.start[others], spans.end[others]), threads.innermost(thread)
        in_call = (inner.name >= 0) & ~np.append(is_operator, True)[inner.name]
        shared = intersection(inner.start[in_call], inner.end[in_call], busy.start, busy.end)
        np.add.at(other_ns, inner.name[in_call][shared.place], shared.end - shared.start)
    return other_ns


def _largest(recorded: ProfileArrays, names: np.ndarray[tuple[int], np.dtype[np.int64]],
             length: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[str, int]:
    sums: dict[str, list[int]] = {}
    codes, code_number = np.unique(names, return_inverse=True)
    if not len(codes):
        return "", 0
    totals = np.zeros(len(codes), np.int64)
    np.add.at(totals, code_number, length)
    form_names: dict[str, str] = {}
    for code, ns in zip(codes.tolist(), totals.tolist(), strict=True):
        form = alike(recorded.text(code))
        form_names.setdefault(form, recorded.text(code))
        sums.setdefault(form, []).append(ns)
    form, each = max(sums.items(), key=lambda item: (sum(item[1]), item[0]))
    return form_names[form] if len(each) == 1 else form, sum(each)
