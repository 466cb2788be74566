"""Sweeps over packed edges: exact sums at each moment, whatever stretches they are read in."""

from __future__ import annotations

import numpy as np
import pytest

from nsightlens.columns.arrays import Int
from nsightlens.statistics import sweeps
from nsightlens.statistics.sweeps import Packing, Running, packing, steps, stretches


def _edges(packed: Packing, rows: list[tuple[int, int, int, int]]) -> Int:
    """Return the sorted edges of (track, start, end, class)."""
    track, start, end, class_ = np.array(rows, dtype=np.int64).T
    return np.sort(np.concatenate([packed.edges(track, start, 2 * class_), packed.edges(track, end, 2 * class_ + 1)]))


@pytest.mark.parametrize("stretch", [1, 2, 3, 100])
def test_what_runs_at_each_moment(stretch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "_STRETCH", stretch)
    packed = packing(-5, 100, classes=2, tracks=2)
    assert packed is not None
    edges = _edges(packed, [(0, -5, 10, 0), (0, 3, 20, 1), (0, 30, 40, 0), (1, 0, 100, 1)])
    first, second = Running(steps(np.array([1, 0]))), Running(steps(np.array([0, 1])))
    found = []
    for some in stretches(edges, packed):
        counts = zip(some.track, some.at, some.length, first.cumulative(some.change), second.cumulative(some.change), strict=True)
        found += [tuple(map(int, row)) for row in counts]
    assert found == [
        (0, -5, 8, 1, 0), (0, 3, 7, 1, 1), (0, 10, 10, 0, 1), (0, 20, 10, 0, 0), (0, 30, 10, 1, 0), (0, 40, 0, 0, 0),
        (1, 0, 100, 0, 1), (1, 100, 0, 0, 0)]


def test_edges_move_to_other_tracks() -> None:
    packed = packing(0, 50, classes=1, tracks=3)
    assert packed is not None
    edges = _edges(packed, [(0, 1, 2, 0), (1, 3, 4, 0), (2, 5, 50, 0)])
    packed.on_other_tracks(edges, np.array([1, 0, 0]))
    assert edges.tolist() == [*_edges(packed, [(1, 1, 2, 0)]).tolist(), *_edges(packed, [(0, 3, 4, 0), (0, 5, 50, 0)]).tolist()]


@pytest.mark.parametrize(("last", "classes", "tracks"), [(1 << 53, 1, 1), (1 << 50, 1 << 12, 2), (1 << 50, 2, 1 << 12)])
def test_what_63_bits_cannot_hold_has_no_packing(last: int, classes: int, tracks: int) -> None:
    assert packing(0, last, classes, tracks) is None
    assert packing(0, 1 << 40, 2, 2) is not None


def test_63_bits_are_used_to_the_last() -> None:
    packed = packing(-7, (1 << 40) - 8, classes=1 << 10, tracks=(1 << 12) - 1)
    assert packed is not None
    last = [np.array([value]) for value in ((1 << 12) - 1, (1 << 40) - 8, (1 << 11) - 1)]
    assert packed.edges(*last).tolist() == [(1 << 63) - 1]
    assert packing(-7, (1 << 40) - 8, classes=1 << 10, tracks=1 << 12) is None
    assert packing(-7, (1 << 40) - 8, classes=(1 << 10) + 1, tracks=(1 << 12) - 1) is None
    assert packing(-7, (1 << 40) - 7, classes=1 << 10, tracks=(1 << 12) - 1) is None


def test_times_take_52_bits_at_most() -> None:
    assert packing(0, (1 << 52) - 1, classes=1, tracks=1) is not None
    assert packing(0, 1 << 52, classes=1, tracks=1) is None
