"""The tree of a device: its window, the five branches, their leaves, and what lies before and after; every ns has one cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from nsightlens.columns.arrays import Int, Mask, distinct_pairs
from nsightlens.diagnosis import busy_time
from nsightlens.diagnosis.branches import branches
from nsightlens.diagnosis.busy_time import BusyItem
from nsightlens.diagnosis.clock import slowed_ns
from nsightlens.diagnosis.idle import Leaf, Outside, idle, start_up, wind_down
from nsightlens.diagnosis.issuers import Issuers
from nsightlens.diagnosis.meetings import Meetings, meetings
from nsightlens.diagnosis.profile_arrays import GRAPH, GpuWork, ProfileArrays
from nsightlens.diagnosis.queue_drains import Owed
from nsightlens.diagnosis.timeline import Threads
from nsightlens.diagnosis.window import Window, window

_SHOWN = 5
"""Leaves of a branch with a node of their own; the others are one."""


class Ends(NamedTuple):
    """What lies before and after the GPU work of a process."""

    process_id: str
    start_up: Outside
    wind_down: Outside


@dataclass(frozen=True, slots=True)
class Tree:
    """What a device did. lengths: ns of each branch, which sum to the window. process_id: whose start-up and wind-down these are,
    the one whose work began first; others: those of the others that share the GPU."""

    run: str
    tool: str
    profile_id: str
    process_id: str
    window_index: int
    rank: int | None
    device_id: str
    gpu: str
    vendor: str
    processes: int
    """How many share the GPU."""
    ranks: tuple[int, ...]
    """The ranks of these; rank is None where they are several."""
    works: int
    gpu_ns: int
    window: Window
    lengths: dict[str, int]
    computing: list[BusyItem]
    communication: list[BusyItem]
    copies: list[BusyItem]
    idle: list[Leaf]
    owed: list[Owed]
    """Idle time that is owed to calls which emptied the queue (queue_drains.py)."""
    loader_ns: int
    start_up: Outside
    wind_down: Outside
    tensor_cores: bool
    sms: int | None
    capability: float | None
    graphs_ns: int
    low_fill: tuple[str, int, int] | None
    """The kernel that fills less than half of the SMs for longest: its name, ns and largest grid."""
    faulting: list[BusyItem]
    """Kernels that met page faults of managed memory: their time in which the GPU handled some."""
    faults: str
    """What says so: page faults, or the migration of pages."""
    slowed_ns: int
    """By how much longer the kernels of the window's last third took, if the GPU slowed down (clock.py)."""
    origin_ns: int | None
    stacks: bool
    """Whether Python's stacks were recorded."""
    exposed: tuple[Int, Int] = field(repr=False)
    """When communication was exposed: starts and ends."""
    in_mpi: tuple[Int, Int] = field(repr=False)
    """When it idled while the host was in MPI: starts and ends."""
    meetings: Meetings = field(repr=False)
    """Blocking collectives of MPI of its processes."""
    others: tuple[Ends, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A row of the tree. path: the names from the branch to this node; count: kernels, copies or gaps.

    process_id: whose start-up or wind-down it is, where that is another one of those that share the GPU.
    """

    path: tuple[str, ...]
    ns: int
    count: int | None
    process_id: str = ""


def trees(recorded: ProfileArrays, lost: Int) -> list[Tree]:
    """Return a tree for each device and capture window of a profile, ascending. lost: the places of calls without a kernel."""
    work = recorded.work
    grown = []
    for device, number in distinct_pairs(work.device, work.window):
        of_device = work.only((work.device == device) & (work.window == number))
        if int(of_device.end.max()) > int(of_device.start.min()):
            grown.append(_tree(recorded, of_device, lost))
    return grown


def _tree(recorded: ProfileArrays, work: GpuWork, lost: Int) -> Tree:
    judged = window(recorded, work)
    calls = recorded.calls.spans
    parts = branches(recorded, work, judged, calls.start[lost[np.isin(calls.process[lost], np.unique(work.process))]])
    threads = Threads(recorded, judged.length)
    issuers = Issuers(threads)
    by = issuers.call_issuers(work.call)
    of_idle, of_calls, in_mpi = idle(recorded, work, parts.gaps, threads, issuers)
    process = int(work.process[0])
    ranks = tuple(sorted({recorded.ranks[each] for each in np.unique(work.process).tolist() if each in recorded.ranks}))
    device = recorded.devices.get(recorded.text(int(work.device[0])), {})
    first, *others = (_ends(recorded, each, int(work.window[0]), judged, threads, issuers) for each in _by_first(work.process))
    profile = recorded.profile
    tensor_cores = busy_time.has_tensor_cores(profile["vendor"], device.get("name"), device.get("compute_capability"))
    return Tree(
        profile["run"], profile["tool"], profile["profile_id"], recorded.text(process), int(work.window[0]),
        ranks[0] if len(ranks) == 1 else None, recorded.text(int(work.device[0])), device.get("name") or "",
        profile["vendor"] or "", len(np.unique(work.process)), ranks, len(work.start), int((work.end - work.start).sum()), judged,
        parts.lengths(),
        busy_time.computing(recorded, work, by, judged, parts), busy_time.communication(recorded, work, by, judged, parts),
        busy_time.copies(recorded, work, by, judged, parts), of_idle, of_calls,
        sum(leaf.ns for leaf in of_idle if leaf.cause == "data loader"),
        first.start_up, first.wind_down, tensor_cores,
        device.get("sm_count"), busy_time.as_number(device.get("compute_capability")), _inside(work, judged, work.kind == GRAPH),
        _low_fill(recorded, work, judged, device.get("sm_count")), busy_time.faulting(recorded, work, by, judged, parts),
        recorded.faults.what, slowed_ns(work, judged),
        profile["origin_epoch_ns"], recorded.stacks,
        (parts.communication.start, parts.communication.end), in_mpi, meetings(recorded, np.unique(work.process)), tuple(others))


def _by_first(process: Int) -> list[int]:
    """Return the processes of work, in the order in which their first begins."""
    each, first = np.unique(process, return_index=True)
    return [int(number) for number in each[np.argsort(first)]]


def _ends(recorded: ProfileArrays, process: int, number: int, judged: Window, threads: Threads, issuers: Issuers) -> Ends:
    work_of_process = recorded.work.only((recorded.work.process == process) & (recorded.work.window == number))
    return Ends(recorded.text(process), start_up(recorded, work_of_process, judged, threads, issuers),
                wind_down(recorded, work_of_process, threads, issuers))


def _inside(work: GpuWork, judged: Window, mask: Mask) -> int:
    start, end = np.maximum(work.start[mask], judged.start), np.minimum(work.end[mask], judged.end)
    return int(np.maximum(end - start, 0).sum())


def _low_fill(recorded: ProfileArrays, work: GpuWork, judged: Window, sms: int | None) -> tuple[str, int, int] | None:
    if not sms:
        return None
    small = work.where(busy_time.low_fill(work, judged, sms))
    if not len(small.start):
        return None
    names, kernel = np.unique(small.short_name, return_inverse=True)
    sums, blocks = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    np.add.at(sums, kernel, small.end - small.start)
    np.maximum.at(blocks, kernel, small.blocks)
    most = int(np.argmax(sums))
    return recorded.text(int(names[most])), int(sums[most]), int(blocks[most])


def nodes(tree: Tree) -> Iterator[Node]:
    """Yield the rows of a tree: each branch, then its leaves, which sum to it; then what lies before and after the window."""
    faults = {(piece.process, piece.key): (tree.faults, piece.ns) for piece in tree.faulting}
    leaves = {"computing": tree.computing, "communication": tree.communication, "copies": tree.copies}
    for branch, ns in tree.lengths.items():
        yield Node((branch,), ns, None)
        if branch == "idle":
            yield from _causes((branch,), tree.idle)
        elif branch in leaves:
            yield from _by_process((branch,), leaves[branch], faults if branch == "computing" else {})
    yield from _outside(tree.start_up, tree.wind_down)
    for each in tree.others:
        yield from (replace(node, process_id=each.process_id) for node in _outside(each.start_up, each.wind_down))


def _outside(before: Outside, after: Outside) -> Iterator[Node]:
    """Yield what lies before and after the GPU work of a process."""
    for name, outside in (("start-up", before), ("wind-down", after)):
        yield Node((name,), outside.ns, None)
        yield from _causes((name,), outside.leaves)
    if before.queued_ns:
        yield Node(("queued before the first GPU work",), before.queued_ns, None)


def _causes(path: tuple[str, ...], leaves: list[Leaf] | tuple[Leaf, ...]) -> Iterator[Node]:
    for leaf in leaves:
        here = (*path, leaf.cause)
        yield Node(here, leaf.ns, leaf.gaps)
        named = [(name, ns) for name, ns in leaf.names if name]
        if named:
            yield from (Node((*here, name), ns, None) for name, ns in named[:_SHOWN])
            unnamed_ns = leaf.ns - sum(ns for _, ns in named[:_SHOWN])
            if unnamed_ns:
                yield Node((*here, "others"), unnamed_ns, None)


def by_process(pieces: Iterable[BusyItem]) -> dict[str, list[BusyItem]]:
    """Return pieces by the process of a shared GPU, the one with most time at the front; all under '' where one has the GPU."""
    pieces_by_process: dict[str, list[BusyItem]] = {}
    for piece in pieces:
        pieces_by_process.setdefault(piece.process, []).append(piece)
    return dict(sorted(pieces_by_process.items(), key=lambda item: (-sum(piece.ns for piece in item[1]), item[0])))


def _by_process(path: tuple[str, ...], pieces: list[BusyItem], faults: dict[tuple[str, str], tuple[str, int]]) -> Iterator[Node]:
    for process, own in by_process(pieces).items():
        if process:
            yield Node((*path, process), sum(piece.ns for piece in own), sum(piece.count for piece in own))
        yield from _pieces((*path, process) if process else path, own, faults)


def _pieces(path: tuple[str, ...], pieces: list[BusyItem], faults: dict[tuple[str, str], tuple[str, int]]) -> Iterator[Node]:
    """Yield the pieces, below each what part of it waits for other ranks or for page faults.

    faults: what says so, and ns, by process and key.
    """
    for piece in pieces[:_SHOWN]:
        if piece.ns:
            here = (*path, " ".join(filter(None, (piece.key, piece.memory))))
            yield Node(here, piece.ns, piece.count)
            parts = [*((f"waiting for {whom}", ns) for whom, ns in piece.awaited),
                     *([faults[piece.process, piece.key]] if (piece.process, piece.key) in faults else [])]
            yield from (Node((*here, name), ns, None) for name, ns in parts)
            other_ns = piece.ns - sum(ns for _, ns in parts)
            if parts and other_ns:
                yield Node((*here, "others"), other_ns, None)
    other_ns = sum(piece.ns for piece in pieces[_SHOWN:])
    if other_ns:
        yield Node((*path, "others"), other_ns, sum(piece.count for piece in pieces[_SHOWN:]))
