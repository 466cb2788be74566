"""The functions in which CPU samples found a thread: they name the cause of idle time, and measure nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from nsightlens.columns.arrays import Int, split
from nsightlens.intervals.intersection import holding

_PROFILER = re.compile(r"ToolsInjection|InjectionLibrary|libcupti|nsys|libnvperf", re.I)
"""Libraries of who measures."""
_FEWEST = 5
"""Samples that a running thread would have had, from which on it is said where it was."""


class CpuSamples(NamedTuple):
    """CPU samples by time: of which thread, and the codes of the function and of its library in `Recorded.texts`."""

    at: Int
    thread: Int
    function: Int
    module: Int


class Sampled(NamedTuple):
    """What the samples in a cause say. functions: their number by function and library, the most first; expected: how many a
    thread would have had that ran all the time, by the distance of its samples."""

    functions: tuple[tuple[tuple[str, str], int], ...]
    expected: int

    @property
    def total(self) -> int:
        """Return how many samples there are."""
        return sum(count for _, count in self.functions)

    @property
    def is_off_cpu(self) -> bool:
        """Return whether the thread hardly ran."""
        return self.expected >= _FEWEST and 4 * self.total < self.expected

    @property
    def is_profiler(self) -> bool:
        """Return whether half of the samples lie in libraries of the profiler."""
        return 2 * sum(count for (_, module), count in self.functions if _PROFILER.search(module)) >= self.total > 0

    @property
    def where(self) -> str:
        """Return the function that has half of the samples, else the library that does, or the two; '' where none do."""
        if self.total < _FEWEST or self.is_off_cpu:
            return ""
        (function, _), most = self.functions[0]
        if function and 2 * most >= self.total:
            return function
        modules: Counter[str] = Counter()
        for (_, module), count in self.functions:
            modules[module] += count
        (first, most), *rest = modules.most_common(2)
        if 2 * most >= self.total:
            return first
        return f"{first} and {rest[0][0]}" if rest and 2 * (most + rest[0][1]) >= self.total else ""


def no_samples() -> CpuSamples:
    """Return that no CPU was sampled."""
    return CpuSamples(*[np.zeros(0, np.int64)] * 4)


def sampled(samples: CpuSamples, texts: list[str], start: Int, ns: Int, thread: Int) -> Sampled | None:
    """Return what samples say of times of threads, which are apart; None where no CPU was sampled."""
    if not len(samples.at):
        return None
    functions: Counter[tuple[str, str]] = Counter()
    expected = 0.0
    for number, places in split(np.arange(len(start)), thread):
        of_thread = np.flatnonzero(samples.thread == number)
        if len(of_thread) < _FEWEST:
            continue
        places = places[np.argsort(start[places], kind="stable")]
        expected += float(ns[places].sum()) / max(1.0, float(np.median(np.diff(samples.at[of_thread]))))
        in_gap = of_thread[holding(samples.at[of_thread], start[places], start[places] + ns[places]) >= 0]
        pairs, count = np.unique(np.stack([samples.function[in_gap], samples.module[in_gap]]), axis=1, return_counts=True)
        for (function, module), each in zip(pairs.T.tolist(), count.tolist(), strict=True):
            functions[texts[function] if function >= 0 else "", texts[module] if module >= 0 else ""] += each
    return _sorted(functions, round(expected))


def together(every: Iterable[Sampled | None]) -> Sampled | None:
    """Return what samples say of several causes as one."""
    functions: Counter[tuple[str, str]] = Counter()
    known = [each for each in every if each]
    for each in known:
        functions.update(dict(each.functions))
    return _sorted(functions, sum(each.expected for each in known)) if known else None


def _sorted(functions: Counter[tuple[str, str]], expected: int) -> Sampled:
    return Sampled(tuple(sorted(functions.items(), key=lambda item: (-item[1], item[0]))), expected)
