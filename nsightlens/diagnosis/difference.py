"""The difference of trees: what each node of them takes in each run, per step where all have steps, in ns that sum exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import NamedTuple

from nsightlens.diagnosis.branches import BRANCHES
from nsightlens.diagnosis.busy_time import BusyItem
from nsightlens.diagnosis.idle import Leaf
from nsightlens.diagnosis.tree import Tree
from nsightlens.diagnosis.verdict import COMMUNICATION, COMPUTING, COPIES, IDLE, START_UP, WIND_DOWN, Sums
from nsightlens.statistics.rounding import apportioned, nearest

Path = tuple[str, ...]
OTHERS = "others"


class Property(NamedTuple):
    """What two runs should have in common, what each has, and whether it is the same; None where it is not known."""

    name: str
    base: str | None
    other: str | None
    same: bool | None


@dataclass(frozen=True, slots=True)
class Side:
    """A run that is compared. recordings: the trees of each; issuers: per kernel the ns under each operator and its shapes.

    gpus: how many the job has; missing: how many of its launches have no kernel.
    """

    run: str
    tool: str
    sums: Sums
    recordings: tuple[tuple[Tree, ...], ...]
    issuers: Mapping[str, Mapping[tuple[str, str], int]]
    gpus: int
    missing: int

    @property
    def steps(self) -> int:
        """Return how many steady steps its windows hold; 0 where a window has none."""
        counts = [tree.window.steps for tree in self.sums.trees]
        return sum(counts) if all(counts) else 0

    @property
    def step_lengths(self) -> list[int]:
        """Return the ns of each steady step of each tree."""
        return [end - start for tree in self.sums.trees for start, end in pairwise(tree.window.bounds)]


@dataclass(frozen=True, slots=True)
class Line:
    """A node of the trees: its ns and its count in each run, in the order of the runs.

    path: () for the window, else the names from the branch to the node. names: what it is called in each run, None where it is
    not: a kernel may have another name for the same operator and shapes. counts: None where not counted.
    """

    path: Path
    ns: tuple[int, ...]
    counts: tuple[float | None, ...]
    names: tuple[str | None, ...]

    @property
    def difference(self) -> int:
        """Return the ns of the last run minus those of the first."""
        return self.ns[-1] - self.ns[0]

    @property
    def is_outside(self) -> bool:
        """Return whether it is no part of the window."""
        return self.path[:1] in ((START_UP,), (WIND_DOWN,))


@dataclass(frozen=True, slots=True)
class Difference:
    """What each part takes in each run. per_step: whether times are those of a mean step, else of a mean window.

    lines: each before its parts, of which the one that changed most comes first.
    """

    sides: tuple[Side, ...]
    per_step: bool
    lines: tuple[Line, ...]

    @property
    def whole(self) -> Line:
        """Return the line of the window."""
        return self.lines[0]

    @property
    def called(self) -> str:
        """Return what a step is called."""
        names = {tree.window.called for side in self.sides for tree in side.sums.trees}
        return names.pop() if len(names) == 1 else "step"

    @property
    def recordings(self) -> tuple[list[float], ...]:
        """Return the mean step (or window) of each recording of each run, in ns."""
        return tuple([self._mean(trees) for trees in side.recordings] for side in self.sides)

    def _mean(self, trees: Sequence[Tree]) -> float:
        parts = sum(tree.window.steps for tree in trees) if self.per_step else len(trees)
        return sum(tree.window.length for tree in trees) / parts

    def below(self, path: Path) -> list[Line]:
        """Return the parts of a node; of () the branches and what lies outside of the window."""
        return [line for line in self.lines if line.path and line.path[:-1] == path]

    @property
    def are_apart(self) -> bool:
        """Return whether both runs have kernels, and no kernel is in both, nor does the work of one of the other."""
        first, last = self.sides[0], self.sides[-1]
        both = first.issuers.keys() & last.issuers.keys()
        return bool(first.issuers and last.issuers) and not both and not renames(first, last)


def difference(sides: Sequence[Side]) -> Difference:
    """Return the difference of the trees of runs that have some."""
    per_step = all(side.steps for side in sides)
    renamed = renames(sides[0], sides[-1]) if len(sides) == 2 else {}
    named = [_nodes(side, renamed if place == 0 else {}) for place, side in enumerate(sides)]
    rounded = [_rounded(nodes, side.steps if per_step else len(side.sums.trees), _processes(side))
               for nodes, side in zip(named, sides, strict=True)]
    divisors = [side.steps if per_step else len(side.sums.trees) for side in sides]
    lines = {path: Line(
        path, tuple(ns.get(path, 0) for ns in rounded),
        tuple(_count(nodes, path, divisor) for nodes, divisor in zip(named, divisors, strict=True)),
        tuple((nodes[path].name if path in nodes else None) for nodes in named)) for path in {*named[0]}.union(*named[1:])}
    return Difference(tuple(sides), per_step, tuple(_ordered(lines, ())))


@dataclass(frozen=True, slots=True)
class _Node:
    ns: int
    count: int | None
    name: str


def _count(nodes: Mapping[Path, _Node], path: Path, divisor: int) -> float | None:
    node = nodes.get(path, _Node(0, 0, ""))
    return None if node.count is None or not path or path[0] in (START_UP, WIND_DOWN) else node.count / divisor


def _ordered(lines: Mapping[Path, Line], path: Path) -> Iterator[Line]:
    """Yield a node and its parts: branches before what lies outside, then those that changed most."""
    yield lines[path]
    inner = [line for line in lines.values() if line.path and line.path[:-1] == path]
    for line in sorted(inner, key=lambda line: (line.is_outside, -abs(line.difference), -max(line.ns), line.path)):
        yield from _ordered(lines, line.path)


def _nodes(side: Side, renamed: Mapping[str, str]) -> dict[Path, _Node]:
    """Return the nodes of the summed trees of a run, by path. renamed: kernels by the names that they have in the other run."""
    sums = side.sums
    nodes: dict[Path, _Node] = {(): _Node(sums.whole_ns, None, "")}
    for branch in BRANCHES:
        nodes[branch,] = _Node(sums.branches[branch], None, branch)
    for branch in (COMPUTING, COMMUNICATION, COPIES):
        for piece in sums.pieces[branch]:
            key = _key(piece)
            path = branch, renamed.get(key, key)
            before = nodes.get(path, _Node(0, 0, key))
            nodes[path] = _Node(before.ns + piece.ns, (before.count or 0) + piece.count, key)
    for branch, ns in ((IDLE, None), (START_UP, sums.start_up_ns), (WIND_DOWN, sums.wind_down_ns)):
        if ns is not None:
            nodes[branch,] = _Node(ns, None, branch)
        for leaf in sums.leaves[branch]:
            nodes[branch, leaf.cause] = _Node(leaf.ns, leaf.gaps, leaf.cause)
            nodes |= {(branch, leaf.cause, name): _Node(ns, None, name) for name, ns in _names(leaf)}
    return nodes


def _key(piece: BusyItem) -> str:
    return " ".join(filter(None, (piece.key, piece.memory)))


def _names(leaf: Leaf) -> Iterator[tuple[str, int]]:
    """Yield the parts of a leaf by name, if any has one; what has none, as others."""
    named = [(name, ns) for name, ns in leaf.names if name and name != OTHERS]
    yield from named
    unnamed_ns = leaf.ns - sum(ns for _, ns in named)
    if named and unnamed_ns:
        yield OTHERS, unnamed_ns


def _processes(side: Side) -> int:
    return len({(tree.profile_id, tree.process_id, tree.window_index) for tree in side.sums.trees})


def _rounded(nodes: Mapping[Path, _Node], divisor: int, processes: int) -> dict[Path, int]:
    """Return the mean of each node in whole ns: parts sum to their node, as they did before. processes: those that start up."""
    inner: dict[Path, list[Path]] = {}
    for path in nodes:
        if path:
            inner.setdefault(path[:-1], []).append(path)
    outside = [path for path in inner[()] if path in ((START_UP,), (WIND_DOWN,))]
    rounded: dict[Path, int] = {(): nearest(nodes[()].ns, divisor)}
    rounded |= {path: nearest(nodes[path].ns, processes) for path in outside}

    def divide(path: Path, by: int, parts: Sequence[Path]) -> None:
        rounded.update(zip(parts, apportioned([nodes[part].ns for part in parts], by, rounded[path]), strict=True))
        for part in parts:
            if part in inner:
                divide(part, by, inner[part])

    divide((), divisor, [path for path in inner[()] if path not in outside])
    for path in outside:
        divide(path, processes, inner.get(path, []))
    return rounded


def renames(base: Side, other: Side) -> dict[str, str]:
    """Return {kernel that only base has: the one that only other has, and that works for the same operators and shapes}.

    Each of the two shares more time with its partner than with any other.
    """
    gone, new = base.issuers.keys() - other.issuers.keys(), other.issuers.keys() - base.issuers.keys()
    by_issuer: dict[tuple[str, str], list[str]] = {}
    for key in sorted(new):
        for issuer in other.issuers[key]:
            by_issuer.setdefault(issuer, []).append(key)
    shared: dict[tuple[str, str], int] = {}
    for key in sorted(gone):
        for issuer, ns in base.issuers[key].items():
            for partner in by_issuer.get(issuer, ()):
                shared[key, partner] = shared.get((key, partner), 0) + min(ns, other.issuers[partner][issuer])
    renamed: dict[str, str] = {}
    for key, partner in sorted(shared, key=lambda pair: (-shared[pair], pair)):
        if key not in renamed and partner not in renamed.values():
            renamed[key] = partner
    return renamed


def scale(found: Difference, side: Side) -> float:
    """Return what a branch of the first run would take in another one if nothing were lost: 1 where each GPU has as much to
    compute as before (weak scaling), else as much less as there are more GPUs (strong scaling): which is nearer."""
    place = found.sides.index(side)
    less = found.sides[0].gpus / side.gpus
    before, after = (next(line.ns[at] for line in found.lines if line.path == (COMPUTING,)) for at in (0, place))
    if not before or not after or less == 1:
        return 1.0
    return 1.0 if abs(log(after / before)) <= abs(log(after / before) - log(less)) else less


def efficiencies(found: Difference) -> list[float]:
    """Return for each run the share of its step in which its GPUs do what the first run's would, in percent."""
    return [100 * found.whole.ns[0] * scale(found, side) / ns if ns else 0.0
            for side, ns in zip(found.sides, found.whole.ns, strict=True)]


def properties(found: Difference) -> list[Property]:
    """Return what two runs should have in common, by the work that was recorded."""
    base, other = found.sides
    issuers = [{issuer for by_issuer in side.issuers.values() for issuer in by_issuer} for side in found.sides]
    operators = [{op for op, _ in those} for those in issuers]
    shapes = [{issuer for issuer in those if issuer[1]} for those in issuers]
    launches = f"launches of kernels{' in a step' if found.per_step else ''}"
    rows = [in_common("operators", *operators), in_common("shapes of operators", *shapes),
            in_common("kernels", {*base.issuers}, {*other.issuers}),
            property_of(launches, _launches(found, 0), _launches(found, 1)),
            property_of("launches without a kernel", f"{base.missing:,}", f"{other.missing:,}"),
            property_of("GPUs of the job", f"{base.gpus:,}", f"{other.gpus:,}")]
    return rows if found.per_step else [*rows, property_of("steady steps", _steps(base), _steps(other))]


def property_of(name: str, base: str | None, other: str | None) -> Property:
    """Return a property that is the same where its texts are."""
    return Property(name, base, other, None if base is None and other is None else base == other)


def in_common(name: str, base: Set[object], other: Set[object]) -> Property:
    """Return what two runs have in common: how many there are in each, and how many of them only there; None where none is."""
    return Property(name, _only(base, other), _only(other, base), base == other if base or other else None)


def _steps(side: Side) -> str:
    return f"{side.steps:,}" if side.steps else "none"


def _launches(found: Difference, place: int) -> str:
    counts = [line.counts[place] or 0 for branch in (COMPUTING, COMMUNICATION) for line in found.below((branch,))]
    return f"{round(sum(counts), 1):,.10g}"


def _only(one: Set[object], other: Set[object]) -> str | None:
    return f"{len(one):,}{f', {len(one - other):,} only here' if one - other else ''}" if one else None
