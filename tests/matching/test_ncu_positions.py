"""Places of measured launches: by what lies around them, and by their number, against all numberings, enumerated."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsightlens.matching import ncu_positions
from nsightlens.matching.ncu_positions import UNKNOWN, OrderedLaunches, by_position, by_surroundings
from nsightlens.matching.sequence_alignment import HOLE

Int = npt.NDArray[np.int64]


def launches(text: str) -> OrderedLaunches:
    """Return launches written as token, ranges and step, a letter each: `ap1`; `.` is a hole or what is not known."""
    words = text.split()
    token = [HOLE if word[0] == "." else ord(word[0]) for word in words]
    ranges = [UNKNOWN if word[1] == "." else ord(word[1]) for word in words]
    step = [UNKNOWN if word[2] == "." else int(word[2]) for word in words]
    return OrderedLaunches(*(np.array(values, dtype=np.int64) for values in (token, ranges, step)))


@pytest.mark.parametrize(("measured", "timeline", "expected"), [
    ("ap2", "ap1 bp1 ap2 bp2", [2]),
    ("ap2", "ap1 ap2 ap2", [-1]),                      # one of two, and nothing tells which
    ("ap2 ap2", "ap1 ap2 bp2 ap2", [1, 3]),
    ("aq2", "ap2 aq2 ar2", [1]),                       # the ranges tell
    ("ap2 aq2", "ap2 aq2", [0, 1]),
    ("ap2 aq2", "aq2 ap2", [1, 0]),
    ("ap2 aq2", "ap2 ap2", [-1, -1]),                  # one of two, and one of none
    ("aq2 ap2", "aq2 aq2", [-1, -1]),
    ("a.2", "ap2 aq2", [-1]),
    ("ap2 a.2", "ap2 aq2", [0, 1]),                    # all of them, in their order
    ("ap2 a.2", "ap2 aq2 ar2", [-1, -1]),
    ("ap3", "ap1 ap2", [-1]),                          # the timeline has no such step
    ("ap2", "bp2 .p2", [1]),                           # its launch is known, its kernel was lost
    ("ap2", "ap2 .p2", [-1]),
    ("ap2", "ap2 .q2", [0]),                           # what was lost lay in other ranges
    ("ap2", "ap2 ..2", [-1]),
    ("ap2", "bp1 .p. bp2 ap2", [3]),
    ("ap.", "ap2", [-1]),                              # nothing tells where to look
    ("ap2", "ap. bp.", [-1]),
    ("bp1 aq. bp2", "bp1 cr1 aq1 cr1 cr1 bp2 cr2 cr2 aq2", [0, 2, 5]),
    ("bp1 aq. bp2", "bp1 cr1 aq1 aq1 bp2", [0, -1, 4]),
    ("bp1 aq. cp2 dp2 ep2", "bp1 aq1 cp2 fr2 fr2 fr2 aq2 dp2 ep2", [0, 1, 2, 7, 8]),     # before the next that is known
    ("bp1 aq. bp2", "aq1 bp1 cr1 cr1 cr1 aq1 bp2", [1, -1, 6]),    # neighbours may be swapped
    ("ap2", "ap2 ap1", [-1]),                          # steps that do not rise
    ("ap2 ap2", "ap2", [-1, -1]),
    ("ap2 bp2", "bp2 cp2 cp2 cp2 ap2", [-1, -1]),      # each is alone, but their order is another: the kernels were swapped
    ("ap2 bp2", "bp2 ap2", [1, 0]),                    # so may neighbours be
    ("ap2 cp2", "ap2 bp2", [-1, -1]),                  # in these ranges the two ran different kernels
    ("ap2 cq2", "ap2 bq2", [0, -1]),
    ("ap2 bq2", "bq2 cr2 cr2 cr2 ap2", [4, 0]),        # what lies in other ranges may come in any order
    ("ap2 bp2 cq2", "cq2 cr2 cr2 cr2 ap2 bp2", [4, 5, 0]),
    ("aq. aq1 ap. bq1 bp3", "aq1 b.1 aq1 ap1 bq1 bp3", [0, 2, 3, -1, 5]),     # the place of the first is taken
    ("cp1 bp1 aq. bp2", "cp1 bp1 cr1 aq1 cr1 bp2", [0, 1, 3, 5]),
    ("bp1 aq. bp2", "aq1 cr1 bp1 cr1 cr1 bp2", [2, 0, 5]),         # swapped with one of the two before it
    ("bp1 aq. bp2", "aq1 cr1 cr1 bp1 cr1 bp2", [3, -1, 5]),        # but not with one before these
    ("bp1 aq. bp2", "bp1 cr1 bp2 cr2 aq2", [0, 4, 2]),
    ("bp1 aq. bp2", "bp1 cr1 bp2 cr2 cr2 aq2", [0, -1, 2]),
    ("", "ap1", []), ("ap1", "", [-1]),
])
def test_by_surroundings(measured: str, timeline: str, expected: list[int]) -> None:
    assert by_surroundings(launches(measured), launches(timeline)).tolist() == expected


def positions(measured: str, number: list[int], timeline: str, found: str, *, whole: bool = True) -> list[int]:
    mask = np.array([letter == "x" for letter in found], dtype=np.bool_)
    found_at = by_position(launches(measured), np.array(number, dtype=np.int64), launches(timeline), mask, whole=whole)
    return [int(place) for place in found_at]


@pytest.mark.parametrize(("measured", "number", "timeline", "found", "expected"), [
    ("a.. a..", [1, 2], "a.. b.. a.. a.. a..", "x-xxx", [2, 3]),
    ("b..", [1], "a.. a.. b..", "xxx", [-1]),                    # another kernel stands there
    ("b.. a..", [0, 1], "a.. a.. b..", "xxx", [-1, -1]),         # one contradiction, and none is believed
    ("a..", [1], "a.. ... a.. a..", "x-xx", [-1]),               # the hole may count or not
    ("b.. c..", [1, 2], "a.. ... b.. c.. b..", "x-xxx", [2, 3]),
    ("c..", [1], "a.. ... b..", "x-x", [-1]),                    # never seen: stands for anything
    ("c.. a..", [1, 2], "a.. b.. a..", "xxx", [-1, 2]),
    ("aq. ap.", [1, 2], "ap. .q. aq. ap.", "x-xx", [2, 3]),      # the hole is no ap
    ("aq. ap.", [1, 2], "ap. .p. aq. ap. ap.", "x-xxx", [2, 3]),
    ("bq. ap.", [1, 2], "bp. aq. ap.", "xxx", [-1, 2]),          # known, but never in such ranges: another choice there
    ("br. ap.", [1, 2], "bp. aq. ap.", "xxx", [-1, -1]),
    ("a..", [3], "a.. a..", "xx", [-1]),                         # beyond the end
    ("a.. c.. b..", [0, 1, 2], "a.. b..", "xx", [0, -1, 1]),     # never seen: stood for none
])
def test_by_position(measured: str, number: list[int], timeline: str, found: str, expected: list[int]) -> None:
    assert positions(measured, number, timeline, found) == expected


def test_no_more_states_are_looked_at_than_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three launches and a hole up to the last that was measured: five places between them, two numbers that each may have."""
    case = ("b.. c..", [1, 2], "a.. ... b.. c.. b..", "x-xxx")
    monkeypatch.setattr(ncu_positions, "LARGEST", 5 * 2)
    assert positions(*case) == [2, 3]
    monkeypatch.setattr(ncu_positions, "LARGEST", 5 * 2 - 1)
    assert positions(*case) == [-1, -1]
    monkeypatch.undo()
    monkeypatch.setattr(ncu_positions, "LONGEST", 4)
    assert positions(*case) == [2, 3]
    monkeypatch.setattr(ncu_positions, "LONGEST", 3)
    assert positions(*case) == [-1, -1]


def test_a_timeline_that_is_cut_off_tells_less() -> None:
    assert positions("a..", [1], "a.. ... a..", "x-x") == [-1]
    assert positions("bp.", [1], "a.. .q. bp.", "x-x", whole=True) == [2]
    assert positions("bp.", [2], "ap. .q. bp.", "x-x", whole=True) == [2]
    assert positions("bp.", [2], "ap. .q. bp.", "x-x", whole=False) == [-1]    # it may come later, if the hole does not count


def numberings(measured: list[int], first: int, timeline: list[int]) -> list[tuple[int, ...]]:
    """Return every way to place the measured launches: each hole takes a number or none; all of the timeline's are found."""
    holes = [place for place, token in enumerate(timeline) if token == HOLE]
    ways = []
    for taken in product((False, True), repeat=len(holes)):
        skipped = {place for place, is_taken in zip(holes, taken, strict=True) if not is_taken}
        order = [place for place in range(len(timeline)) if place not in skipped]
        if first + len(measured) > len(order):
            continue
        places = order[first : first + len(measured)]
        if all(timeline[place] in (HOLE, token) for place, token in zip(places, measured, strict=True)):
            ways.append(tuple(places))
    return ways


@settings(max_examples=300)
@given(st.lists(st.integers(0, 2) | st.just(HOLE), min_size=3, max_size=8), st.integers(0, 5), st.data())
def test_a_place_is_the_same_in_all_numberings(timeline: list[int], first: int, data: st.DataObject) -> None:
    known = [token for token in timeline if token != HOLE] or [0]
    measured = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=4))
    both = [OrderedLaunches(np.array(tokens, dtype=np.int64), *(np.full(len(tokens), UNKNOWN) for _ in range(2)))
            for tokens in (measured, timeline)]
    found = by_position(both[0], np.arange(first, first + len(measured)), both[1], np.array(timeline) != HOLE, whole=True)
    ways = numberings(measured, first, timeline)
    expected = []
    for row in range(len(measured)):
        places = {way[row] for way in ways}
        place = places.pop() if len(places) == 1 else None
        expected.append(-1 if place is None or timeline[place] == HOLE else place)
    if set(measured) <= set(timeline):
        assert found.tolist() == expected
