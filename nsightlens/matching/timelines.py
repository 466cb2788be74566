"""Which launch in one tool's recording of a process is which in another tool's: the pairs of grade `launch`. Numbers only.

Two executions of one job launch the same kernels in the same order, more or less. Launches are compared segment by segment
(a training step, the stretch between two steps, or all where a side knows no steps), each as a sequence of tokens: equal
token = same kernel key and launch configuration. Tools may count steps from 0 and from 1: what steps launch shows it, and where
it does not, though the numbers of both would then be the same, nothing within steps is certain. A launch call whose kernel was
not recorded keeps its place as a HOLE. Pairs are certain in the sense of sequence_alignment.py; a segment that does not fit (less
than half of its shorter side finds a partner) gives none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nsightlens.columns.arrays import Int, numbered
from nsightlens.matching.sequence_alignment import HOLE, certain_pairs

_FIT = 0.5
"""Share of the shorter side of a segment that must find its partner, else the two are not the same."""
_ALIKE = 0.02
"""Share of launches by which other numbers must fit better, to be those of the steps."""
_NOWHERE = -2
"""A segment that no recording has."""


@dataclass(frozen=True, slots=True)
class ToolLaunches:
    """One tool's launches of one process in launch order, HOLEs included. Arrays of equal length.

    token: what was launched; row: a number of the caller's for the launch; segment: a number per segment, the same for
    both tools.
    """

    token: Int
    row: Int
    segment: Int


@dataclass(frozen=True, slots=True)
class TimelinePairs:
    """The pairs (row of one, row of the other), the segment of each, and the segments that were too long to be looked at.

    One of a pair may be a HOLE: what one tool recorded stands where the other knows of a launch only.
    """

    pairs: Int
    segment: Int
    too_long: tuple[int, ...]


def renumbered(one: ToolLaunches, other: ToolLaunches) -> ToolLaunches:
    """Return the other recording with its segments numbered as those of `one`, where it counts steps from one more or less; with
    no segments where it may be so."""
    shared = {shift: _shared(one, other, shift) for shift in (0, -1, 1)}
    usual = shared.pop(0)
    shift, best = max(shared.items(), key=lambda item: item[1])
    if best.alike <= usual.alike:
        return other
    if best.other_share < usual.other_share - _ALIKE:
        return replace(other, segment=_moved(other.segment, shift))
    mine, theirs = (np.unique(side.segment[(side.segment >= 0) & (side.segment % 2 == 0)]) for side in (one, other))
    is_shifted = np.array_equal(mine, _moved(theirs, shift))
    return replace(other, segment=np.full_like(other.segment, _NOWHERE)) if is_shifted else other


class _Shared(NamedTuple):
    """Launches of steps that pair by number: how many are alike, and the share of those that are not."""

    alike: int
    other_share: float


def _shared(one: ToolLaunches, other: ToolLaunches, shift: int) -> _Shared:
    sides = (one.segment, _moved(other.segment, shift))
    both = np.intersect1d(sides[0], sides[1])
    both = both[(both >= 0) & (both % 2 == 0)]
    kept = [np.isin(segment, both) & (side.token != HOLE) for side, segment in zip((one, other), sides, strict=True)]
    key = numbered(np.concatenate([segment[mask] for segment, mask in zip(sides, kept, strict=True)]),
                   np.concatenate([side.token[mask] for side, mask in zip((one, other), kept, strict=True)]))
    first = int(kept[0].sum())
    counts = [np.bincount(part, minlength=int(key.max(initial=-1)) + 1) for part in (key[:first], key[first:])]
    alike, most = int(np.minimum(*counts).sum()), max(int(mask.sum()) for mask in kept)
    return _Shared(alike, 1 - alike / most if most else 0.0)


def _moved(segment: Int, steps: int) -> Int:
    """Return the segments with the numbers of their steps raised."""
    return np.where(segment >= 0, segment + 2 * steps, segment)


def pairs(one: ToolLaunches, other: ToolLaunches) -> TimelinePairs:
    """Return the certain pairs of two recordings of one process."""
    found: list[Int] = [np.zeros((0, 2), dtype=np.int64)]
    segments: list[Int] = [np.zeros(0, dtype=np.int64)]
    too_long = []
    whole = len(np.unique(np.append(one.segment, other.segment))) == 1
    for segment in np.intersect1d(one.segment, other.segment).tolist():
        mine, theirs = np.flatnonzero(one.segment == segment), np.flatnonzero(other.segment == segment)
        placed = certain_pairs(one.token[mine], other.token[theirs], whole)
        if placed is None:
            too_long.append(segment)
            continue
        recorded = min(int((side.token[places] != HOLE).sum()) for side, places in ((one, mine), (other, theirs)))
        both = (one.token[mine[placed[:, 0]]] != HOLE) & (other.token[theirs[placed[:, 1]]] != HOLE)
        if both.sum() >= _FIT * recorded:
            found.append(np.stack([one.row[mine[placed[:, 0]]], other.row[theirs[placed[:, 1]]]], axis=1))
            segments.append(np.full(len(placed), segment, dtype=np.int64))
    return TimelinePairs(np.concatenate(found), np.concatenate(segments), tuple(too_long))


def with_holes(time: Int, row: Int, hole_time: Int) -> Int:
    """Return the order of launch of items (in order, at `time`, MISSING never) and holes: places, items first, then holes.

    Items keep their order even where their times do not rise.
    """
    risen = np.maximum.accumulate(time) if len(time) else time
    everything = np.concatenate([risen, hole_time])
    rank = np.concatenate([row, np.full(len(hole_time), np.iinfo(np.int64).max)])
    return np.lexsort((rank, everything))


def segments(step: Int, missing: int) -> Int:
    """Return a number per launch: twice the step's number in a step, one more after it (-1: before the first), all in order.

    `step`: the step's number, or `missing`. Without any step all are of segment 0.
    """
    known = step != missing
    if not known.any():
        return np.zeros(len(step), dtype=np.int64)
    last = np.maximum.accumulate(np.where(known, np.arange(len(step)), -1))
    before = last < 0
    found: Int = 2 * step[np.maximum(last, 0)] + np.where(known, 0, 1)
    found[before] = -1
    return found
