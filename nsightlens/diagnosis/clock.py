"""Whether the GPU slowed down in the window: nearly all kernels take longer at its end than at its beginning."""

from __future__ import annotations

import numpy as np

from nsightlens.columns.arrays import Int, Mask
from nsightlens.diagnosis.profile_arrays import COMPUTING, KERNEL, GpuWork
from nsightlens.diagnosis.window import Window

_FEWEST, _KINDS = 3, 2
"""Launches of a kind in a third, and kinds, from which on thirds are compared: one kind alone may have got more work."""
_SLOWER, _MOST = 1.05, 3.0
"""How many times as long kernels take: below, GPUs vary so; above, no clock falls as far."""
_EVEN = 0.8
"""Share of the kernel time that must be slower: a clock slows all kernels, other data only some."""
_SAME = 1.02


def slowed_ns(work: GpuWork, window: Window) -> int:
    """Return by how much longer the kernels of the window's last third took than those of its first, in ns; 0 if it did not slow.

    A kind is a kernel by its key and number of blocks; its launches are compared by their medians.
    """
    third = max(1, window.length // 3)
    kernels = (work.kind == KERNEL) & (work.branch == COMPUTING) & (work.start >= window.start) & (work.end <= window.end)
    kinds, first, _ = _medians(work, kernels & (work.start < window.start + third))
    other, last, counts = _medians(work, kernels & (work.start >= window.end - third))
    _, of_first, of_last = np.intersect1d(kinds, other, return_indices=True)
    before, after, count = first[of_first], last[of_last], counts[of_last]
    usual, taken = float((before * count).sum()), float((after * count).sum())
    slower = float((after * count)[after > _SAME * before].sum())
    slowed = len(of_first) >= _KINDS and _SLOWER * usual < taken <= _MOST * usual and slower > _EVEN * taken
    return round(taken - usual) if slowed else 0


def _medians(work: GpuWork, which: Mask) -> tuple[Int, np.ndarray[tuple[int], np.dtype[np.float64]], Int]:
    """Return kinds, ascending, the median length of each, and how many launches it has; only those with enough of them."""
    places = np.flatnonzero(which)
    length, kind = work.end[places] - work.start[places], _kinds(work.name[places], work.blocks[places])
    order = np.lexsort((length, kind))
    length, kind = length[order], kind[order]
    kinds, begin, count = np.unique(kind, return_index=True, return_counts=True)
    middle = (length[begin + (count - 1) // 2] + length[begin + count // 2]) / 2 if len(kinds) else np.empty(0)
    enough = count >= _FEWEST
    return kinds[enough], middle[enough], count[enough]


def _kinds(name: Int, blocks: Int) -> Int:
    """Return a number for each kernel and number of blocks."""
    return (name << 31) | np.clip(blocks, 0, (1 << 31) - 1)
