"""The judged window: which steps are steady, measured by the ends of the GPU work that was launched in them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from nsightlens.diagnosis import words
from nsightlens.diagnosis.profile_arrays import ProfileArrays
from nsightlens.diagnosis.tree import trees
from nsightlens.diagnosis.verdict import judge, sums
from nsightlens.diagnosis.window import Window, leading, window
from tests.diagnosis.made import Piece, Range, recorded


def _judged(profile: ProfileArrays) -> Window:
    return window(profile, profile.work)


def _steps(lengths: list[int], late: int = 0) -> ProfileArrays:
    """Return steps of one kernel each, launched at their start; late: by how much a step's work ends after the step."""
    ends = np.cumsum([0, *lengths]).tolist()
    ranges = [Range(begin, end, f"step {number}") for number, (begin, end) in enumerate(pairwise(ends))]
    pieces = [Piece(begin + 1 + late, end + late, (begin, begin + 1)) for begin, end in pairwise(ends)]
    return recorded(pieces, ranges=ranges)


def test_the_first_of_three_steps_is_never_steady() -> None:
    found = _judged(_steps([100, 100, 100]))
    assert (found.start, found.end, found.steps, found.dropped) == (100, 300, 2, 1)


def test_steps_end_where_their_gpu_work_ends() -> None:
    found = _judged(_steps([100, 100, 100, 100], late=70))
    assert (found.start, found.end, found.steps) == (170, 470, 3)


@pytest.mark.parametrize(("lengths", "dropped"), [
    ([100, 100, 100], 0), ([130, 100, 100, 100], 1), ([119, 100, 100, 100], 0), ([150, 140, 100, 100, 100], 2),
    ([130, 100, 60, 140, 100], 0)])  # the last: the rest is not steady itself
def test_leading_steps_are_dropped_while_they_differ_from_a_steady_rest(lengths: list[int], dropped: int) -> None:
    assert leading(np.array(lengths)) == dropped


@pytest.mark.parametrize(("lengths", "said"), [
    ([100, 110, 90, 100], "A step takes 100 ns: "), ([100, 130, 60, 140, 100], "A step takes 107.5 ns (60 ns to 140 ns): ")])
def test_a_mean_of_steps_far_from_their_median_is_told_with_its_range(lengths: list[int], said: str) -> None:
    assert words.sentence(judge(sums(trees(_steps(lengths), np.zeros(0, np.int64))), None)).startswith(said)


def test_a_step_without_work_is_no_step() -> None:
    pieces = [Piece(100 * n + 1, 100 * n + 90, (100 * n, 100 * n + 1)) for n in (0, 2, 3, 4)]
    found = _judged(recorded(pieces, ranges=[Range(100 * n, 100 * n + 99, f"iter{n}") for n in range(5)]))
    assert (found.start, found.end, found.steps, found.dropped) == (290, 490, 2, 2)


@pytest.mark.parametrize("name", ["warmup step", "stepping", "epoch", "my_optimizer"])
def test_other_ranges_are_no_steps(name: str) -> None:
    ranges = [Range(100 * n, 100 * n + 99, f"{name} {n}") for n in range(4)]
    found = _judged(recorded([Piece(100 * n, 100 * n + 90, (100 * n, 100 * n + 1)) for n in range(4)], ranges=ranges))
    assert (found.start, found.end, found.steps) == (0, 390, 0)


def test_calls_of_the_data_loader_are_steps_to_the_next() -> None:
    ranges = [Range(100 * n, 100 * n + 10, "enumerate(DataLoader)#_Single.__next__", "annotation") for n in range(4)]
    found = _judged(recorded([Piece(100 * n + 20, 100 * n + 80, (100 * n + 15, 100 * n + 16)) for n in range(4)], ranges=ranges))
    assert (found.start, found.end, found.steps, found.called) == (80, 380, 3, "iteration")


def test_a_device_of_two_processes_has_first_to_last_work_of_both() -> None:
    found = _judged(recorded([Piece(10, 20, process="p"), Piece(5, 8, process="q")]))
    assert (found.start, found.end, found.steps) == (5, 20, 0)
