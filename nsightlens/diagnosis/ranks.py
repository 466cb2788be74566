"""Late ranks: exposed waits in matched collectives, which ranks the others wait for, and what all would win without that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nsightlens.columns.arrays import Int, Mask
from nsightlens.diagnosis.busy_time import OtherEnd
from nsightlens.diagnosis.exchanges import Exchanges
from nsightlens.diagnosis.meetings import matched
from nsightlens.diagnosis.tree import Tree
from nsightlens.intervals.intersection import intersection
from nsightlens.names.label import title

LATE_PCT = 2
"""Share of a step, and of the window, from which on a rank is late."""


class Awaited(NamedTuple):
    """Waits of ranks at the beginning of sends and receives, sorted by rank and start. start, end: ns since the epoch, or of one
    clock. kernel: its short name."""

    rank: Int
    start: Int
    end: Int
    kernel: Sequence[str]
    whom: Sequence[OtherEnd]


class Waiting(NamedTuple):
    """What ranks wait for each other. late: those that the others wait for; waited_ns: exposed waits of all; first_ns: of them in
    the first collective of each communicator; for_late_ns: of them in calls in which a late rank came last; winnable_ns: what the
    job would win if they all came as the others do; alone_ns: if only that rank did. in_mpi: whether their hosts wait in MPI, so
    that it is idle time of their GPUs."""

    late: tuple[int, ...]
    ranks: int
    waited_ns: int
    first_ns: int
    for_late_ns: int
    winnable_ns: int
    alone_ns: tuple[int, ...]
    in_mpi: bool = False


def waiting(trees: Sequence[Tree], exchanges: Exchanges | None) -> Waiting | None:
    """Return how ranks wait for each other in their windows, in kernels if one is late there, else in MPI.

    exchanges: matched communication kernels; None, as what is returned, where none were.
    """
    by_rank = {tree.rank: tree for tree in trees if tree.rank is not None}
    in_kernels = _waiting(by_rank, exchanges, {rank: tree.exposed for rank, tree in by_rank.items()}) if exchanges else None
    if in_kernels and in_kernels.late:
        return in_kernels
    calls = matched({rank: (tree.meetings, tree.origin_ns or 0) for rank, tree in by_rank.items()})
    in_mpi = _waiting(by_rank, calls, {rank: tree.in_mpi for rank, tree in by_rank.items()}) if calls else None
    return in_mpi._replace(in_mpi=True) if in_mpi and in_mpi.late else in_kernels


def _waiting(by_rank: dict[int, Tree], exchanges: Exchanges, costs: dict[int, tuple[Int, Int]]) -> Waiting | None:
    """Return how ranks wait for each other; costs: by rank, when a wait costs time of its GPU."""
    known = np.isin(exchanges.rank, list(by_rank))
    known_exchanges = Exchanges(*(column[known] for column in exchanges))
    if len(by_rank) < 2 or not len(known_exchanges.call):
        return None
    _, call = np.unique(known_exchanges.call, return_inverse=True)
    length = known_exchanges.end - known_exchanges.start
    shortest = np.full(call.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(shortest, call, length)
    wait = length - shortest[call]
    inside, step, steps = _steps(by_rank, known_exchanges)
    exposed = np.zeros(len(call), np.int64)
    for rank, tree in by_rank.items():
        of_rank = np.flatnonzero(known_exchanges.rank == rank)
        exposed[of_rank] = _exposed(costs[rank], known_exchanges.start[of_rank] - (tree.origin_ns or 0), wait[of_rank])
    exposed[~inside] = 0
    first = _firsts(by_rank, known_exchanges, call)
    late = _late(by_rank, known_exchanges.rank, step, steps, np.where(first[call], 0, exposed))
    last = np.zeros(len(shortest), np.int64)
    is_last = length == shortest[call]
    last[call[is_last]] = known_exchanges.rank[is_last]
    for_late = np.isin(last, late)[call]
    return Waiting(tuple(late), len(by_rank), int(exposed.sum()), int(exposed[first[call]].sum()), int(exposed[for_late].sum()),
                   winnable(call[inside], known_exchanges.rank[inside], exposed[inside], late),
                   tuple(winnable(call[inside], known_exchanges.rank[inside], exposed[inside], [rank]) for rank in late))


def with_awaited(tree: Tree, awaited: Awaited) -> Tree:
    """Return a tree whose sends and receives say for whom they wait while nothing hides it."""
    of_rank = np.flatnonzero(awaited.rank == (-1 if tree.rank is None else tree.rank))
    if not len(of_rank):
        return tree
    start, end = (column[of_rank] - (tree.origin_ns or 0) for column in (awaited.start, awaited.end))
    shared = intersection(start, end, *tree.exposed)
    sums: dict[str, dict[OtherEnd, int]] = {}
    for place, ns in zip(of_rank[shared.place].tolist(), (shared.end - shared.start).tolist(), strict=True):
        of_kernel = sums.setdefault(title(awaited.kernel[place]), {})
        of_kernel[awaited.whom[place]] = of_kernel.get(awaited.whom[place], 0) + ns
    return replace(tree, communication=[
        replace(piece, awaited=_within(piece.ns, sums[piece.name])) if piece.name in sums else piece
        for piece in tree.communication])


def _within(ns: int, sums: dict[OtherEnd, int]) -> tuple[tuple[OtherEnd, int], ...]:
    """Return the sums, the largest first, as far as they fit into so many ns: at once with another kernel, a wait is of that."""
    waits = []
    for whom, waited in sorted(sums.items(), key=lambda item: (-item[1], str(item[0]))):
        waits.append((whom, min(waited, ns)))
        ns -= min(waited, ns)
    return tuple(each for each in waits if each[1])


def _steps(by_rank: dict[int, Tree], exchanges: Exchanges) -> tuple[Mask, Int, int]:
    """Return whether each part lies in the window of its rank, in which of its steps, and how many there are."""
    is_in_window, step, step_count = np.zeros(len(exchanges.call), np.bool_), np.zeros(len(exchanges.call), np.int64), 1
    for rank, tree in by_rank.items():
        of_rank = np.flatnonzero(exchanges.rank == rank)
        end = exchanges.end[of_rank] - (tree.origin_ns or 0)
        is_in_window[of_rank] = (tree.window.start < end) & (end <= tree.window.end)
        bounds = np.array(tree.window.bounds, np.int64)
        if len(bounds) > 1:
            step[of_rank] = np.clip(np.searchsorted(bounds, end, "left") - 1, 0, len(bounds) - 2)
            step_count = max(step_count, len(bounds) - 1)
    return is_in_window, step, step_count


def _exposed(costs: tuple[Int, Int], start: Int, wait: Int) -> Int:
    """Return how much of each wait was not hidden; the waits of a rank are sorted by start here."""
    shared = intersection(start, start + wait, *costs)
    exposed_ns = np.zeros(len(start), np.int64)
    np.add.at(exposed_ns, shared.place, shared.end - shared.start)
    return exposed_ns


def _firsts(by_rank: dict[int, Tree], found: Exchanges, call: Int) -> Mask:
    """Return which calls are the first of their communicator, where a window begins with the capture."""
    first = np.zeros(call.max() + 1, np.bool_)
    if any(tree.window.dropped for tree in by_rank.values()):
        return first
    order = np.lexsort((found.start, found.group))
    begins = np.concatenate([[True], found.group[order][1:] != found.group[order][:-1]])
    first[call[order[begins]]] = True
    return first


def _late(by_rank: dict[int, Tree], rank: Int, step: Int, steps: int, exposed: Int) -> list[int]:
    """Return the ranks that the others wait for, the one that costs most at the front."""
    ranks = np.array(sorted(by_rank), np.int64)
    waits = np.zeros((len(ranks), steps), np.int64)
    np.add.at(waits, (np.searchsorted(ranks, rank), step), exposed)
    windows = np.array([by_rank[int(number)].window.length for number in ranks])
    upper = np.sort(waits, axis=0)[len(ranks) // 2:]
    usual = np.median(upper, axis=0)
    behind = usual - waits
    late = (2 * waits < usual) & (100 * behind > LATE_PCT * windows[:, None] / steps)
    lateness = np.where(late, behind, 0).sum(axis=1)
    late_ranks = np.flatnonzero(100 * lateness >= LATE_PCT * windows)
    late_ranks = late_ranks[lateness[late_ranks] > 0]
    return [int(ranks[place]) for place in late_ranks[np.argsort(-lateness[late_ranks], kind="stable")]]


def winnable(call: Int, rank: Int, exposed: Int, late: Sequence[int]) -> int:
    """Return what the job would win if these ranks came with the others: per call the shortest exposed wait of the others.

    A wait that computing hides costs nothing, and one that several calls share is exposed once.
    """
    if not len(late) or not len(call):
        return 0
    calls, call = np.unique(call, return_inverse=True)
    most = np.iinfo(np.int64).max
    others = np.full(len(calls), most)
    in_time = ~np.isin(rank, late)
    np.minimum.at(others, call[in_time], exposed[in_time])
    return int(others[others < most].sum())
