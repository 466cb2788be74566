"""Which collective kernel of one rank is which of another, and what that shows of the ranks' clocks. Numbers, no tables.

All ranks leave a collective together (within the time the last bytes need), however late one of them came: so the *ends* of
matched calls show the offset between two clocks, and the *starts* show which rank came last.

Calls are matched per communicator: by its name and the sequence number in it, where the trace has both; by its name and the
order of calls; else by the calls of a stream. Without numbers the ends decide, where they can: of all distances between ends
of like calls those of the true pairs are almost the same, and no others are, so that missing calls at the ends or in between
do no harm. Where no distance stands out, as in a loop that is as regular as a clock, the order decides, and where one side
lacks calls only its certain pairs are taken (sequence_alignment.py), of all calls or of those within each step. Between
certain pairs equal calls in equal order are pairs, too. Ranks whose calls do not fit are given up.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from nsightlens.columns.arrays import Int, Mask, Places, numbered, split
from nsightlens.matching.sequence_alignment import LARGEST, certain_pairs

NUMBERED, TIMED, NAMED, ORDERED = "name and number", "like calls that end together", "name and order", "order on the stream"
"""How calls were matched, the surest first."""

_FIT = 0.8
"""Share of the shorter list of calls that must find its partner."""
_TOGETHER = 100_000
"""Ends of one collective lie within this many ns of each other once the clocks are set."""
_FEWEST = 3
"""Matched calls below which no clock is fitted."""
_FEW = 10
"""Up to so many calls, an uncertainty reaches to the farthest end: their deviation may be near 0 by chance."""
_WIDER = {3: 3.0, 4: 1.6, 5: 1.2}
"""Calls -> what that reach is multiplied by, so that 95 of 100 fits hold the true offset: for deviations that are normal or
uniform, and for those of real jobs, in which ranks leave in an order that changes slowly."""
_FEWEST_OF_A_SLOPE = 6
"""Calls below which no drift is fitted."""
_MOST_PAIRS = 200
_SIGMA = 1.4826  # of a normal distribution, per median absolute deviation
_FASTEST_DRIFT = 2e-4
"""Clocks of computers run within 200 ppm of each other; a steeper slope is no clock."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """What kernels of one kind have in common: columns of one length, a few thousand for millions of kernels.

    token: a number for what a call is (operation, payload). stream, group: a number for each; group is -1 where the trace names
    none. group_size: 0 where it does not tell. resolution: what the times of the rank are multiples of, 1000 where a tool cuts
    them to microseconds. paired: whether it may be of two ranks as well as of all: a send or receive that nothing names.
    takes_part: whether it may be part of a collective of known ranks at all.
    """

    rank: Places
    token: Places
    stream: Places
    group: Places
    group_size: Places
    resolution: Places
    paired: Mask
    takes_part: Mask


@dataclass(frozen=True, slots=True)
class CommunicationKernels:
    """The communication kernels of all ranks: columns of one length, sorted by rank and start. Times in ns on the rank's own
    clock.

    kind: of each, its place in `kinds`. number: -1 where the trace does not tell; step: as `arrays.narrow`
    has it. is_possible: whether its end can be true: no clock is fitted to one that outlasts what its stream allows. groups: the
    name of each group.
    """

    kind: Places
    start: Int
    end: Int
    number: npt.NDArray[Any]
    step: npt.NDArray[Any]
    is_possible: Mask
    kinds: Kinds
    groups: Sequence[str]

    def rank(self, places: npt.NDArray[Any]) -> Places:
        """Return the rank of each of these kernels."""
        found: Places = self.kinds.rank[self.kind[places]]
        return found

    def token(self, places: npt.NDArray[Any]) -> Places:
        """Return what each of these kernels is."""
        found: Places = self.kinds.token[self.kind[places]]
        return found

    def places(self, wanted: Mask) -> Places:
        """Return where the kernels of the wanted kinds are."""
        return np.flatnonzero(wanted[self.kind]).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Matched:
    """The calls of one communicator, matched over its `ranks`: an element for each call and rank, sorted by them.

    call: number of the call, from 0. place: place of that rank's part of it in Calls.
    """

    group: str | None
    method: str
    call: npt.NDArray[Any]
    place: npt.NDArray[Any]
    ranks: Sequence[int]

    @property
    def calls(self) -> int:
        """Return how many calls were matched."""
        return int(self.call[-1]) + 1 if len(self.call) else 0


@dataclass(frozen=True, slots=True)
class Clock:
    """A rank's clock against the reference rank's: reading(rank) - reading(reference) = offset + drift * (t - at).

    Times in ns of the reference clock, drift as a fraction. uncertainty: two robust standard deviations of the ends of
    matched calls around that line (it does not shrink with more calls, since ranks may leave a collective in a fixed order);
    for few calls as far as the farthest of them; never less than the resolution of the times.
    """

    reference: int
    offset: float
    drift: float
    at: int
    uncertainty: float
    calls: int
    method: str


def match(calls: CommunicationKernels) -> list[Matched]:
    """Return the communicators whose calls could be matched over at least two ranks.

    Of sends and receives that nothing names, those that end together on all ranks that have such calls are one: an all-to-all.
    """
    kinds = calls.kinds
    single = kinds.takes_part & ~kinds.paired
    named = calls.places(single & (kinds.group >= 0))
    by_group = {calls.groups[group]: places for group, places in split(named, kinds.group[calls.kind[named]])}
    found = [_named(calls, by_group[name], name) for name in sorted(by_group, key=repr)]
    found += _unnamed(calls, _streams(calls, single & (kinds.group < 0)))
    paired = _streams(calls, kinds.takes_part & kinds.paired)
    found += [_on_all_ranks(calls, matched, set(paired)) for matched in _unnamed(calls, paired) if matched is not None]
    return [matched for matched in found if matched is not None and matched.calls]


def _streams(calls: CommunicationKernels, wanted: Mask) -> dict[int, list[Places]]:
    """Return the places of each rank's calls of the wanted kinds by stream, the streams in order of their first call."""
    places = calls.places(wanted)
    return {rank: sorted((part for _, part in split(mine, calls.kinds.stream[calls.kind[mine]])), key=lambda part: int(part[0]))
            for rank, mine in split(places, calls.rank(places))}


def _on_all_ranks(calls: CommunicationKernels, matched: Matched, ranks: set[int]) -> Matched | None:
    """Return what ends together on all `ranks`; None where that is not what matched them."""
    if matched.method != TIMED or set(matched.ranks) != ranks:
        return None
    return _on_several_ranks(matched, len(ranks))


def _on_several_ranks(matched: Matched, fewest: int = 2) -> Matched:
    """Return the calls that are known on so many ranks or more, renumbered and sorted. Those of one call are sorted by rank."""
    known = np.bincount(matched.call)
    kept = np.flatnonzero(known[matched.call] >= fewest)
    kept = kept[np.argsort(matched.call[kept], kind="stable")]
    numbers = (np.cumsum(known >= fewest) - 1).astype(np.int32)
    return Matched(matched.group, matched.method, numbers[matched.call[kept]], matched.place[kept], matched.ranks)


def _named(calls: CommunicationKernels, places: Places, group: str) -> Matched | None:
    ranks = np.unique(calls.rank(places))
    if len(ranks) < 2 or not _fits_in_group(calls, places, len(ranks)):
        return None
    ordered = places[np.argsort(calls.number[places], kind="stable")]
    number = calls.number[ordered]
    again = np.flatnonzero(number[1:] == number[:-1])
    if number[0] >= 0 and not np.any(calls.rank(ordered[again]) == calls.rank(ordered[again + 1])):
        return _numbered(calls, ordered, group, ranks.tolist())
    return aligned(calls, dict(split(places, calls.rank(places))), group, NAMED)


def _numbered(calls: CommunicationKernels, places: Places, group: str, ranks: Sequence[int]) -> Matched:
    """Match the calls, sorted by number, that have one number; of one that says different things nothing is matched."""
    begins = np.diff(calls.number[places], prepend=-1) != 0
    first, call = np.flatnonzero(begins), np.cumsum(begins, dtype=np.int32) - 1
    token = calls.token(places)
    kept = (np.minimum.reduceat(token, first) == np.maximum.reduceat(token, first))[call]
    return _on_several_ranks(Matched(group, NUMBERED, call[kept], places[kept], ranks))


def _fits_in_group(calls: CommunicationKernels, places: Places, ranks: int) -> bool:
    """Return whether there are no more ranks than the communicator has: else several communicators look like one."""
    sizes = calls.kinds.group_size[calls.kind[places]]
    return ranks <= int(sizes.min(initial=np.iinfo(np.int32).max, where=sizes > 0))


def _unnamed(calls: CommunicationKernels, streams: dict[int, list[Places]]) -> list[Matched | None]:
    """Match the streams of each rank with those of the lowest rank, the fullest first, by what runs on them."""
    if len(streams) < 2:
        return []
    reference, *others = sorted(streams)
    fullest = sorted(streams[reference], key=len, reverse=True)
    lists, counts = [{reference: places} for places in fullest], [_counted(calls, places) for places in fullest]
    for rank in others:
        free = [(places, _counted(calls, places)) for places in streams[rank]]
        for together, counted in zip(lists, counts, strict=True):
            likeness = [_likeness(counted, theirs) for _, theirs in free]
            if likeness and max(likeness) >= _FIT and likeness.count(max(likeness)) == 1:
                together[rank], _ = free.pop(likeness.index(max(likeness)))
    return [aligned(calls, together, None, ORDERED) for together in lists
            if len(together) > 1 and _fits_in_group(calls, np.concatenate([*together.values()]), len(together))]


def _counted(calls: CommunicationKernels, places: Places) -> tuple[Int, Int]:
    """Return the tokens of calls, and how often each is there."""
    count = np.bincount(calls.token(places))
    found = np.flatnonzero(count)
    return found, count[found]


def _likeness(one: tuple[Int, Int], other: tuple[Int, Int]) -> float:
    """Return the share of counted tokens that two lists have in common, whatever their order."""
    (mine, my_counts), (theirs, their_counts) = one, other
    _, here, there = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    return int(np.minimum(my_counts[here], their_counts[there]).sum()) / max(int(my_counts.sum()), int(their_counts.sum()), 1)


def aligned(calls: CommunicationKernels, lists: Mapping[int, Places], group: str | None, method: str) -> Matched:
    """Match each rank's calls, by their places, with those of the rank that has most (the lowest of these)."""
    reference = max(sorted(lists), key=lambda rank: len(lists[rank]))
    mine, timed = lists[reference], True
    found = {reference: (np.arange(len(mine), dtype=np.int32), mine)}
    for rank in sorted(lists):
        if rank == reference:
            continue
        theirs = lists[rank]
        pairs = _ending_together(calls, mine, theirs)
        if pairs is None:
            pairs, timed = _in_order(calls, mine, theirs), False
        if pairs is None or len(pairs) < _FIT * min(len(mine), len(theirs)):
            continue
        if not calls.kinds.paired[calls.kind[mine[0]]]:
            pairs = _filled(pairs, calls.token(mine), calls.token(theirs))
        found[rank] = pairs[:, 0].astype(np.int32), theirs[pairs[:, 1]]
    ranks = sorted(found)
    call, place = (np.concatenate([found[rank][side] for rank in ranks]) for side in (0, 1))
    return _on_several_ranks(Matched(group, TIMED if timed else method, call, place, ranks))


def _in_order(calls: CommunicationKernels, one: Places, other: Places) -> Int | None:
    """Return the pairs that the order of calls makes certain, else that of calls within each step; None where neither does."""
    fewest = _FIT * min(len(one), len(other))
    pairs = certain_pairs(calls.token(one), calls.token(other))
    if pairs is not None and len(pairs) >= fewest:
        return pairs
    both = np.concatenate([one, other])
    tokens = numbered(calls.token(both), calls.step[both])
    return certain_pairs(tokens[: len(one)], tokens[len(one) :])


def _filled(pairs: Int, one: Places, other: Places) -> Int:
    """Return the pairs, and those between two neighbours of them, or beyond the last, where both sides have equal calls in equal
    order: they are certain however far apart they end. one, other: what the calls are."""
    edges = np.concatenate([[[-1, -1]], pairs, [[len(one), len(other)]]])
    gaps = np.diff(edges, axis=0)
    found = [pairs]
    for at in np.flatnonzero((gaps[:, 0] > 1) & (gaps[:, 0] == gaps[:, 1])).tolist():
        (first, partner), length = edges[at] + 1, int(gaps[at, 0]) - 1
        if np.array_equal(one[first : first + length], other[partner : partner + length]):
            found.append(np.stack([np.arange(first, first + length), np.arange(partner, partner + length)], axis=1))
    whole = np.concatenate(found)
    return whole[np.argsort(whole[:, 0])]


def _ending_together(calls: CommunicationKernels, one: Places, other: Places) -> Int | None:
    """Return the pairs of like calls whose ends are one distance apart, where that distance stands out; else None.

    It stands out when it makes pairs of four fifths of the shorter list, and no other distance of half as many.
    """
    if len(one) * len(other) > LARGEST or min(len(one), len(other)) < _FEWEST:
        return None
    places, partners = np.nonzero(calls.token(one)[:, None] == calls.token(other)[None, :])
    ends = calls.end[one]
    apart = calls.end[other][partners] - ends[places]
    order = np.argsort(apart, kind="stable")
    width = _TOGETHER + int((ends.max() - ends.min()) * _FASTEST_DRIFT)
    sorted_apart = apart[order]
    counts = np.searchsorted(sorted_apart, sorted_apart + width, side="right") - np.arange(len(sorted_apart))
    best = int(counts.argmax()) if len(counts) else 0
    if not len(counts) or counts[best] < _FIT * min(len(one), len(other)):
        return None
    elsewhere = np.abs(sorted_apart - sorted_apart[best]) > width
    if counts[elsewhere].max(initial=0) * 2 > counts[best]:
        return None
    chosen = order[best : best + counts[best]]
    pairs = np.stack([places[chosen], partners[chosen]], axis=1)
    once = np.logical_and(*(np.bincount(pairs[:, side])[pairs[:, side]] == 1 for side in (0, 1)))
    pairs = pairs[once]
    return pairs[np.argsort(pairs[:, 0])] if len(pairs) >= _FIT * min(len(one), len(other)) else None


def clocks(calls: CommunicationKernels, matched: Iterable[Matched]) -> dict[int, Clock]:
    """Return the clock of every rank that matched calls tie, directly or over other ranks, to a reference: the lowest of them.

    A reference is listed with offset 0. Ranks that nothing ties to another are left out.
    """
    edges: dict[int, dict[int, Clock]] = {}
    for one, other, mine, theirs, method in _shared(calls, matched):
        resolution = max(int(calls.kinds.resolution[calls.kind[places[0]]]) for places in (mine, theirs))
        fitted = fit(one, calls.end[mine], calls.end[theirs], method, resolution)
        if fitted is not None:
            edges.setdefault(one, {})[other] = fitted
            edges.setdefault(other, {})[one] = Clock(other, -fitted.offset, -fitted.drift, fitted.at, fitted.uncertainty,
                                                     fitted.calls, method)
    found: dict[int, Clock] = {}
    for rank in sorted(edges):
        if rank not in found:
            found |= _spread(rank, edges)
    return found


def _spread(reference: int, edges: Mapping[int, Mapping[int, Clock]]) -> dict[int, Clock]:
    """Return the clocks against `reference`, each over the path of least uncertainty."""
    found: dict[int, Clock] = {}
    at = next(iter(edges[reference].values())).at
    turns = count()  # of two paths that are as uncertain the one found first
    waiting = [(0.0, reference, next(turns), Clock(reference, 0.0, 0.0, at, 0.0, 0, "reference"))]
    while waiting:
        uncertainty, rank, _, clock = heapq.heappop(waiting)
        if rank in found:
            continue
        found[rank] = clock
        for other, edge in edges[rank].items():
            if other not in found:
                moved = clock.offset + clock.drift * (edge.at - clock.at)
                further = Clock(reference, moved + edge.offset, clock.drift + edge.drift, edge.at, uncertainty + edge.uncertainty,
                                edge.calls, edge.method)
                heapq.heappush(waiting, (further.uncertainty, other, next(turns), further))
    return found


def _shared(calls: CommunicationKernels, matched: Iterable[Matched]) -> Iterator[tuple[int, int, Places, Places, str]]:
    """Yield (rank, other rank, places of the calls that they share on either, method) for the lowest rank of each group and
    each other."""
    shared: dict[tuple[int, int], list[tuple[Places, Places]]] = {}
    methods: dict[tuple[int, int], str] = {}
    for group in matched:
        lowest = min(group.ranks)
        possible = np.flatnonzero(calls.is_possible[group.place])
        by_rank = dict(split(possible, calls.rank(group.place[possible])))
        first = np.full(group.calls, -1, dtype=np.int32)
        of_lowest = by_rank.pop(lowest, possible[:0])
        first[group.call[of_lowest]] = group.place[of_lowest]
        for rank, part in by_rank.items():
            both = part[first[group.call[part]] >= 0]
            if len(both):
                shared.setdefault((lowest, rank), []).append((first[group.call[both]], group.place[both]))
                methods.setdefault((lowest, rank), group.method)
    for (one, other), parts in shared.items():
        mine, theirs = (np.concatenate(side) for side in zip(*parts, strict=True))
        yield one, other, mine, theirs, methods[one, other]


def fit(reference: int, ends: Int, others: Int, method: str, resolution: int = 1) -> Clock | None:
    """Return the clock that read `others` when the reference's read `ends`; None for fewer than three calls.

    The slope is the median of slopes between pairs of calls (Theil and Sen), the offset a median: outliers have no say.
    Drift is 0 where it is less than four of its own standard errors, and for fewer than six calls.
    """
    if len(ends) < _FEWEST:
        return None
    at = int(ends.min() + (ends.max() - ends.min()) // 2)
    difference = others - ends
    base = int(np.median(difference))
    time, rest = (ends - at).astype(np.float64), (difference - base).astype(np.float64)  # small numbers: exact in a double
    drift = _slope(time, rest) if len(ends) >= _FEWEST_OF_A_SLOPE else 0.0
    line = rest - drift * time
    error = _uncertainty(line, resolution) / 2 / (np.sqrt(len(time)) * max(time.std(), 1.0))
    if abs(drift) < 4 * error or abs(drift) > _FASTEST_DRIFT:
        drift, line = 0.0, rest
    offset = float(np.median(line))
    return Clock(reference, base + offset, drift, at, _uncertainty(line, resolution), len(ends), method)


def _uncertainty(values: npt.NDArray[np.float64], resolution: int) -> float:
    """Return how far the median of `values` may be off (Clock says how)."""
    bound = max(2 * _SIGMA * _deviation(values), float(resolution))
    if len(values) <= _FEW:
        reach = float(np.abs(values - np.median(values)).max())
        bound = max(bound, _WIDER.get(len(values), 1.0) * reach)
    return bound


def _slope(time: npt.NDArray[np.float64], rest: npt.NDArray[np.float64]) -> float:
    few = np.unique(np.linspace(0, len(time) - 1, min(len(time), _MOST_PAIRS)).astype(np.int64))
    one, other = np.triu_indices(len(few), 1)
    apart = time[few[other]] - time[few[one]]
    slopes = (rest[few[other]] - rest[few[one]])[apart != 0] / apart[apart != 0]
    return float(np.median(slopes)) if len(slopes) else 0.0


def _deviation(values: npt.NDArray[np.float64]) -> float:
    """Return the median absolute deviation."""
    return float(np.median(np.abs(values - np.median(values))))
