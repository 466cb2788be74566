"""Which forward operator a backward operator belongs to: integer arrays only, n log n.

PyTorch counts sequence numbers per thread, one for each node of the autograd graph. A backward operator carries the number of
its node and, in the profiler's trace, the number (the profiler's own, not the system's) of the thread of the forward pass.
An operator and those that it calls carry the same number until the node is made: the forward operator is the one
that began last before, which is the one that the profiler draws its fwdbwd arrow from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nsightlens.attribution.intervals import each_once
from nsightlens.columns.arrays import Int, Mask, Places, numbered


@dataclass(frozen=True, slots=True)
class Operators:
    """Operators with a sequence number. row: what to call each. process: whose sequence numbers they are.

    thread: forward operators: the thread they ran on; backward: the profiler's number of the forward thread, -1: not recorded.
    """

    row: Places
    process: Places
    thread: npt.NDArray[Any]
    sequence: Int
    start: Int

    def take(self, which: Mask | Int) -> Operators:
        """Return some of them."""
        return Operators(self.row[which], self.process[which], self.thread[which], self.sequence[which], self.start[which])


def forward_of(backward: Operators, forward: Operators) -> Places:
    """Return for each backward operator the row of its forward operator, -1 where that is not known.

    The system's thread behind a profiler's number is the one that shares most sequence numbers with it. Where no number was
    recorded, or two threads share as many, a link is made only where one thread alone has that sequence number.
    """
    found = np.full(len(backward.row), -1, dtype=np.int32)
    if not len(backward.row) or not len(forward.row):
        return found
    node = numbered(np.concatenate([backward.process, forward.process]), np.concatenate([backward.sequence, forward.sequence]))
    back, fore = node[: len(backward.row)], node[len(backward.row) :]
    is_asked = np.zeros(int(node.max()) + 1, dtype=np.bool_)
    is_asked[back] = True
    kept = is_asked[fore]
    fore, forward = fore[kept], forward.take(kept)
    number, system = _candidates(forward, back, fore)
    thread = _threads_of_numbers(backward, number, system)
    known = np.flatnonzero(thread >= 0)
    every = numbered(np.concatenate([thread[known], forward.thread]), np.concatenate([back[known], fore]))
    found[known] = _latest(every[: len(known)], backward.start[known], every[len(known) :], forward)
    return found


def _candidates(forward: Operators, back: Places, fore: Places) -> tuple[Int, Int]:
    """Return pairs: a backward operator, and a thread that has forward operators of its process and sequence number."""
    pairs = each_once((fore.astype(np.int64) << 32) | forward.thread)
    node, thread = pairs >> 32, pairs & 0xFFFFFFFF
    low, high = np.searchsorted(node, back, side="left"), np.searchsorted(node, back, side="right")
    number = np.repeat(np.arange(len(back)), high - low)
    before = np.cumsum(high - low) - (high - low)
    return number, thread[np.arange(len(number)) - np.repeat(before, high - low) + np.repeat(low, high - low)]


def _threads_of_numbers(backward: Operators, number: Int, thread: Int) -> Int:
    """Return the forward thread of each backward operator, -1 where it is not known."""
    named = numbered(backward.process, backward.thread).astype(np.int64)
    found = np.full(len(backward.row), -1, dtype=np.int64)
    alone = np.bincount(number, minlength=len(found))[number] == 1
    found[number[alone]] = thread[alone]
    votes, counts = np.unique((named[number] << 32) | thread, return_counts=True)
    owner, order = votes >> 32, np.lexsort((counts, votes >> 32))
    owner, counts, choice = owner[order], counts[order], (votes & 0xFFFFFFFF)[order]
    last = np.append(owner[1:] != owner[:-1], True) if len(owner) else np.zeros(0, dtype=np.bool_)
    tied = np.append(False, (owner[1:] == owner[:-1]) & (counts[1:] == counts[:-1])) if len(owner) else last
    best = np.full(int(named.max(initial=-1)) + 1, -1, dtype=np.int64)
    best[owner[last & ~tied]] = choice[last & ~tied]
    chosen = np.where(backward.thread >= 0, best[named], -1)
    return np.where(chosen >= 0, chosen, found)


def _latest(back: Places, back_start: Int, fore: Places, forward: Operators) -> Places:
    """Return for each backward operator the row of the forward operator of the same code that began last before it."""
    code, start = np.concatenate([back, fore]), np.concatenate([back_start, forward.start])
    is_forward = np.arange(len(code)) >= len(back)
    order = np.lexsort((~is_forward, start, code))
    at = np.maximum.accumulate(np.where(is_forward[order], np.arange(len(order)), -1))
    asked = np.flatnonzero(~is_forward[order])
    at, number = at[asked], order[asked]
    linked = (at >= 0) & (code[order[at]] == code[number])
    found = np.full(len(back), -1, dtype=np.int32)
    found[number[linked]] = forward.row[order[at[linked]] - len(back)]
    return found

