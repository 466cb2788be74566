"""The verdict as a value: what bounds a job and by how much, read off its trees; and what is worth most beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from nsightlens.diagnosis.branches import BRANCHES
from nsightlens.diagnosis.busy_time import BusyItem, OtherEnd
from nsightlens.diagnosis.exchanges import SlowLink
from nsightlens.diagnosis.idle import Leaf
from nsightlens.diagnosis.queue_drains import Owed
from nsightlens.diagnosis.ranks import Waiting
from nsightlens.diagnosis.sampled_functions import together
from nsightlens.diagnosis.tree import Tree

COMPUTING, COMMUNICATION, COPIES, IDLE, NOT_RECORDED = BRANCHES
START_UP, WIND_DOWN, INPUT, HOST, LATE, NONE, CPU, KERNEL = (
    "start-up", "wind-down", "input", "host", "late rank", "none", "cpu", "kernel")
_Named = TypeVar("_Named", str, OtherEnd)
_ALONE_PCT, _NOT_RECORDED_PCT = 70, 20
_FEW_WORKS, _LITTLE_GPU_NS, _LITTLE_NS = 6, 1_000_000, 10_000_000


@dataclass(frozen=True, slots=True)
class TimeShare:
    """A branch, start-up or wind-down as a cause: its ns, and its whole, None for what is no part of the window."""

    cause: str
    ns: int
    of_ns: int | None
    branch: str = ""

    @property
    def share_pct(self) -> float | None:
        """Return it as a share of its whole."""
        return 100 * self.ns / self.of_ns if self.of_ns else None


@dataclass(frozen=True, slots=True)
class Sums:
    """Several trees as one: branches, leaves and pieces summed; start-up and wind-down once for each process."""

    trees: tuple[Tree, ...]
    whole_ns: int
    branches: dict[str, int]
    leaves: dict[str, list[Leaf]]
    pieces: dict[str, list[BusyItem]]
    start_up_ns: int
    queued_ns: int
    wind_down_ns: int
    loader_ns: int
    owed: tuple[Owed, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What bounds a job: the lead, what stands beside it in the sentence, and the sums that they are read off."""

    lead: TimeShare
    beside: tuple[TimeShare, ...]
    sums: Sums
    waiting: Waiting | None
    slow_link: SlowLink | None = None

    @property
    def cause(self) -> str:
        """Return the cause that leads."""
        return self.lead.cause


def sums(trees: Sequence[Tree]) -> Sums:
    """Return the sums over trees."""
    processes = {(tree.profile_id, tree.process_id, tree.window_index): tree for tree in reversed(trees)}
    branches = {name: sum(tree.lengths[name] for tree in trees) for name in BRANCHES}
    leaves = {IDLE: _leaves(leaf for tree in trees for leaf in tree.idle),
              START_UP: _leaves(leaf for tree in processes.values() for leaf in tree.start_up.leaves),
              WIND_DOWN: _leaves(leaf for tree in processes.values() for leaf in tree.wind_down.leaves)}
    pieces = {name: _pieces(piece for tree in trees for piece in getattr(tree, name)) for name in (
        COMPUTING, COMMUNICATION, COPIES)}
    outside = [(tree.start_up.ns, tree.start_up.queued_ns, tree.wind_down.ns) for tree in processes.values()]
    before, queued, after = (sum(ns) for ns in zip(*outside, strict=True)) if outside else (0, 0, 0)
    return Sums(tuple(trees), sum(tree.window.length for tree in trees), branches, leaves, pieces, before, queued, after,
                sum(tree.loader_ns for tree in trees), tuple(part for tree in trees for part in tree.owed))


def _leaves(every: Iterable[Leaf]) -> list[Leaf]:
    """Return the sums of leaves by cause and name, the largest first."""
    alike: dict[str, list[Leaf]] = defaultdict(list)
    for leaf in every:
        alike[leaf.cause].append(leaf)
    leaves = []
    for cause, those in alike.items():
        if len(those) == 1:
            leaves += those
            continue
        names = sums_of(each for leaf in those for each in leaf.names)
        leaves.append(Leaf(cause, sum(leaf.ns for leaf in those), names, sum(leaf.gaps for leaf in those),
                           issued=tuple(each for leaf in those for each in leaf.issued),
                           sampled=together(leaf.sampled for leaf in those)))
    return sorted(leaves, key=lambda leaf: (-leaf.ns, leaf.cause))


def _pieces(every: Iterable[BusyItem]) -> list[BusyItem]:
    """Return the sums of kernels or copies by name, the largest first."""
    alike: dict[tuple[str, str], list[BusyItem]] = defaultdict(list)
    for piece in every:
        alike[piece.key, piece.memory].append(piece)
    merged = [BusyItem(those[0].name, key, sum(p.ns for p in those), sum(p.count for p in those), those[0].family, those[0].plain,
                       max(p.blocks for p in those), memory, tuple(each for p in those for each in p.issued),
                       sums_of(each for p in those for each in p.awaited), hidden_ns=sum(p.hidden_ns for p in those))
              for (key, memory), those in alike.items()]
    return sorted(merged, key=lambda piece: (-piece.ns, piece.key))


def sums_of(named: Iterable[tuple[_Named, int]]) -> tuple[tuple[_Named, int], ...]:
    """Return the sum of each name, the largest first."""
    sums: dict[_Named, int] = defaultdict(int)
    for name, ns in named:
        sums[name] += ns
    return tuple(sorted(sums.items(), key=lambda item: (-item[1], str(item[0]))))


def is_too_little(found: Sums) -> bool:
    """Return whether there is nothing to judge."""
    works, gpu = sum(tree.works for tree in found.trees), sum(tree.gpu_ns for tree in found.trees)
    return (works < _FEW_WORKS and gpu < _LITTLE_GPU_NS and found.start_up_ns < _LITTLE_NS
            and found.wind_down_ns < _LITTLE_NS)


def judge(found: Sums, waiting: Waiting | None) -> Verdict:
    """Return the verdict on trees that hold something to judge."""
    parts = {name: TimeShare(_cause(name, found, waiting), ns, found.whole_ns, name) for name, ns in found.branches.items()}
    missing = parts.pop(NOT_RECORDED)
    by_size = sorted(parts.values(), key=lambda part: -part.ns)
    stepped = all(tree.window.steps for tree in found.trees)
    outside = [] if stepped else [TimeShare(cause, ns, None, cause) for cause, ns in (
        (START_UP, found.start_up_ns), (WIND_DOWN, found.wind_down_ns), (NOT_RECORDED, found.queued_ns))]
    first, second = by_size[:2]
    if _leads(missing, first, second):
        recorded = found.whole_ns - missing.ns
        of_recorded = tuple(TimeShare(part.cause, part.ns, recorded, part.branch) for part in by_size[:2] if part.ns)
        return Verdict(missing, of_recorded, found, waiting)
    largest = max([first, *outside], key=lambda part: part.ns)
    beside = [part for part in outside if part.ns and part is not largest and 2 * part.ns > largest.ns
              and part.cause != NOT_RECORDED]
    if largest is not first:
        return Verdict(largest, (first, *beside), found, waiting)
    if 100 * first.ns < _ALONE_PCT * found.whole_ns and second.ns:
        beside = [second, *beside]
    return Verdict(first, tuple(beside), found, waiting)


def _leads(missing: TimeShare, first: TimeShare, second: TimeShare) -> bool:
    """Return whether so much was not recorded that it could change which branch is the largest."""
    return 100 * missing.ns >= _NOT_RECORDED_PCT * (missing.of_ns or 0) and first.ns < second.ns + missing.ns


def _cause(branch: str, found: Sums, waiting: Waiting | None) -> str:
    if branch == IDLE:
        if waiting and waiting.in_mpi and 2 * waiting.for_late_ns >= found.branches[IDLE] > 0:
            return LATE
        return INPUT if 2 * found.loader_ns >= found.branches[IDLE] > 0 else HOST
    is_late = waiting and waiting.late and not waiting.in_mpi and (
        len(found.trees) * waiting.winnable_ns >= found.branches[COMMUNICATION] - waiting.for_late_ns)
    if branch == COMMUNICATION and waiting and is_late:
        return LATE if waiting.waited_ns - waiting.first_ns > found.branches[IDLE] else branch
    return branch
