"""What threads did, as layers: sets of intervals that do not overlap, each with a cause and a name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from nsightlens.columns.arrays import Int, Mask, numbered, split
from nsightlens.diagnosis.fences import fences
from nsightlens.diagnosis.profile_arrays import KERNEL, ProfileArrays, Spans
from nsightlens.intervals.coverage import union
from nsightlens.intervals.disjoint import outermost
from nsightlens.intervals.intersection import difference, intersection, outside

_LOADER = re.compile(r"^enumerate\(DataLoader\)|^(?:torch/utils/data/)?dataloader\.py\(\d+\): __next__|DataLoaderIter\b")
_RECORDS = re.compile(r"StreamBeginCapture|StreamEndCapture")
_INSTANTIATES = re.compile(r"GraphInstantiate")
_COMPILES = re.compile(r"nvrtc|ptxas|triton.*compil|torch_?inductor|torch\.?_?dynamo|torch-compiled region.*compil|"
                       r"^compile_|CachingAutotuner|async_compile|cuLinkComplete", re.I)
_COMMUNICATES = re.compile(r"^P?MPI_|^nccl[A-Z]|^(?:nccl|gloo|c10d|ucc|mpi):")
_ALLOCATES = re.compile(r"Malloc|MemAlloc|HostRegister|HostAlloc|Free", re.I)
_MANY, _OUTLIER = 10, 100
"""Calls of a name from which on one can be a pause, and by how many times its median it is one."""
LONG_NS, _PAUSE_OF_WINDOW = 1_000_000, 500
"""How long a call holds the host that can be a pause; and the share of the window, as a fraction."""
_USUAL = ("step", "module")
"""Kinds of ranges that do not say what the host does: what lies around them does."""

CAUSES = ("recording graphs", "first use", "another GPU", "context creation", "compiling", "data loader", "profiler", "fence",
          "waiting", "pause", "API calls", "launching", "MPI", "ranges", "operators", "OS calls", "between kernels", "unknown",
          "no launches")
"""Why the GPU had no work, in the order in which they take each ns."""
NO_THREAD = -1
"""The thread of work of which no launch was recorded: nothing says what the host did."""
OF_LAUNCHES = ("launching", "operators", "between kernels")
"""Causes in which the host only launches: fewer and larger kernels cure them, and a host that is further ahead."""


class Layer(NamedTuple):
    """Intervals of a thread, sorted and apart, with the code of the name of each."""

    cause: str
    start: Int
    end: Int
    name: Int


class Parts(NamedTuple):
    """Parts of gaps: of each, the number of the gap, the place of its cause in CAUSES, the code of its name, its ns, and when it
    began on which thread."""

    gap: Int
    cause: Int
    name: Int
    ns: Int
    start: Int
    thread: Int


def joined(parts: Sequence[Parts]) -> Parts:
    """Return several as one."""
    none = np.zeros(0, np.int64)
    return Parts(*(np.concatenate(columns) for columns in zip(*parts, strict=True))) if parts else Parts(*[none] * 6)


@dataclass
class Threads:
    """The layers of each thread of a profile, made when they are asked for. whole: the length of what is judged; ns."""

    recorded: ProfileArrays
    whole: int

    def __post_init__(self) -> None:
        self._layers: dict[int, list[Layer]] = {}
        self._inner: dict[int, Layer] = {}

    @cached_property
    def _first_uses(self) -> Mask:
        """Return which calls are the first to launch their kernel in a process."""
        work, calls = self.recorded.work, self.recorded.calls
        kernels = np.flatnonzero((work.kind == KERNEL) & (work.call >= 0))
        is_first = np.zeros(len(calls.spans.start), np.bool_)
        if len(kernels):
            what, start = numbered(work.process[kernels], work.name[kernels]), calls.spans.start[work.call[kernels]]
            earliest = np.full(int(what.max()) + 1, np.iinfo(np.int64).max)
            np.minimum.at(earliest, what, start)
            early = np.flatnonzero(start == earliest[what])
            _, first = np.unique(what[early], return_index=True)
            is_first[work.call[kernels[early[first]]]] = True
        return is_first & calls.launches

    @cached_property
    def _fences(self) -> Mask:
        return fences(self.recorded)

    @cached_property
    def _labels(self) -> tuple[Int, Int]:
        """Return the code and the kind of what each range says of the host, taken from around it where it says nothing."""
        ranges = self.recorded.ranges
        name, kind = ranges.spans.name.copy(), ranges.kind.copy()
        usual = np.isin(kind, [self.recorded.codes.get(text, -2) for text in _USUAL])
        for depth in np.unique(ranges.depth[usual]).tolist():
            here = np.flatnonzero(usual & (ranges.depth == depth))
            around = ranges.parent[here]
            name[here] = np.where(around >= 0, name[around], -1)
            kind[here] = np.where(around >= 0, kind[around], -1)
        return name, kind

    def layers(self, thread: int) -> list[Layer]:
        """Return what a thread did, the cause that goes first at the front."""
        if thread not in self._layers:
            self._layers[thread] = list(self._of(thread))
        return self._layers[thread]

    def _of(self, thread: int) -> Iterator[Layer]:
        recorded, calls, ranges = self.recorded, self.recorded.calls, self.recorded.ranges
        of_thread = calls.spans.thread == thread
        ranges_of_thread = np.flatnonzero(ranges.spans.thread == thread)
        kept = np.flatnonzero(of_thread)
        kept = kept[outermost(calls.spans.start[kept], calls.spans.end[kept])]
        inner = self.innermost(thread)
        yield self._graphs(of_thread)
        yield self._calls("first use", np.flatnonzero(of_thread & self._first_uses))
        yield _named("compiling", recorded, ranges.spans, ranges_of_thread, _COMPILES)
        yield _named("data loader", recorded, ranges.spans, ranges_of_thread, _LOADER)
        yield self.profiler(thread)
        yield self._calls("fence", np.flatnonzero(of_thread & self._fences))
        yield self._calls("waiting", np.flatnonzero(of_thread & calls.waits))
        yield self._pauses(kept, ranges_of_thread, inner)
        yield self._calls("API calls", kept[~calls.launches[kept]])
        yield self._calls("launching", kept[calls.launches[kept]])
        yield _named("MPI", recorded, ranges.spans, ranges_of_thread, _COMMUNICATES)
        yield _disjoint_layer("MPI", recorded.mpi, np.flatnonzero(recorded.mpi.thread == thread))
        operator = recorded.codes.get("operator", -2)
        names, kinds = self._labels
        for cause, is_it in (("ranges", kinds != operator), ("operators", kinds == operator)):
            is_labelled = (inner.name >= 0) & (names[inner.name] >= 0) & is_it[inner.name]
            yield Layer(cause, inner.start[is_labelled], inner.end[is_labelled], names[inner.name[is_labelled]])
        yield _disjoint_layer("OS calls", recorded.os, np.flatnonzero(recorded.os.thread == thread))

    def profiler(self, thread: int) -> Layer:
        """Return when the profiler held a thread: it does not always say which, but nothing begins or ends there meanwhile."""
        spans = self.recorded.overheads
        inside = np.zeros(len(spans.start), np.int64)
        for others in (self.recorded.calls.spans, self.recorded.ranges.spans) if len(inside) else ():
            of_thread = others.thread == thread
            for times in (others.start, others.end):
                bounds = np.sort(times[of_thread])
                inside += np.searchsorted(bounds, spans.end, "left") - np.searchsorted(bounds, spans.start, "right")
        return _disjoint_layer("profiler", spans, np.flatnonzero(inside == 0))

    def _calls(self, cause: str, places: Int) -> Layer:
        return _disjoint_layer(cause, self.recorded.calls.spans, places)

    def _graphs(self, mine: Mask) -> Layer:
        """Return when a thread records or instantiates graphs: from the begin of a capture to its end."""
        spans = self.recorded.calls.spans
        records, instantiates = (np.flatnonzero(mine & self.recorded.named(spans, pattern))
                                 for pattern in (_RECORDS, _INSTANTIATES))
        begins = np.array(["Begin" in self.recorded.text(code) for code in spans.name[records].tolist()], np.bool_)
        pairs = np.flatnonzero(begins[:-1] & ~begins[1:]) if len(records) else np.zeros(0, np.int64)
        start = np.concatenate([spans.start[records[pairs]], spans.start[instantiates]])
        end = np.concatenate([spans.end[records[pairs + 1]] if len(pairs) else spans.end[:0], spans.end[instantiates]])
        captures = union(start, end)
        return Layer("recording graphs", captures.start, captures.end, np.full(len(captures.start), -1))

    def innermost(self, thread: int) -> Layer:
        """Return at each time the innermost range of a thread: its place in `ranges`."""
        if thread not in self._inner:
            self._inner[thread] = self._innermost(np.flatnonzero(self.recorded.ranges.spans.thread == thread))
        return self._inner[thread]

    def _innermost(self, own: Int) -> Layer:
        spans, depth, parent = self.recorded.ranges.spans, self.recorded.ranges.depth, self.recorded.ranges.parent
        bounds = np.concatenate([spans.start[own], spans.end[own]])
        opens = np.repeat([1, 0], len(own))
        level = np.concatenate([depth[own], -depth[own]])
        order = np.lexsort((level, opens, bounds))
        label = np.concatenate([own, parent[own]])[order]
        bounds = bounds[order]
        lasting = bounds[:-1] < bounds[1:]
        return Layer("ranges", bounds[:-1][lasting], bounds[1:][lasting], label[:-1][lasting])

    def _pauses(self, calls: Int, own: Int, inner: Layer) -> Layer:
        """Return calls and operators that last far longer than others that do the same."""
        recorded, all_calls = self.recorded, self.recorded.calls
        spans = all_calls.spans
        allocates = recorded.named(spans, _ALLOCATES)
        usual = ~(self._first_uses | all_calls.waits | all_calls.copies | allocates)[calls]
        length = (spans.end - spans.start)[calls]
        of_calls = calls[usual & self._outliers(spans.name[calls], length)]
        operators = own[recorded.ranges.kind[own] == recorded.codes.get("operator", -2)]
        alone = difference(inner.start, inner.end, spans.start[calls], spans.end[calls])
        holder = inner.name[alone.place]
        self_ns = np.zeros(len(recorded.ranges.depth), np.int64)
        np.add.at(self_ns, holder[holder >= 0], (alone.end - alone.start)[holder >= 0])
        of_operators = operators[self._outliers(recorded.ranges.work[operators], self_ns[operators])
                                 & ~self._firsts(operators)]
        in_operators = np.isin(holder, of_operators)
        start = np.concatenate([spans.start[of_calls], alone.start[in_operators]])
        end = np.concatenate([spans.end[of_calls], alone.end[in_operators]])
        name = np.concatenate([spans.name[of_calls], recorded.ranges.spans.name[holder[in_operators]]])
        kept = outermost(start, end)
        return Layer("pause", start[kept], end[kept], name[kept])

    def _firsts(self, operators: Int) -> Mask:
        """Return which operators are the first of a thread that do their work: they load, initialise and allocate."""
        order = np.argsort(self.recorded.ranges.spans.start[operators], kind="stable")
        _, first = np.unique(self.recorded.ranges.work[operators][order], return_index=True)
        is_first = np.zeros(len(operators), np.bool_)
        is_first[order[first]] = True
        return is_first

    def _outliers(self, kind: Int, length: Int) -> Mask:
        """Return which lengths are far above the median of their kind, and long beside what is judged."""
        is_outlier = np.zeros(len(length), np.bool_)
        long = (length > LONG_NS) & (_PAUSE_OF_WINDOW * length > self.whole)
        for code in np.unique(kind[long]).tolist():
            alike = np.flatnonzero(kind == code)
            if len(alike) >= _MANY:
                is_outlier[alike] = length[alike] > _OUTLIER * float(np.median(length[alike]))
        return is_outlier & long


def _disjoint_layer(cause: str, spans: Spans, places: Int) -> Layer:
    """Return the outermost of some spans."""
    places = places[outermost(spans.start[places], spans.end[places])]
    return Layer(cause, spans.start[places], spans.end[places], spans.name[places])


def _named(cause: str, recorded: ProfileArrays, spans: Spans, own: Int, pattern: re.Pattern[str]) -> Layer:
    return _disjoint_layer(cause, spans, own[recorded.named(spans, pattern)[own]])


def paint(threads: Threads, gap: Int, start: Int, end: Int, thread: Int,
          first: Mapping[int, Sequence[Layer]] = MappingProxyType({}),
          others: Mapping[int, Sequence[int]] = MappingProxyType({})) -> Parts:
    """Return what the thread of each interval did in it; the intervals are sorted and apart, gap: the number of each.

    first: by thread, layers that go before its own, but for its first uses and what records graphs. others: by thread, those
    that it may wait for: what they do counts while it does nothing that was recorded.
    """
    painted: list[Parts] = []
    for number, of_layer in split(np.arange(len(gap)), thread):
        order = of_layer[np.argsort(start[of_layer], kind="stable")]
        rest_gap, rest_start, rest_end = gap[order], start[order], end[order]
        layers = threads.layers(number)
        beside = ((other, layer) for other in others.get(number, ()) for layer in threads.layers(other))
        for whose, layer in (*((number, each) for each in (*layers[:2], *first.get(number, ()), *layers[2:])), *beside):
            if not len(layer.start):
                continue
            shared = intersection(rest_start, rest_end, layer.start, layer.end)
            painted.append(Parts(rest_gap[shared.place], np.full(len(shared.place), CAUSES.index(layer.cause)),
                                 layer.name[shared.other], shared.end - shared.start, shared.start,
                                 np.full(len(shared.place), whose)))
            rest = outside(rest_start, rest_end, shared)
            rest_gap, rest_start, rest_end = rest_gap[rest.place], rest.start, rest.end
        unknown = np.full(len(rest_gap), CAUSES.index("no launches" if number == NO_THREAD else "unknown"))
        painted.append(Parts(rest_gap, unknown, np.full(len(rest_gap), -1), rest_end - rest_start, rest_start,
                             np.full(len(rest_gap), number)))
    return joined(painted)
