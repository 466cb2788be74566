"""Alignment: certain pairs against all alignments, enumerated; dropped, swapped and repeated items."""

from __future__ import annotations

import tracemalloc
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsightlens.matching import sequence_alignment
from nsightlens.matching.sequence_alignment import HOLE, certain_pairs

_TOKENS = st.lists(st.integers(0, 3), max_size=6)


def pairs(one: list[int], other: list[int]) -> list[tuple[int, int]] | None:
    found = certain_pairs(np.array(one, dtype=np.int64), np.array(other, dtype=np.int64))
    return None if found is None else [(int(i), int(j)) for i, j in found if HOLE not in (one[i], other[j])]


def text(one: str, other: str) -> list[tuple[int, int]] | None:
    numbers = {".": HOLE}
    coded = [[numbers.setdefault(letter, ord(letter)) for letter in word] for word in (one, other)]
    return pairs(coded[0], coded[1])


@pytest.mark.parametrize(("one", "other", "expected"), [
    ("abc", "abc", [(0, 0), (1, 1), (2, 2)]),
    ("abc", "ac", [(0, 0), (2, 1)]),
    ("aab", "ab", [(2, 1)]),                    # which a was dropped is unknown
    ("aab", ".ab", [(1, 1), (2, 2)]),           # its launch call tells
    ("a.b", "axb", [(0, 0), (2, 2)]),
    ("aa", "aa", [(0, 0), (1, 1)]),
    ("wabcz", "wbacz", [(0, 0), (1, 2), (2, 1), (3, 3), (4, 4)]),  # two neighbours swapped
    ("cbrbaz", "rcbaz", [(4, 3), (5, 4)]),      # c crosses r, and they are no neighbours
    ("abab", "ab", []),                         # the first or the second half
    ("xyabab", "xyab", [(0, 0), (1, 1)]),
    ("", "abc", []),
    ("abc", "xyz", []),
    ("aaa", "a", []),
    ("ab", "ax", []),                           # as much lacks a partner as has one
    ("ba", "xa", []),
    ("cacc", "acbcb", [(1, 0)]),                # which c is which is unknown
    # three steps that lack items, and two of them: the first two fit as well as the last two
    ("EOEfgqdhdmjhdtgqdhdtjhdtfgqdhdtmjdt", "fgqdhdtmjhdt" * 2, []),
])
def test_pairs(one: str, other: str, expected: list[tuple[int, int]]) -> None:
    assert text(one, other) == expected
    assert text(other, one) == sorted((j, i) for i, j in expected)


def alignments(one: list[int], other: list[int]) -> list[frozenset[tuple[int, int]]]:
    """Return every alignment: sets of pairs of equal tokens that rise on both sides."""
    if not one or not other:
        return [frozenset()]
    found = set(alignments(one[:-1], other)) | set(alignments(one, other[:-1]))
    if one[-1] == other[-1]:
        found |= {a | {(len(one) - 1, len(other) - 1)} for a in alignments(one[:-1], other[:-1])}
    return list(found)


@settings(max_examples=150)
@given(_TOKENS, _TOKENS)
def test_no_best_alignment_gives_a_certain_pair_another_partner(one: list[int], other: list[int]) -> None:
    every = alignments(one, other)
    most = max(map(len, every))
    best = [a for a in every if len(a) == most]
    for i, j in pairs(one, other) or []:
        assert any((i, j) in a for a in best)
        assert all((i, j) in a or not any(i == x or j == y for x, y in a) for a in best)


@given(st.lists(st.integers(0, 4), max_size=30), st.data())
def test_no_certain_pair_is_wrong_where_one_side_lacks_items(sequence: list[int], data: Any) -> None:
    kept = [place for place in range(len(sequence)) if data.draw(st.booleans())]
    found = pairs(sequence, [sequence[place] for place in kept])
    assert found is not None
    assert all(kept[j] == i for i, j in found)


@given(st.integers(0, 2**31), st.integers(20, 60))
def test_holes_tell_which_item_was_dropped(seed: int, length: int) -> None:
    random = np.random.default_rng(seed)
    true = random.integers(0, 3, length)
    one, other = (np.where(random.random(length) < 0.1, HOLE, true) for _ in range(2))
    found = certain_pairs(one, other)
    assert found is not None
    assert found.tolist() == [[i, i] for i in range(length) if one[i] != HOLE or other[i] != HOLE]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30))
def test_a_whole_recording_of_repetitions_is_not_placed_by_what_the_other_lacks(seed: int) -> None:
    """Three equal steps and the last two of them, of which each side lacks a few: the first two fit better, and are wrong."""
    random = np.random.default_rng(seed)
    step = random.integers(0, 200, 300)
    start = random.integers(200, 400, 20)
    gone = 620 + random.choice(300, 12, replace=False)
    one, places = np.delete(np.concatenate([start, step, step, step]), gone), np.delete(np.arange(920), gone)
    other = np.concatenate([step, step])
    found = certain_pairs(one, other, whole=True)
    assert found is not None
    assert [(i, j) for i, j in found.tolist() if places[i] != j + 320] == []
    back = certain_pairs(other, one, whole=True)
    assert back is not None and [(i, j) for j, i in back.tolist() if places[i] != j + 320] == []
    also_gone = random.choice(920, 5, replace=False)
    also = np.delete(np.arange(920), also_gone)
    same = certain_pairs(one, np.concatenate([start, step, step, step])[also], whole=True)
    assert same is not None
    assert len(same) > 700
    assert [(i, j) for i, j in same.tolist() if places[i] != also[j]] == []


@settings(max_examples=300)
@given(_TOKENS, _TOKENS, st.integers(0, 6))
def test_the_path_is_an_alignment_that_is_worth_most(one: list[int], other: list[int], spare: int) -> None:
    arrays = [np.array(side, dtype=np.int64) for side in (one, other)]
    band = sequence_alignment._band(arrays[0], arrays[1], spare)
    assert band is not None
    most = sequence_alignment._prefixes(arrays[0], arrays[1], band.first, band.last)
    assert most is not None
    partner = sequence_alignment._path(most, band.first, len(other))
    found = [(i, int(j)) for i, j in enumerate(partner[1:-1]) if j >= 0]
    assert all(one[i] == other[j] for i, j in found)
    assert sorted({j for _, j in found}) == [j for _, j in found]
    assert len(found) == most[-1, len(other) - len(one) - band.first]


@settings(max_examples=300)
@given(_TOKENS, _TOKENS, st.integers(0, 6), st.integers(0, 6))
def test_matches_are_those_of_pairs_that_are_worth_as_much_each(
    one: list[int], other: list[int], before: int, behind: int,
) -> None:
    """The matches by bits against the plain recurrence, which the doubted pairs need."""
    arrays = [np.array(side, dtype=np.int64) for side in (one, other)]
    first, last = -min(before, len(one)), min(behind, len(other))
    nothing = np.full(len(one), sequence_alignment._NOTHING)
    plain = sequence_alignment._doubted(arrays[0], arrays[1], first, last, nothing, 1)
    found = sequence_alignment._prefixes(arrays[0], arrays[1], first, last)
    assert found is not None
    assert (sequence_alignment._FULL * found).tolist() == plain.tolist()


def test_recordings_that_differ_too_much_are_given_up_at_their_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 100,000 that share nothing: no alignment within reach can have enough matches after the first stretch."""
    looked_at: list[int] = []
    alike = sequence_alignment._alike

    def counted(token: Any, other: Any) -> Any:
        looked_at.append(other.size)
        return alike(token, other)

    monkeypatch.setattr(sequence_alignment, "_alike", counted)
    one = np.arange(100_000, dtype=np.int64)
    assert certain_pairs(one, one + 100_000) is None
    assert sum(looked_at) < 3 * (sequence_alignment._AT_ONCE + len(one))


def test_too_long_recordings_are_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_alignment, "LARGEST", 5)
    assert text("abc", "ab") is None
    assert text("abc", "abc") == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize(("allowed", "is_looked_at"), [(200 * 129 // 2, True), (200 * 129 // 2 - 1, False)])
def test_as_many_pairs_of_places_are_looked_at_as_are_allowed(
    monkeypatch: pytest.MonkeyPatch, allowed: int, is_looked_at: bool,
) -> None:
    """Of 200 places: those up to 64 before and behind, of which twice as many fit as the constant says."""
    monkeypatch.setattr(sequence_alignment, "LARGEST", allowed)
    found = pairs(list(range(200)), [*range(199), 500])
    assert found == ([(i, i) for i in range(199)] if is_looked_at else None)


def test_pairs_at_the_edge_of_what_is_looked_at_compete(monkeypatch: pytest.MonkeyPatch) -> None:
    """137 of 200 places fit where they are; 136 of these fit 64 places further on too, which is as far as is looked at."""
    monkeypatch.setattr(sequence_alignment, "LARGEST", 200 * 129 // 2)
    one, other = [*(place % 64 for place in range(137)), *range(1000, 1063)], [place % 64 for place in range(200)]
    assert pairs(one, other) == pairs(other, one) == []
    assert pairs(one[::-1], other[::-1]) == pairs(other[::-1], one[::-1]) == []


@pytest.mark.parametrize("gone", ["one", "other", "neither"])
def test_the_memory_of_long_recordings_is_that_of_the_pairs_near_the_diagonal(monkeypatch: pytest.MonkeyPatch, gone: str) -> None:
    monkeypatch.setattr(sequence_alignment, "LARGEST", 100_000)
    one, other = np.arange(1000), np.arange(1000)
    if gone == "one":
        one = np.delete(one, range(400, 410))
    elif gone == "other":
        other = np.delete(other, range(400, 410))
    else:
        one[500] = 2000
    tracemalloc.start()
    try:
        found = certain_pairs(one, other)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found is not None and len(found) >= 985
    assert most <= 2 * 100_000 * 12


def test_a_hole_is_no_partner_of_a_hole_and_settles_nothing() -> None:
    def raw(one: str, other: str) -> list[list[int]]:
        first, second = (np.array([HOLE if letter == "." else ord(letter) for letter in word]) for word in (one, other))
        found = certain_pairs(first, second)
        assert found is not None
        return [[int(place) for place in pair] for pair in found]

    assert raw("a.bc", "a.b") == [[0, 0], [2, 2]]
    assert raw("..a", "ab") == []       # the two holes, or a alone
    assert raw("ab", "..a") == []


def test_every_pair_of_short_words() -> None:
    for length in range(4):
        for word in product("ab", repeat=length):
            assert text("".join(word), "".join(word)) == [(i, i) for i in range(length)]


@given(st.integers(0, 2**31), st.integers(100, 300), st.integers(0, 6))
def test_long_recordings_are_looked_at_near_the_diagonal_with_the_same_answer(seed: int, length: int, lost: int) -> None:
    random = np.random.default_rng(seed)
    true = random.integers(0, 9, length)
    one, other = (np.delete(true, random.integers(0, length, lost)) for _ in range(2))
    whole = certain_pairs(one, other)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequence_alignment, "LARGEST", len(one) * 100)
        near = certain_pairs(one, other)
    assert near is not None and whole is not None
    assert near.tolist() == whole.tolist()
