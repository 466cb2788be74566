"""Sweeps over the starts and ends of intervals: what runs at each moment, in one linear pass over sorted integers.

An edge is one integer: its track, above its time, above its change, so that sorted integers are sorted edges. A change is what
begins (even) or ends (odd): half of it numbers a class of intervals. A pass reads a stretch of edges after another, and so needs
little memory beside the edges. All sums are of integers, and exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nsightlens.columns.arrays import Int

_STRETCH = 1 << 17
"""Edges that are looked at together."""
_BITS, _WHOLE = 63, 52
"""What an edge takes, and what times take at most: sums of them are then whole numbers in a double."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How edges are integers. first: the earliest time, in ns; time_bits and change_bits: what times from it and changes take."""

    first: int
    time_bits: int
    change_bits: int

    def edges(self, track: Int, at: Int, change: Int) -> Int:
        """Return edges as integers."""
        return (self.moments(track, at) << self.change_bits) | change

    def moments(self, track: Int, at: Int) -> Int:
        """Return tracks, above times from the first, as integers: edges without their changes."""
        return (track << self.time_bits) + (at - self.first)

    def place(self, edges: Int) -> Int:
        """Return tracks, above times from the first, of edges."""
        return edges >> self.change_bits

    def on_other_tracks(self, edges: Int, tracks: Int) -> None:
        """Move edges, in place, from each track to that which `tracks` has for it."""
        below = self.time_bits + self.change_bits
        for first in range(0, len(edges), _STRETCH):
            some = edges[first : first + _STRETCH]
            some[:] = (tracks[some >> below] << below) | (some & ((1 << below) - 1))


def packing(first: int, last: int, classes: int, tracks: int) -> Packing | None:
    """Return how edges from `first` to `last` are integers; None where 63 bits are too few."""
    found = Packing(first, max(last - first, 1).bit_length(), max(2 * classes - 1, 1).bit_length())
    fits = found.time_bits <= _WHOLE and found.time_bits + found.change_bits + tracks.bit_length() <= _BITS
    return found if fits else None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some edges in their order: the track, time and change of each, and how long (ns) until the next of its track, else 0."""

    track: Int
    at: Int
    change: Int
    length: Int


def stretches(edges: Int, packing: Packing) -> Iterator[Stretch]:
    """Yield sorted edges, a stretch after another."""
    for first in range(0, len(edges), _STRETCH):
        some = edges[first : first + _STRETCH]
        place = packing.place(edges[first : first + _STRETCH + 1])
        if len(place) == len(some):
            place = np.append(place, place[-1])
        track = place >> packing.time_bits
        length = np.where(track[1:] == track[:-1], np.diff(place), 0)
        at = (place[:-1] & ((1 << packing.time_bits) - 1)) + packing.first
        yield Stretch(track[:-1], at, some & ((1 << packing.change_bits) - 1), length)


class Running:
    """A running sum over the edges of a sweep, carried from stretch to stretch. steps: what each change adds to it."""

    def __init__(self, steps: Int) -> None:
        self._steps = steps
        self._sum = 0

    def cumulative(self, change: Int) -> Int:
        """Return the sum after each of the next changes."""
        sums = np.cumsum(self._steps[change])
        sums += self._sum
        if len(sums):
            self._sum = int(sums[-1])
        return sums


def steps(of_class: Int) -> Int:
    """Return what each change adds, given what a class adds while one of its intervals lasts."""
    return np.stack([of_class, -of_class], axis=1).reshape(-1)
