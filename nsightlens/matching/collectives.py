"""Which collective kernel of one rank is which of another, and what that shows of the ranks' clocks. Numbers, no tables.

All ranks leave a collective together (within the time the last bytes need), however late one of them came: so the *ends* of
matched calls show the offset between two clocks, and the *starts* show which rank came last.

Calls are matched per communicator: by its name and the sequence number in it, where the trace has both; by its name and the
order of calls; else by the calls of a stream. Without numbers the ends decide, where they can: of all distances between ends
of like calls those of the true pairs are almost the same, and no others are, so that missing calls at the ends or in between
do no harm. Where no distance stands out, as in a loop that is as regular as a clock, the order decides, and where one side
lacks calls only its certain pairs are taken (sequence_alignment.py). Ranks whose calls do not fit are given up.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import numpy.typing as npt

from nsightlens.columns.arrays import Int
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
class Call:
    """One collective kernel of one rank. Times in ns on that rank's own clock; None for what the trace does not tell."""

    row: int
    start: int
    end: int
    token: Hashable
    """What it is: operation, payload."""
    stream: Hashable
    group: str | None = None
    group_size: int | None = None
    number: int | None = None
    resolution: int = 1
    """What the times of its rank are multiples of: 1000 where a tool cuts them to microseconds."""
    paired: bool = False
    """Whether it may be of two ranks as well as of all: a send or receive that nothing names."""
    is_possible: bool = True
    """Whether its end can be true: no clock is fitted to one that outlasts what its stream allows."""


@dataclass(slots=True)
class Matched:
    """The calls of one communicator, matched over ranks: `calls[k][rank]` is the k-th call on that rank."""

    group: str | None
    method: str
    calls: list[dict[int, Call]]
    ranks: list[int] = field(default_factory=list)


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


def match(ranks: Mapping[int, Sequence[Call]]) -> list[Matched]:
    """Return the communicators whose calls could be matched over at least two of `ranks` (calls in order of start).

    Of sends and receives that nothing names, those that end together on all ranks that have such calls are one: an all-to-all.
    """
    channels: dict[int, dict[tuple[str, Hashable], list[Call]]] = {}
    for rank, calls in sorted(ranks.items()):
        mine = channels.setdefault(rank, {})
        for call in calls:
            mine.setdefault(_channel(call), []).append(call)
    names = sorted({key for mine in channels.values() for key in mine if key[0] == "group"}, key=str)
    found = [_named({rank: mine[key] for rank, mine in channels.items() if key in mine}) for key in names]
    found += _unnamed(_streams(channels, "stream"))
    paired = _streams(channels, "paired stream")
    found += [_of_all(matched, set(paired)) for matched in _unnamed(paired) if matched is not None]
    return [matched for matched in found if matched is not None and matched.calls]


def _channel(call: Call) -> tuple[str, Hashable]:
    if call.paired:
        return "paired stream", call.stream
    return ("group", call.group) if call.group is not None else ("stream", call.stream)


def _streams(channels: Mapping[int, Mapping[tuple[str, Hashable], list[Call]]], kind: str) -> dict[int, list[list[Call]]]:
    """Return the lists of calls of each rank that has channels of that kind."""
    streams = {rank: [calls for key, calls in mine.items() if key[0] == kind] for rank, mine in channels.items()}
    return {rank: lists for rank, lists in streams.items() if lists}


def _of_all(matched: Matched, ranks: set[int]) -> Matched | None:
    """Return what ends together on all `ranks`; None where that is not what matched them."""
    if matched.method != TIMED or set(matched.ranks) != ranks:
        return None
    return Matched(matched.group, matched.method, [calls for calls in matched.calls if len(calls) == len(ranks)], matched.ranks)


def _named(lists: dict[int, list[Call]]) -> Matched | None:
    if len(lists) < 2 or not _fits_in_group(lists):
        return None
    first = next(iter(lists.values()))[0]
    numbers = {rank: Counter(call.number for call in calls) for rank, calls in lists.items()}
    if all(None not in counted and max(counted.values()) == 1 for counted in numbers.values()):
        by_number: dict[int, dict[int, Call]] = {}
        for rank, calls in lists.items():
            for call in calls:
                by_number.setdefault(call.number or 0, {})[rank] = call
        alike = [together for _, together in sorted(by_number.items())
                 if len(together) > 1 and len({call.token for call in together.values()}) == 1]
        return Matched(first.group, NUMBERED, alike, sorted(lists))
    return _aligned(lists, first.group, NAMED)


def _fits_in_group(lists: dict[int, list[Call]]) -> bool:
    """Return whether there are no more ranks than the communicator has: else several communicators look like one."""
    sizes = {call.group_size for calls in lists.values() for call in calls if call.group_size is not None}
    return not sizes or len(lists) <= min(sizes)


def _unnamed(streams: dict[int, list[list[Call]]]) -> list[Matched | None]:
    """Match the streams of each rank with those of the lowest rank, the fullest first, by what runs on them."""
    if len(streams) < 2:
        return []
    reference, *others = sorted(streams)
    lists = [{reference: calls} for calls in sorted(streams[reference], key=len, reverse=True)]
    for rank in others:
        free = list(streams[rank])
        for together in lists:
            likeness = [_likeness(together[reference], calls) for calls in free]
            if likeness and max(likeness) >= _FIT and likeness.count(max(likeness)) == 1:
                together[rank] = free.pop(likeness.index(max(likeness)))
    return [_aligned(together, None, ORDERED) for together in lists if len(together) > 1 and _fits_in_group(together)]


def _likeness(one: Sequence[Call], other: Sequence[Call]) -> float:
    """Return the share of calls that the two lists have in common, whatever their order."""
    common = (Counter(call.token for call in one) & Counter(call.token for call in other)).total()
    return common / max(len(one), len(other), 1)


def _aligned(lists: dict[int, list[Call]], group: str | None, method: str) -> Matched | None:
    """Match each rank's calls with those of the rank that has most (the lowest of these)."""
    reference = max(sorted(lists), key=lambda rank: len(lists[rank]))
    codes: dict[Hashable, int] = {}
    tokens = {rank: np.array([codes.setdefault(call.token, len(codes)) for call in calls], dtype=np.int64)
              for rank, calls in lists.items()}
    together: list[dict[int, Call]] = [{reference: call} for call in lists[reference]]
    fitting = [reference]
    timed = True
    for rank in sorted(lists):
        if rank == reference:
            continue
        pairs = _ending_together(lists[reference], lists[rank], tokens[reference], tokens[rank])
        if pairs is None:
            pairs, timed = certain_pairs(tokens[reference], tokens[rank]), False
        if pairs is None or len(pairs) < _FIT * min(len(lists[reference]), len(lists[rank])):
            continue
        fitting.append(rank)
        for place, other in pairs.tolist():
            together[place][rank] = lists[rank][other]
    return Matched(group, TIMED if timed else method, [calls for calls in together if len(calls) > 1], sorted(fitting))


def _ending_together(one: Sequence[Call], other: Sequence[Call], tokens: Int, others: Int) -> Int | None:
    """Return the pairs of like calls whose ends are one distance apart, where that distance stands out; else None.

    It stands out when it makes pairs of four fifths of the shorter list, and no other distance of half as many.
    """
    if len(one) * len(other) > LARGEST or min(len(one), len(other)) < _FEWEST:
        return None
    places, partners = np.nonzero(tokens[:, None] == others[None, :])
    ends, their_ends = (np.array([call.end for call in calls], dtype=np.int64) for calls in (one, other))
    apart = their_ends[partners] - ends[places]
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


def clocks(matched: Iterable[Matched]) -> dict[int, Clock]:
    """Return the clock of every rank that matched calls tie, directly or over other ranks, to a reference: the lowest of them.

    A reference is listed with offset 0. Ranks that nothing ties to another are left out.
    """
    edges: dict[int, dict[int, Clock]] = {}
    for one, other, ends, method, resolution in _shared(matched):
        fitted = fit(one, ends[:, 0], ends[:, 1], method, resolution)
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


def _shared(matched: Iterable[Matched]) -> list[tuple[int, int, Int, str, int]]:
    """Return (rank, other rank, their ends of the calls they share, method, resolution) for the lowest rank of each group and
    each other."""
    shared: dict[tuple[int, int], list[tuple[Call, Call]]] = {}
    methods: dict[tuple[int, int], str] = {}
    for group in matched:
        lowest = min(group.ranks)
        for calls in group.calls:
            for rank, call in calls.items():
                if lowest in calls and rank != lowest and call.is_possible and calls[lowest].is_possible:
                    shared.setdefault((lowest, rank), []).append((calls[lowest], call))
                    methods.setdefault((lowest, rank), group.method)
    return [(*pair, np.array([(one.end, other.end) for one, other in both], dtype=np.int64), methods[pair],
             max(call.resolution for calls in both for call in calls)) for pair, both in shared.items()]


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
