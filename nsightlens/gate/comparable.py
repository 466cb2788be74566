"""Reasons why the two sides of a check cannot be compared: other GPUs, clocks, ranks, nodes, or other work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from nsightlens.diagnosis.difference import Difference, Side, renames
from nsightlens.gate.recordings import Recording

if TYPE_CHECKING:
    from nsightlens.store.comparison import RunPlace

_SAME = ("GPU", "compute capability", "SMs", "world size", "simulated", "workload.name", "workload.batch_size")
"""What must be the same where both know it."""
_CLOCKS = ("GPU core clock (MHz)", "GPU memory clock (MHz)", "max_sm_clock_mhz", "max_memory_clock_mhz", "power_limit_w")
"""What must be nearly the same: numbers, of which a GPU prints others from time to time."""
_NEAR_PCT = 5
_WORK_PCT, _NAMES_PCT = 50, 10
"""Share of the GPU's time that both sides must spend on the same operators and shapes; by names of kernels alone, which a library
chooses, on the same kernels."""
NODES, WORK = "nodes", "work"
Properties = Mapping[str, Set[str]]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What differs, and how it is on each side. WORK: the percent of each side's time that the other has, too."""

    what: str
    base: str
    candidate: str


def obstacles(
    known: tuple[Properties, Properties], sides: tuple[Sequence[Recording], Sequence[Recording]],
    traced: tuple[Sequence[Recording], Sequence[Recording]], found: Difference | None,
) -> list[Obstacle]:
    """Return what forbids the comparison. known: properties under what timed the recordings of the sides; traced: recordings
    with kernels; found: the difference of their trees, None where a side is a baseline."""
    differ = [Obstacle(name, *(", ".join(sorted(side[name])) for side in known)) for name in (*_SAME, *_CLOCKS)
              if all(name in side for side in known) and not _are_alike(name, known[0][name], known[1][name])]
    return [*differ, *_nodes(sides), *(_work(found) if found else _other_kernels(*map(_kernels, traced)))]


def properties(place: RunPlace) -> dict[str, Properties]:
    """Return the properties of a run that forbid a comparison where they differ, under each tool: name -> values."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in place.store.view("comparability", base=place.run, other=place.run).to_pylist():
        if row["base_value"] and row["property"] in (*_SAME, *_CLOCKS):
            found[row["tool"]][row["property"]] |= {*row["base_value"].split(", ")}
    return {tool: dict(of_tool) for tool, of_tool in found.items()}


def merged(every: Iterable[Mapping[str, Properties]]) -> dict[str, Properties]:
    """Return properties of several runs, under each tool, as those of one side."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one in every:
        for tool, of_tool in one.items():
            for name, values in of_tool.items():
                found[tool][name] |= values
    return {tool: dict(of_tool) for tool, of_tool in found.items()}


def _are_alike(name: str, base: Set[str], candidate: Set[str]) -> bool:
    if name in _SAME:
        return base == candidate
    try:
        middles = [median(map(float, values)) for values in (base, candidate)]
    except ValueError:
        return base == candidate
    return 100 * abs(middles[1] - middles[0]) <= _NEAR_PCT * middles[0]


def _nodes(sides: tuple[Sequence[Recording], Sequence[Recording]]) -> list[Obstacle]:
    """Return that no node ran both sides although some ran several recordings: how nodes differ is then in the difference.

    Where each recording has a node of its own, as containers do, they vary as recordings do.
    """
    nodes = [[one.node for one in side] for side in sides]
    several = any(len(side) > 1 for side in nodes)
    repeats = any(len({*side}) < len(side) for side in nodes)
    if None in nodes[0] or None in nodes[1] or {*nodes[0]} & {*nodes[1]} or not (several and repeats):
        return []
    return [Obstacle(NODES, *(", ".join(sorted({str(node) for node in side})) for side in nodes))]


def _work(found: Difference) -> list[Obstacle]:
    """Return that the two sides do different work, by what their GPUs spend time on."""
    base, candidate = found.sides[0], found.sides[-1]
    work = [_by_operator(side) for side in (base, candidate)]
    if all(work):
        return _other(work[0], work[1], _WORK_PCT)
    renamed = renames(base, candidate)
    return _other_kernels({renamed.get(name, name): ns for name, ns in _by_kernel(base).items()}, _by_kernel(candidate))


def _kernels(side: Iterable[Recording]) -> Mapping[str, float]:
    """Return the ns of each kernel in the recordings of a side."""
    found: dict[str, float] = defaultdict(float)
    for one in side:
        for name, ns in one.kernels.items():
            found[name] += ns
    return found


def _other_kernels(base: Mapping[str, float], candidate: Mapping[str, float]) -> list[Obstacle]:
    return _other(base, candidate, _NAMES_PCT)


def _other(base: Mapping[Any, float], candidate: Mapping[Any, float], least: float) -> list[Obstacle]:
    """Return that too little of the GPU's time is in what both have. least: percent of either side."""
    if not base or not candidate:
        return []
    both = base.keys() & candidate.keys()
    shares = [100 * sum(ns for name, ns in side.items() if name in both) / sum(side.values()) for side in (base, candidate)]
    return [Obstacle(WORK, *(f"{pct:.0f} %" for pct in shares))] if max(shares) < least else []


def _by_operator(side: Side) -> Mapping[object, int]:
    """Return the ns of each operator with its shapes, where they were recorded."""
    found: dict[object, int] = defaultdict(int)
    for issuers in side.issuers.values():
        for issuer, ns in issuers.items():
            if issuer[1]:
                found[issuer] += ns
    return found


def _by_kernel(side: Side) -> Mapping[str, int]:
    return {piece.key: piece.ns for pieces in side.sums.pieces.values() for piece in pieces if piece.family != "memory"}
