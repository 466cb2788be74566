"""Launches of two tools, segment by segment: what must fit for a segment to count, holes, and segments of steps."""

from __future__ import annotations

import numpy as np
import pytest

from nsightlens.matching import timelines
from nsightlens.matching.sequence_alignment import HOLE
from nsightlens.matching.timelines import Found, Recording

MISSING = -1


def recording(text: str, segments: str | None = None, first_row: int = 0) -> Recording:
    """Return the launches that letters name; a dot is a launch whose kernel was not recorded."""
    token = np.array([HOLE if letter == "." else ord(letter) for letter in text], dtype=np.int64)
    segment = np.array([int(letter) for letter in segments or "0" * len(text)], dtype=np.int64)
    return Recording(token, np.arange(first_row, first_row + len(text), dtype=np.int64), segment)


def rows(found: Found) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in found.pairs]


@pytest.mark.parametrize(("one", "other", "expected"), [
    ("abc", "abx", [(0, 100), (1, 101)]),
    ("ab", "ax", []),                     # as much lacks a partner as has one: nothing is certain, whatever comes first
    ("ba", "xa", []),
    ("abc", "axy", []),                   # a third
    ("abcd", "a", [(0, 100)]),            # the shorter side counts
    ("ab.", "a..x", []),                  # what was not recorded is no partner: 0 of 2 that are certain, however they stand
    ("", "abc", []),
])
def test_a_segment_counts_where_half_of_it_fits(one: str, other: str, expected: list[tuple[int, int]]) -> None:
    found = timelines.pairs(recording(one), recording(other, first_row=100))
    recorded = [(a, b) for a, b in rows(found) if "." not in (one[a], other[b - 100])]
    assert recorded == expected


def test_each_segment_is_matched_alone() -> None:
    found = timelines.pairs(recording("abxycd", "001122"), recording("abuvcd", "001122", first_row=100))
    assert rows(found) == [(0, 100), (1, 101), (4, 104), (5, 105)]
    assert found.segment.tolist() == [0, 0, 2, 2] and found.too_long == ()


def test_a_segment_of_one_side_only_gives_none() -> None:
    assert rows(timelines.pairs(recording("ab", "12"), recording("ab", "23", first_row=100))) == []


def test_holes_stand_where_they_were_launched() -> None:
    order = timelines.with_holes(np.array([10, 20, 30]), np.array([5, 6, 7]), np.array([0, 20, 40]))
    assert order.tolist() == [3, 0, 1, 4, 2, 5]  # at the same time the recorded one comes first
    order = timelines.with_holes(np.array([30, 10, 40]), np.array([5, 6, 7]), np.array([35]))
    assert order.tolist() == [0, 1, 3, 2]  # items keep their order where their times do not rise
    assert timelines.with_holes(np.zeros(0, np.int64), np.zeros(0, np.int64), np.array([3, 1])).tolist() == [1, 0]


@pytest.mark.parametrize(("steps", "expected"), [
    ([MISSING, 3, 3, MISSING, 4], [-1, 6, 6, 7, 8]),
    ([0, MISSING, MISSING, 1], [0, 1, 1, 2]),
    ([MISSING, MISSING], [0, 0]),
    ([], []),
])
def test_a_segment_is_a_step_or_what_follows_it(steps: list[int], expected: list[int]) -> None:
    assert timelines.segments(np.array(steps, dtype=np.int64), MISSING).tolist() == expected
