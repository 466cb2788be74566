"""The judged window: the steps of a process, measured by the ends of the GPU work launched in each, and the steady ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightlens.columns.arrays import Int, Mask, distinct_pairs, split
from nsightlens.diagnosis.profile_arrays import GpuWork, ProfileArrays, Spans
from nsightlens.intervals.coverage import coverage, union
from nsightlens.intervals.disjoint import outermost
from nsightlens.intervals.intersection import intersection

_FEWEST = 3
"""Ranges or calls of the data loader from which on they are steps; and steps of which the first is not steady."""
_FAR_PCT, _STEADY_PCT, _REST_PCT = 20, 10, 10
_STEP = re.compile(r"(?<![a-z])(step|iter|iteration|batch)(e?s)?(?![a-z])", re.I)
_NO_STEP = re.compile(r"warm[-_ ]?up|dataloader|data_loader|enumerate\(", re.I)
_LOADER = re.compile(r"^enumerate\(DataLoader\)")
_NUMBER = re.compile(r"\d+")
_MARKS = ("annotation", "nvtx_push_pop", "nvtx_start_end")


@dataclass(frozen=True, slots=True)
class ConsecutiveSteps:
    """Consecutive steps on the host, and what a step is called. start, end: of each on the host."""

    start: Int
    end: Int
    called: str


@dataclass(frozen=True, slots=True)
class Window:
    """What is judged: from start to end. steps: how many steady steps it holds, 0 where it is first to last GPU work.

    marked: when the first marked step began, or None; dropped: how many leading steps are left out, and dropped_ns their time.
    """

    start: int
    end: int
    steps: int = 0
    called: str = "step"
    marked: int | None = None
    dropped: int = 0
    dropped_ns: int = 0
    bounds: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """Return how long it is."""
        return self.end - self.start


def window(recorded: ProfileArrays, work: GpuWork) -> Window:
    """Return the window of GPU work of one device: the steady steps of its process, else first to last work."""
    whole = Window(int(work.start.min()), int(work.end.max()))
    of = [_process_window(recorded, work, process, number) for process, number in distinct_pairs(work.process, work.window)]
    if len(of) == 1:
        return of[0] or whole
    if any(one is None for one in of):
        return whole
    start, end = max(one.start for one in of if one), min(one.end for one in of if one)
    return Window(start, end) if start < end else whole


def _process_window(recorded: ProfileArrays, work: GpuWork, process: int, number: int) -> Window | None:
    host_steps = steps(recorded, work, process, number)
    if host_steps is None:
        return None
    work_of_process = work.only((work.process == process) & (work.window == number))
    linked = work_of_process.call >= 0
    if not linked.any():
        return _by_host(host_steps, work_of_process)
    launched = recorded.calls.spans.start[work_of_process.call[linked]]
    step = np.searchsorted(host_steps.start, launched, "right") - 1
    inside = (step >= 0) & (launched < host_steps.end[step])
    ends = np.full(len(host_steps.start), -1, np.int64)
    np.maximum.at(ends, step[inside], work_of_process.end[linked][inside])
    there = np.flatnonzero(ends >= 0)
    return _steady(host_steps.start[there], np.maximum.accumulate(ends[there]), host_steps)


def _steady(starts: Int, ends: Int, found: ConsecutiveSteps) -> Window | None:
    """Return the steady steps, from the end of the one before them to the end of the last."""
    number = len(ends)
    first = leading(np.diff(ends)) + 1 if number >= _FEWEST else 0
    if number - first < 2:
        return None
    begin = int(ends[first - 1]) if first else int(starts[0])
    if begin >= int(ends[-1]):
        return None
    dropped = begin - int(starts[0]) if first else 0
    return Window(begin, int(ends[-1]), number - first, found.called, int(found.start[0]), first, dropped,
                  (begin, *ends[first:].tolist()))


def _by_host(found: ConsecutiveSteps, work: GpuWork) -> Window | None:
    """Return the steady steps by the bounds of the host, where no work has its launch."""
    starts, ends = found.start, found.end
    if len(starts) >= _FEWEST:
        last = int(work.end.max())
        if _REST_PCT * (ends[-1] - starts[-1]) < 100 * (ends[-1] - last):
            starts, ends = starts[:-1], ends[:-1]
        first = leading(np.diff(ends)) + 1
        starts, ends = starts[first:], ends[first:]
    if len(starts) < 2:
        return None
    return Window(int(starts[0]), int(ends[-1]), len(starts), found.called, int(found.start[0]), len(found.start) - len(starts),
                  int(starts[0] - found.start[0]), (int(starts[0]), *ends.tolist()))


def leading(lengths: Int) -> int:
    """Return how many of the first lengths differ from the rest, which is steady."""
    for first in range(len(lengths) - 1):
        later = lengths[first + 1:]
        middle = float(np.median(later))
        spread = float(np.median(np.abs(later - middle)))
        if 100 * spread >= _STEADY_PCT * middle or 100 * abs(lengths[first] - middle) <= _FAR_PCT * middle:
            return first
    return max(len(lengths) - 1, 0)


def is_far(lengths: Sequence[int]) -> bool:
    """Return whether one of the steps differs from their median by more than what a steady one may."""
    middle = float(np.median(lengths)) if lengths else 0.0
    return any(100 * abs(length - middle) > _FAR_PCT * middle for length in lengths)


def steps(recorded: ProfileArrays, work: GpuWork, process: int, number: int) -> ConsecutiveSteps | None:
    """Return the steps of a process: marked by the profiler, of a server, by ranges, or by calls of the data loader."""
    ranges = recorded.ranges
    of_process = (ranges.spans.process == process) & (ranges.spans.window == number)
    profiler = of_process & (ranges.kind == recorded.codes.get("step", -2))
    if profiler.any():
        return _disjoint(ranges.spans.where(profiler), "step")
    if (of_process & ranges.serving).any():
        return _disjoint(ranges.spans.where(of_process & ranges.serving), "step")
    return _by_ranges(recorded, work, of_process) or _by_loader(recorded, work, of_process)


def _disjoint(spans: Spans, called: str) -> ConsecutiveSteps:
    kept = outermost(spans.start, spans.end)
    return ConsecutiveSteps(spans.start[kept], spans.end[kept], called)


def _by_ranges(recorded: ProfileArrays, work: GpuWork, own: Mask) -> ConsecutiveSteps | None:
    """Return the ranges of one thread, named alike but for numbers, that mark steps and hold half of the GPU's time."""
    ranges = recorded.ranges
    marks = own & np.isin(ranges.kind, [recorded.codes.get(kind, -2) for kind in _MARKS])
    alike: dict[str, list[int]] = {}
    for code in np.unique(ranges.spans.name[marks]).tolist():
        text = recorded.text(code)
        if _STEP.search(text) and not _NO_STEP.search(text):
            alike.setdefault(_NUMBER.sub("#", text), []).append(code)
    busy = union(work.start, work.end)
    span = int(work.end.max() - work.start.min())
    best: tuple[int, ConsecutiveSteps] | None = None
    for form in sorted(alike):
        named = np.flatnonzero(marks & np.isin(ranges.spans.name, alike[form]))
        for _, places in split(named, ranges.spans.thread[named]):
            spans = ranges.spans.where(places[np.argsort(ranges.spans.start[places], kind="stable")])
            if len(places) < _FEWEST or np.any(spans.start[1:] < spans.end[:-1]):
                continue
            covered = _shared(spans, work.start.min(), work.end.max())
            busy_in_step = intersection(spans.start, spans.end, busy.start, busy.end)
            gpu = int((busy_in_step.end - busy_in_step.start).sum())
            if 2 * covered >= span and (best is None or gpu > best[0]):
                numbered = _STEP.search(form)
                best = gpu, ConsecutiveSteps(spans.start, spans.end, _called(numbered[1] if numbered else "step"))
    return best[1] if best else None


def _called(word: str) -> str:
    return {"iter": "iteration"}.get(word.lower(), word.lower())


def _shared(spans: Spans, start: int, end: int) -> int:
    return coverage(np.maximum(spans.start, start), np.minimum(spans.end, end))


def _by_loader(recorded: ProfileArrays, work: GpuWork, own: Mask) -> ConsecutiveSteps | None:
    """Return the times from one call of the data loader to the next, the last to the last GPU work."""
    loading = own & recorded.named(recorded.ranges.spans, _LOADER)
    places = np.flatnonzero(loading)
    if len(places) < _FEWEST:
        return None
    spans = recorded.ranges.spans.where(places)
    start = np.sort(spans.start[outermost(spans.start, spans.end)])
    if len(start) < _FEWEST:
        return None
    last = max(int(work.end.max()), int(start[-1]) + 1)
    return ConsecutiveSteps(start, np.append(start[1:], last), "iteration")
