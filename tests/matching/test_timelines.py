"""Launches of two tools, segment by segment: what must fit for a segment to count, holes, and segments of steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nsightlens.matching import timelines
from nsightlens.matching.sequence_alignment import HOLE
from nsightlens.matching.timelines import TimelinePairs, ToolLaunches

MISSING = -1


def recording(text: str, segments: str | None = None, first_row: int = 0) -> ToolLaunches:
    """Return the launches that letters name; a dot is a launch whose kernel was not recorded."""
    token = np.array([HOLE if letter == "." else ord(letter) for letter in text], dtype=np.int64)
    segment = np.array([int(letter) for letter in segments or "0" * len(text)], dtype=np.int64)
    return ToolLaunches(token, np.arange(first_row, first_row + len(text), dtype=np.int64), segment)


def rows(found: TimelinePairs) -> list[tuple[int, int]]:
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


def stepped(works: list[str], first: int, first_row: int = 0) -> ToolLaunches:
    """Return steps with these launches, the first of them with this number."""
    text = "".join(works)
    step = np.repeat(np.arange(first, first + len(works)), [len(work) for work in works])
    return replace(recording(text, first_row=first_row), segment=timelines.segments(step, MISSING))


WARM_UP = ["wwxab", "xab", "ab", "ab", "ab"]


@pytest.mark.parametrize(("one", "other", "whole"), [
    (stepped(WARM_UP, 0), stepped(WARM_UP, 1, 100), True),
    (stepped(WARM_UP, 1), stepped(WARM_UP, 0, 100), True),
    (stepped(WARM_UP, 3), stepped(WARM_UP, 3, 100), True),
    (stepped(["ab"] * 5, 0), stepped(["ab"] * 5, 0, 100), True),
    (stepped(["ab"] * 5, 0), stepped(["ab"] * 5, 1, 100), False),
    (stepped(["ab"] * 5, 1), stepped(["ab"] * 5, 0, 100), False),
])
def test_steps_that_are_counted_from_zero_and_from_one(one: ToolLaunches, other: ToolLaunches, whole: bool) -> None:
    """What they launch shows it; where all launch the same, the numbers alone would pair each with the next: none is certain."""
    found = timelines.pairs(one, timelines.renumbered(one, other))
    assert rows(found) == ([(row, 100 + row) for row in range(len(one.row))] if whole else [])


def test_a_part_of_the_steps_keeps_its_numbers() -> None:
    """A trace of steps 2 to 4 of ten that are alike; and the same whose launches vary, of which some were lost."""
    ten, part = stepped(["ab"] * 10, 0), stepped(["ab"] * 3, 2, 100)
    assert rows(timelines.pairs(ten, timelines.renumbered(ten, part))) == [(4 + i, 100 + i) for i in range(6)]
    works = ["a" * (1 + step % 3) + "bcd" + "e" * (step % 4) for step in range(10)]
    ten, part = stepped(works, 0), stepped([works[2], works[3][:-1], works[4]], 2, 100)
    first = len(works[0]) + len(works[1])
    assert rows(timelines.pairs(ten, timelines.renumbered(ten, part)))[:4] == [(first + i, 100 + i) for i in range(4)]
    moved = stepped([works[2], works[3], works[4]], 3, 100)
    assert rows(timelines.pairs(ten, timelines.renumbered(ten, moved)))[:4] == [(first + i, 100 + i) for i in range(4)]
