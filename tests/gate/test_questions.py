"""Each question by itself, on figures: what decides it, what keeps it open, and which nodes forbid to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from nsightlens.errors import UsageError
from nsightlens.gate.comparable import obstacles
from nsightlens.gate.questions import (
    ALONE,
    COMMUNICATION,
    MEMORY,
    MISSING,
    NEW,
    OK,
    SLOW,
    SLOWER,
    STEP,
    UNDECIDED,
    UNEVEN,
    UNVARIED,
    Answer,
    answer,
    kernels,
    overall,
    questions,
)
from nsightlens.gate.recordings import Recording

PLAIN = Recording("run", "kineto", 0, None, None, 50, 1, 1e6, 1e6, 0.0)
STEADY = (1e6, 1.001e6, 0.999e6, 1.0005e6, 0.9995e6)


def steps(figures: Sequence[float], **others: object) -> list[Recording]:
    return [replace(PLAIN, trimmed_ns=ns, **others) for ns in figures]  # type: ignore[arg-type]


def asked(item: str, base: Sequence[Recording], candidate: Sequence[Recording], limit: float = 3) -> Answer:
    (question,) = (each for each in questions(3, 1, {item: limit}, [*base, *candidate]) if each.item == item)
    return answer(question, (base, candidate), 2, None)


@pytest.mark.parametrize(("figures", "verdict", "why"), [
    (STEADY, OK, ""), ([1.05 * ns for ns in STEADY], SLOWER, ""), ([0.9 * ns for ns in STEADY], OK, ""),
    ([1.03 * ns for ns in STEADY], UNDECIDED, ""), ([1.05e6], SLOWER, ""), ([1.6e6, 0.9e6, 0.6e6], UNDECIDED, UNEVEN),
])
def test_step_times_against_five_steady_ones(figures: Sequence[float], verdict: str, why: str) -> None:
    found = asked(STEP, steps(STEADY), steps(figures))
    assert (found.verdict, found.why, found.counts) == (verdict, why, (5, len(figures)))
    assert found.low is not None and found.high is not None and found.change is not None and found.low < found.change < found.high
    assert (found.shown is not None and found.shown > 3) and (found.needed is None or found.needed > 3)


def test_one_of_each_and_figures_that_do_not_vary_are_undecided() -> None:
    assert asked(STEP, steps([1e6]), steps([2e6])).why == ALONE
    assert asked(STEP, steps([1e6] * 3), steps([2e6] * 3)).why == UNVARIED
    assert asked(STEP, steps([1e6] * 3), steps([1e6] * 3)).verdict == OK


def test_shares_are_compared_in_points_and_are_ok_where_all_have_the_same() -> None:
    base, more = steps(STEADY, slow_pct=2.0), [replace(PLAIN, slow_pct=pct) for pct in (4.0, 4.2, 3.9)]
    assert asked(SLOW, base, base, 1).verdict == OK
    found = asked(SLOW, base, more, 1)
    assert found.verdict == SLOWER and found.change == pytest.approx(2.033, abs=0.01)
    assert asked(COMMUNICATION, base, base, 1).why == MISSING, "it was not recorded"


@pytest.mark.parametrize(("peak", "verdict"), [(90, OK), (100, OK), (104, OK), (120, SLOWER)])
def test_memory_that_is_the_same_in_each_recording_is_certain(peak: int, verdict: str) -> None:
    assert asked(MEMORY, steps(STEADY, peak_bytes=100), steps(STEADY, peak_bytes=peak), 5).verdict == verdict


def test_what_only_one_side_has_is_no_ratio() -> None:
    without, with_it = steps(STEADY, kernels={"a": 5.0}), steps(STEADY, kernels={"a": 5.0, "b": 1.0})
    assert asked("b", without, with_it, 5).why == NEW and asked("b", with_it, without, 5).verdict == OK
    assert asked("b", with_it, [*with_it, *without], 5).why == MISSING


def test_an_item_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="gem: neither a family") as caught:
        asked("gem", steps(STEADY, families={"gemm": 1.0}), steps(STEADY))
    assert "gemm" in caught.value.choices


def test_slower_comes_before_undecided_and_undecided_before_ok() -> None:
    found = {verdict: replace(asked(STEP, steps(STEADY), steps(STEADY)), verdict=verdict) for verdict in (OK, SLOWER, UNDECIDED)}
    assert overall([*found.values()]) == SLOWER and overall([found[OK], found[UNDECIDED]]) == UNDECIDED
    assert overall([found[OK]]) == OK


def test_kernels_beyond_chance_go_by_the_name_that_they_have_now() -> None:
    base = [replace(PLAIN, kernels={"old": 100 + k, "same": 50 + k}) for k in (0.0, 0.1, 0.2)]
    other = [replace(PLAIN, kernels={"new": 120 + k, "same": 50 + k}) for k in (0.0, 0.1, 0.2)]
    (found,) = kernels((base, other), {"old": "new"})
    assert (found.key, round(found.candidate - found.base)) == ("new", 20) and found.low > 0
    assert not kernels((base[:1], other[:1]), {})


@pytest.mark.parametrize(("base", "candidate", "forbids"), [
    ("aab", "cc", True), ("aab", "a", False), ("abc", "def", False), ("a", "b", False), ("aaa", [None], False),
])
def test_a_difference_of_nodes_is_none_of_the_program(
    base: Sequence[str], candidate: Sequence[str | None], forbids: bool,
) -> None:
    """Where each recording has a node of its own, as in containers, nodes vary as recordings do."""
    sides = tuple([replace(PLAIN, node=node) for node in side] for side in (base, candidate))
    assert bool(obstacles(({}, {}), (sides[0], sides[1]), ([], []), None)) is forbids
