"""Sets of intervals, against a count of every ns; and at the ends of what int64 holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsightlens.columns.arrays import MISSING, Int
from nsightlens.intervals.coverage import coverage, gaps, union
from nsightlens.intervals.disjoint import cut, non_overlapping_layers, outermost
from nsightlens.intervals.intersection import difference, holding, intersection
from nsightlens.intervals.order import order, reached

LAST = 24
Rows = list[tuple[int, int, int]]
"""(track, start, length)"""
INTERVALS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 15), st.integers(-2, 8)), max_size=12)
EARLIEST, LATEST = MISSING + 1, np.iinfo(np.int64).max


def _columns(rows: Rows) -> tuple[Int, Int, Int]:
    """Return starts, ends and tracks."""
    track, start, length = np.array(rows, np.int64).reshape(-1, 3).T
    return start, start + length, track


def _held(start: Int, end: Int) -> set[int]:
    """Return every ns that an interval holds, counted one by one."""
    return {ns for ns in range(-LAST, LAST) if any(begin <= ns < stop for begin, stop in zip(start, end, strict=True))}


def _apart(rows: Rows) -> tuple[Int, Int]:
    """Return intervals that do not overlap, sorted; some hold no instant."""
    start, end, _ = _columns(rows)
    chosen = outermost(start, end)
    return start[chosen], np.maximum(start, end)[chosen]


@given(INTERVALS)
def test_a_union_holds_what_its_intervals_hold_in_as_few_as_can_be(rows: Rows) -> None:
    start, end, track = _columns(rows)
    found = union(start, end, track)
    for number in range(3):
        mine, own = track == number, found.track == number
        assert _held(found.start[own], found.end[own]) == _held(start[mine], end[mine])
        assert np.all(found.start[own][1:] > found.end[own][:-1]) and np.all(found.start[own] < found.end[own])
    assert np.all(np.diff(found.track) >= 0)


@given(INTERVALS)
def test_coverage_counts_every_ns_once(rows: Rows) -> None:
    start, end, _ = _columns(rows)
    assert coverage(start, end) == len(_held(start, end))


@given(INTERVALS)
def test_gaps_are_what_nothing_holds_between_the_first_start_and_the_last(rows: Rows) -> None:
    start, end, track = _columns(rows)
    found = gaps(start, end, track)
    assert np.all(found.start < found.end) and np.array_equal(found.end, start[found.until])
    for number in range(3):
        mine, own = np.flatnonzero(track == number), track[found.until] == number
        if len(mine):
            idle = set(range(start[mine].min(), start[mine].max())) - _held(start[mine], end[mine])
            assert _held(found.start[own], found.end[own]) == idle
            assert int((found.end - found.start)[own].sum()) == len(idle), "no ns lies in two gaps"
        inside = [(begin, at) for begin, stop in zip(found.start[own], found.end[own], strict=True) for at in start[mine]
                  if begin < at < stop]
        assert not inside, "what begins ends a gap, whether it holds an instant or not"


def test_a_gap_ends_with_the_first_of_those_that_begin_then_in_their_order() -> None:
    start, end = np.array([30, 0, 30, 12, 30]), np.array([40, 10, 31, 12, 35])
    assert [column.tolist() for column in gaps(start, end)] == [[10, 12], [12, 30], [3, 0]]


def test_a_long_interval_hides_the_gaps_behind_short_ones() -> None:
    start, end = np.array([0, 10, 30, 110]), np.array([100, 20, 40, 120])
    assert [column.tolist() for column in gaps(start, end)] == [[100], [110], [3]]


@given(INTERVALS)
def test_outermost_intervals_begin_when_none_before_them_lasts(rows: Rows) -> None:
    start, end, _ = _columns(rows)
    before: list[tuple[int, int]] = []
    expected = []
    for place in sorted(range(len(rows)), key=lambda place: (start[place], -end[place], place)):
        if not any(begin <= start[place] < stop for begin, stop in before):
            expected.append(place)
        before.append((start[place], end[place]))
    found = outermost(start, end)
    assert found.tolist() == expected
    lasting = found[start[found] < end[found]]
    assert np.all(end[lasting][:-1] <= start[lasting][1:])


@given(INTERVALS)
def test_cut_leaves_each_interval_what_none_before_it_reaches(rows: Rows) -> None:
    start, end, track = _columns(sorted(rows, key=lambda row: row[:2]))
    begin = cut(start, end, track)
    assert np.all(begin >= start) and np.all(begin <= np.maximum(start, end))
    for number in range(3):
        mine = np.flatnonzero(track == number)
        assert int(np.maximum(end - begin, 0)[mine].sum()) == len(_held(start[mine], end[mine])), "each ns is one's own"
        assert _held(begin[mine], end[mine]) == _held(start[mine], end[mine])


@given(INTERVALS)
def test_layers_hold_each_interval_once_and_none_overlaps_another(rows: Rows) -> None:
    start, end, _ = _columns(sorted((0, start, abs(length)) for _, start, length in rows))
    found = non_overlapping_layers(start, end)
    assert sorted(np.concatenate(found).tolist()) == list(range(len(rows)))
    assert all(np.all(end[layer][:-1] <= start[layer][1:]) for layer in found)
    deepest = max((sum(begin <= ns < stop for begin, stop in zip(start, end, strict=True)) for ns in range(LAST)), default=0)
    assert deepest <= len(found)


@given(INTERVALS, INTERVALS)
def test_intersection_and_difference_share_out_every_ns(rows: Rows, others: Rows) -> None:
    start, end, _ = _columns(rows)
    other_start, other_end = _apart(others)
    shared, rest = intersection(start, end, other_start, other_end), difference(start, end, other_start, other_end)
    expected = [(place, other, ns) for place in range(len(rows)) for other in range(len(other_start)) for ns in range(LAST)
                if start[place] <= ns < end[place] and other_start[other] <= ns < other_end[other]]
    counted = [(place, other, ns) for place, other, begin, stop in zip(*(column.tolist() for column in shared), strict=True)
               for ns in range(begin, stop)]
    assert counted == expected and np.all(shared.start < shared.end)
    for place in range(len(rows)):
        own = rest.place == place
        assert _held(rest.start[own], rest.end[own]) == _held(start[[place]], end[[place]]) - _held(other_start, other_end)
        assert np.all(rest.start[own] < rest.end[own]) and np.all(rest.end[own][:-1] < rest.start[own][1:])
    assert np.all(np.diff(rest.place) >= 0)


@given(INTERVALS, st.lists(st.integers(-3, LAST), max_size=8))
def test_holding_names_the_interval_of_each_time(rows: Rows, times: list[int]) -> None:
    start, end = _apart(rows)
    expected = [next((place for place in range(len(start)) if start[place] <= time < end[place]), -1) for time in times]
    assert holding(np.array(times, np.int64), start, end).tolist() == expected


@given(INTERVALS)
def test_sorted_intervals_are_left_as_they_lie(rows: Rows) -> None:
    start, end, track = _columns(rows)
    for ends, key in ((None, [(t, s) for s, _, t in zip(start, end, track, strict=True)]),
                      (end, [(t, s, -e) for s, e, t in zip(start, end, track, strict=True)])):
        by_key = sorted(range(len(rows)), key=key.__getitem__)
        places = order(start, track, ends)
        assert (places is None) == (key == sorted(key))
        assert ([*range(len(rows))] if places is None else places.tolist()) == by_key


def test_times_at_both_ends_of_int64() -> None:
    start, end = np.array([EARLIEST, LATEST - 2, 0]), np.array([EARLIEST + 5, LATEST, 7])
    assert coverage(start, end) == 14
    assert coverage(np.array([EARLIEST]), np.array([LATEST])) == 2**64 - 2, "more than int64 holds"
    assert [column.tolist() for column in gaps(start, end)] == [[EARLIEST + 5, 7], [0, LATEST - 2], [2, 1]]
    assert outermost(start, end).tolist() == [0, 2, 1]
    assert reached(start, end, np.zeros(3, np.int64)).tolist() == [MISSING, EARLIEST + 5, LATEST]
    everything = np.array([EARLIEST]), np.array([LATEST])
    assert [column.tolist() for column in difference(*everything, np.array([0]), np.array([7]))] == [
        [0, 0], [EARLIEST, 7], [0, LATEST]]
    assert holding(np.array([EARLIEST, 3, LATEST]), *everything).tolist() == [0, 0, -1]


@pytest.mark.parametrize("track", [None, np.zeros(0, np.int64)])
def test_nothing_has_nothing(track: Int | None) -> None:
    none = np.zeros(0, np.int64)
    assert [len(column) for column in (*union(none, none, track), *gaps(none, none, track))] == [0] * 6
    assert coverage(none, none) == 0 and not len(outermost(none, none))
    assert not len(intersection(none, none, none, none).place) and not len(difference(none, none, none, none).place)
    assert holding(np.array([3]), none, none).tolist() == [-1]
