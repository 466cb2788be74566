"""The rows of the view _gpu_bins for one large profile: how many ns each track works in each of equal bins of its time."""

from __future__ import annotations

import numpy as np

from nsightlens.columns.arrays import Int, Mask
from nsightlens.statistics.sweeps import Packing, Stretch

BINS = 40
"""The default of the view's parameter."""


class GpuBins:
    """How long each track works in each of equal bins of its time."""

    def __init__(self, edges: Int, packing: Packing, counts: Int) -> None:
        """Place the bins between the first and the last edge of each track. counts: how much work each track has."""
        self._packing = packing
        ends = 2 * np.cumsum(counts)
        there = np.flatnonzero(counts)
        first, last = (packing.place(edges[at]) for at in (ends[there] - 2 * counts[there], ends[there] - 1))
        lasting = last > first
        self._track, first, last = there[lasting], first[lasting], last[lasting]
        length = -(-(last - first) // BINS)
        bounds = np.minimum(first[:, None] + np.arange(BINS + 1) * length[:, None], last[:, None])
        self._bounds = bounds.reshape(-1)
        self._before = np.zeros(len(self._bounds), dtype=np.int64)
        self._sum = 0

    def add(self, some: Stretch, busy: Mask) -> None:
        """Take in the next edges. busy: whether the track works after each of them."""
        place = (some.track << self._packing.time_bits) + some.at - self._packing.first
        used = np.where(busy, some.length, 0)
        before = self._sum + np.cumsum(used) - used
        self._sum += int(used.sum())
        bounds = self._bounds[np.searchsorted(self._bounds, place[0]) :]
        at = np.searchsorted(place, bounds, side="right") - 1
        # bounds beyond this stretch get a better answer from a later one
        self._before[len(self._bounds) - len(bounds) :] = before[at] + np.where(busy[at], bounds - place[at], 0)

    def rows(self) -> tuple[Int, Int, Int, Int, Int]:
        """Return track, number, start, length and work of each bin."""
        bounds, before = (values.reshape(-1, BINS + 1) for values in (self._bounds, self._before))
        length, work = np.diff(bounds), np.diff(before)
        track, number = np.nonzero(length > 0)
        start = (bounds[track, number] & ((1 << self._packing.time_bits) - 1)) + self._packing.first
        return self._track[track], number, start, length[track, number], work[track, number]
