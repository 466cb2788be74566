"""Captures that lack a part of what tools record: GPU work alone, ranges without API calls, other clocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nsightlens.diagnosis.branches import BRANCHES
from nsightlens.diagnosis.capture_words import not_judged
from nsightlens.diagnosis.conditions import LOST, Condition
from nsightlens.diagnosis.findings import findings
from nsightlens.diagnosis.judgement import RunJudgement
from nsightlens.diagnosis.profile_arrays import COPIES, MEMORY
from nsightlens.diagnosis.tree import Tree, trees
from nsightlens.diagnosis.verdict import NOT_RECORDED, Verdict, judge, sums
from nsightlens.diagnosis.window import Window
from nsightlens.diagnosis.words import sentence
from tests.diagnosis.made import Call, Piece, Range, recorded

_US = 1000
WORK = [Piece(begin * _US, (begin + 20) * _US) for begin in range(0, 1000, 100)]
"""20 us of every 100, with no launch."""


def _tree(ranges: list[Range] = [], tool: str = "nsys") -> Tree:  # noqa: B006
    profile = recorded(WORK, ranges=ranges)
    profile.profile["tool"] = tool
    tree, = trees(profile, np.zeros(0, np.int64))
    return tree


def _verdict(tree: Tree) -> Verdict:
    return judge(sums([tree]), None)


@pytest.mark.parametrize(("tool", "action"), [("nsys", "record calls"), ("kineto", "record host")])
def test_idle_time_without_a_record_of_the_host_has_no_known_cause(tool: str, action: str) -> None:
    """That the host was outside of recorded calls is not known where none was recorded."""
    tree = _tree(tool=tool)
    assert [(leaf.cause, leaf.ns) for leaf in tree.idle] == [("no launches", 720 * _US)]
    found = findings(_verdict(tree))
    assert [(each.cause, each.action) for each in found if each.ns == 720 * _US] == [("no launches", action)]
    assert "no launch calls were recorded" in sentence(_verdict(tree))


def test_ranges_say_what_the_host_did_where_api_calls_were_not_recorded() -> None:
    """The thread with ranges is taken for the one that launches: it waits for its data loader in 60 us of each of 8 gaps."""
    loads = [Range((begin + 30) * _US, (begin + 90) * _US, "enumerate(DataLoader)#_Single") for begin in range(0, 900, 100)]
    tree = _tree(loads)
    assert {leaf.cause: leaf.ns for leaf in tree.idle}["data loader"] == 8 * 60 * _US
    assert _verdict(tree).cause == "input"


def test_other_calls_tell_the_thread_where_launches_were_not_recorded() -> None:
    """The thread that calls the API at all waits from 30 to 90 us in each gap."""
    waits = [Call((begin + 30) * _US, (begin + 90) * _US, "cudaStreamSynchronize") for begin in range(0, 900, 100)]
    tree, = trees(recorded(WORK, calls=waits), np.zeros(0, np.int64))
    assert {leaf.cause: leaf.ns for leaf in tree.idle} == {"waiting": 9 * 60 * _US, "unknown": 9 * 20 * _US}


def test_gpus_that_a_thread_feeds_in_turn_wait_for_each_other() -> None:
    """The host waits 40 us for the one, then launches on the other: each idles 50 us of 100, 40 of them while the other works."""
    pieces, waits = [], []
    for begin in range(0, 1000, 50):
        at, device = begin * _US, f"gpu{begin // 50 % 2}"
        pieces.append(Piece(at, at + 40 * _US, launch=(at - 5 * _US, at - 2 * _US), device=device))
        waits.append(Call(at - 1 * _US, at + 40 * _US, "cudaDeviceSynchronize"))
    first, second = trees(recorded(pieces, calls=waits), np.zeros(0, np.int64))
    assert {leaf.cause: leaf.ns for leaf in first.idle}["another GPU"] == 9 * 40 * _US
    assert "waiting" not in {leaf.cause for leaf in (*first.idle, *second.idle) if leaf.ns > 20 * _US}
    verdict = judge(sums([first, second]), None)
    assert "while another GPU works" in sentence(verdict)
    assert [each.action for each in findings(verdict) if each.cause == "another GPU"] == ["turns"]


def test_what_waits_for_another_gpu_behind_an_event_was_recorded() -> None:
    """The host is far ahead: all is launched at once, and each of two GPUs works 40 us of 80, behind the other."""
    pieces = [Piece(place * 40 * _US, (place + 1) * 40 * _US, launch=(place - 100, place - 99), device=f"gpu{place % 2}")
              for place in range(40)]
    for tree in trees(recorded([piece._replace(end=piece.end - (piece.end - piece.start) // 2) if piece.start == 0 else piece
                                for piece in pieces]), np.zeros(0, np.int64)):
        assert tree.lengths["not recorded"] == 0

    slow = [piece._replace(start=2 * piece.start, end=2 * piece.end) for piece in pieces]
    first, second = trees(recorded(slow), np.zeros(0, np.int64))
    assert first.lengths["not recorded"] == second.lengths["not recorded"] == 0
    assert {leaf.cause: leaf.ns for leaf in first.idle} == {"another GPU": 19 * 80 * _US}


@pytest.mark.parametrize(("dropped", "dropped_us", "is_said"), [(1, 600, True), (1, 400, False), (2, 600, False)])
def test_long_steps_before_the_steady_ones_are_said(dropped: int, dropped_us: int, is_said: bool) -> None:
    tree = _tree()
    window = replace(tree.window, steps=5, dropped=dropped, dropped_ns=dropped_us * _US, start=0, end=1000 * _US)
    assert ("before took" in sentence(_verdict(replace(tree, window=window)))) == is_said


@pytest.mark.parametrize(("launches", "wind_down_us"), [(1, 0), (0, 500)])
def test_work_that_the_end_of_a_capture_cuts_off_is_no_wind_down(launches: int, wind_down_us: int) -> None:
    """The host waits until 600 us; the last recorded kernel ends at 100, and one more was launched before it waits."""
    more = [Call(20 * _US, 22 * _US, "cudaLaunchKernel")] * launches
    profile = recorded([Piece(10 * _US, 100 * _US, launch=(0, 5 * _US))], calls=[*more, Call(25 * _US, 600 * _US, "cudaMemcpy")])
    tree, = trees(profile, np.zeros(0, np.int64))
    assert tree.wind_down.ns == wind_down_us * _US


def test_copies_that_were_recorded_are_said_beside_kernels_that_were_not() -> None:
    tree = replace(_tree(), lengths=dict(zip(BRANCHES, (26, 0, 958, 0, 16), strict=True)), window=Window(0, 1000))
    said = not_judged(RunJudgement("r", "nsys", NOT_RECORDED, [tree], sums([tree]), conditions=[Condition(LOST, 16, 49)]))
    assert "at least 2.6 %" in said and "copies 95.8 %" in said


def test_times_before_the_origin_of_a_clock_are_no_wind_down() -> None:
    """All of it lies before 0: the last call ends 5 us after the last kernel."""
    profile = recorded([Piece(-900, -500, launch=(-990, -910))], calls=[Call(-600, -495, "cudaDeviceSynchronize")])
    tree, = trees(profile, np.zeros(0, np.int64))
    assert (tree.start_up.ns, tree.wind_down.ns) == (90, 5)


_LATER = [Piece((begin + 20) * _US, (begin + 90) * _US, launch=(begin * _US, (begin + 5) * _US))
          for begin in range(20_000, 21_000, 100)]


@pytest.mark.parametrize(("calls", "queued_us", "begins", "cause"), [
    ([Call(0, 19_900 * _US, "cudaStreamSynchronize")], 19_900, False, "not recorded"),
    ([Call(0, 40 * _US, "cudaStreamSynchronize")], 0, False, "start-up"),
    ([Call(0, 40 * _US, "cudaEventRecord")], 0, False, "start-up"),
    ([Call(0, 19_900 * _US, "cudaDeviceSynchronize"), Call(19_910 * _US, 19_915 * _US, "cudaMalloc")], 0, True, "start-up"),
    ([Call(0, 19_900 * _US, "cudaMalloc")], 0, True, "start-up"),
])
def test_a_first_wait_is_for_work_from_before_the_capture(calls: list[Call], queued_us: int, begins: bool, cause: str) -> None:
    """Not where the process only begins to use the GPU: there is nothing to wait for then."""
    tree, = trees(recorded(_LATER, calls=calls), np.zeros(0, np.int64))
    assert (tree.start_up.queued_ns, tree.start_up.begins) == (queued_us * _US, begins)
    assert tree.start_up.ns == (20_020 - queued_us) * _US == sum(leaf.ns for leaf in tree.start_up.leaves)
    verdict = _verdict(tree)
    assert verdict.cause == cause
    if cause == "start-up":
        assert ("of the capture" in sentence(verdict)) != begins
        assert ("context creation" in {leaf.cause for leaf in tree.start_up.leaves}) == begins
        assert {each.action for each in findings(verdict) if each.cause == cause} == {"context" if begins else "before"}


@pytest.mark.parametrize(("name", "queued_us"), [("DtoH", 980), ("HtoD", 0)])
def test_a_first_copy_to_the_host_waits_for_its_data(name: str, queued_us: int) -> None:
    """It was called at 0 and began at 1,000 us: whatever makes its data was launched before the capture."""
    profile = recorded([Piece(1000 * _US, 1100 * _US, launch=(0, 1200 * _US), branch=COPIES, kind=MEMORY, name=name), *_LATER])
    profile.calls.copies[0], profile.calls.launches[0] = True, False
    tree, = trees(profile, np.zeros(0, np.int64))
    assert (tree.start_up.ns, tree.start_up.queued_ns) == ((1000 - queued_us) * _US, queued_us * _US)


@pytest.mark.parametrize(("second_us", "action"), [(40, "turns"), (4, "uneven")])
def test_gpus_that_get_too_little_of_the_work_do_not_take_turns(second_us: int, action: str) -> None:
    """Both begin at once; the second has less to do, or as much behind the first."""
    pieces = []
    for begin in range(0, 1000, 100):
        at, later = begin * _US, (begin + (50 if second_us > 10 else 0)) * _US
        pieces += [Piece(at, at + 48 * _US, launch=(at - 9 * _US, at - 8 * _US)),
                   Piece(later, later + second_us * _US, launch=(at - 7 * _US, at - 6 * _US), device="gpu1")]
    every = trees(recorded(pieces), np.zeros(0, np.int64))
    verdict = judge(sums(every), None)
    assert {each.action for each in findings(verdict) if each.cause == "another GPU"} == {action}
    assert (" % each)" in sentence(verdict)) == (action == "uneven")
