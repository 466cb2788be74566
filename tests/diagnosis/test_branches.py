"""The five branches, worked out by hand: each ns goes to the first that applies, and they sum to the window."""

from __future__ import annotations

import numpy as np
import pytest

from nsightlens.diagnosis.branches import branches
from nsightlens.diagnosis.conditions import before_launch, lost_launches
from nsightlens.diagnosis.profile_arrays import COMMUNICATION, COPIES, GRAPH, MEMORY, ProfileArrays
from nsightlens.diagnosis.tree import nodes, trees
from nsightlens.diagnosis.window import window
from tests.diagnosis.made import Call, Piece, Range, recorded

NONE = np.zeros(0, np.int64)
US = 1000


def _lengths(profile: ProfileArrays, lost: np.ndarray[tuple[int], np.dtype[np.int64]] = NONE) -> dict[str, int]:
    judged = window(profile, profile.work)
    found = branches(profile, profile.work, judged, lost).lengths()
    assert sum(found.values()) == judged.length
    return found


def test_each_ns_goes_to_the_first_that_applies() -> None:
    found = _lengths(recorded([
        Piece(0, 100), Piece(50, 200, branch=COMMUNICATION), Piece(180, 260, branch=COPIES, kind=MEMORY), Piece(300, 310)]))
    assert found == {"computing": 110, "communication": 100, "copies": 60, "idle": 40, "not recorded": 0}


def test_a_graph_recorded_whole_computes() -> None:
    assert _lengths(recorded([Piece(0, 100, kind=GRAPH), Piece(100, 110)]))["computing"] == 110


def test_work_of_several_processes_is_one_union() -> None:
    found = _lengths(recorded([Piece(25 * n, 25 * n + 25, process=f"p{n % 4}") for n in range(8)]))
    assert found["computing"] == 200 and found["idle"] == 0


@pytest.mark.parametrize(("gap", "returned", "missing"), [
    (50 * US, 0, 0),  # no longer than 50 µs
    (100 * US, 10 * US, 70 * US),  # from 20 µs after the return of the call on
    (100 * US, 85 * US, 0), (100 * US, -500 * US, 100 * US)])
def test_what_was_launched_and_did_not_start_is_not_recorded(gap: int, returned: int, missing: int) -> None:
    begin = 1000 * US
    profile = recorded([Piece(0, begin, (0, 1)), Piece(begin + gap, begin + gap + 5, (begin + returned - 5, begin + returned))])
    found = _lengths(profile)
    assert (found["idle"], found["not recorded"]) == (gap - missing, missing)


def test_a_gap_around_a_launch_without_its_kernel_is_not_recorded() -> None:
    pieces = [Piece(100 * n, 100 * n + 10, (100 * n - 5, 100 * n - 4)) for n in range(4)]
    profile = recorded([piece for piece in pieces if piece.start != 200], [Call(195, 196, "cudaLaunchKernel")])
    launches, lost = lost_launches(profile)
    assert (launches, len(lost)) == (4, 1)
    found = _lengths(profile, profile.calls.spans.start[lost])
    assert (found["idle"], found["not recorded"]) == (90, 190)


def test_launches_behind_the_last_with_a_kernel_are_cut_off() -> None:
    profile = recorded([Piece(0, 10, (0, 1))], [Call(20, 21, "cudaLaunchKernel")])
    assert lost_launches(profile)[0] == 1 and not len(lost_launches(profile)[1])


def test_launches_while_a_graph_is_recorded_have_no_kernel() -> None:
    profile = recorded([Piece(50, 60, (50, 51))], [
        Call(10, 11, "cudaStreamBeginCapture"), Call(20, 21, "cudaLaunchKernel"), Call(30, 31, "cudaStreamEndCapture")])
    assert not len(lost_launches(profile)[1])


def test_work_before_its_launch_is_counted() -> None:
    early, linked = before_launch(recorded([Piece(0, 5, (10, 11)), Piece(20, 30, (15, 16))]))
    assert (early.tolist(), linked) == ([0], 2)


def test_every_level_of_a_tree_sums_to_the_one_above() -> None:
    profile = recorded(
        [Piece(100 * n, 100 * n + 30, (100 * n - 20, 100 * n - 10), name=f"k{n % 2}") for n in range(1, 9)],
        [Call(100 * n + 35, 100 * n + 50, "cudaDeviceSynchronize") for n in range(1, 8)], [Range(350, 380, "IO")])
    tree, = trees(profile, NONE)
    sums: dict[tuple[str, ...], int] = {}
    own: dict[tuple[str, ...], int] = {}
    for node in nodes(tree):
        own[node.path] = node.ns
        sums[node.path[:-1]] = sums.get(node.path[:-1], 0) + node.ns
    assert sum(ns for path, ns in own.items() if len(path) == 1 and path[0] in tree.lengths) == tree.window.length
    assert all(sums[path] == ns for path, ns in own.items() if path in sums and ns)
    causes = {path[1]: ns for path, ns in own.items() if path[0] == "idle" and len(path) == 2}
    assert causes["waiting"] == 7 * 15


def test_start_up_is_no_part_of_the_window() -> None:
    ms = 1_000_000
    profile = recorded([Piece(30 * ms, 31 * ms, (29 * ms, 30 * ms)), Piece(32 * ms, 33 * ms, (31 * ms, 32 * ms))],
                       [Call(0, 25 * ms, "cudaMalloc"), Call(33 * ms, 40 * ms, "cudaDeviceSynchronize")])
    tree, = trees(profile, NONE)
    assert (tree.window.length, tree.start_up.ns, tree.wind_down.ns) == (3 * ms, 30 * ms, 7 * ms)
    assert {leaf.cause: leaf.ns for leaf in tree.start_up.leaves} == {
        "context creation": 25 * ms, "unknown": 4 * ms, "first use": 1 * ms}
    assert [(leaf.cause, leaf.ns) for leaf in tree.wind_down.leaves] == [("waiting", 7 * ms)]


@pytest.mark.parametrize(("launches", "causes"), [
    (True, {"API calls": 70, "unknown": 10, "launching": 5, "between kernels": 5}),
    (False, {"unknown": 80, "launching": 5, "between kernels": 5}),
])
def test_another_launching_thread_counts_where_the_own_one_does_nothing_recorded(launches: bool, causes: dict[str, int]) -> None:
    profile = recorded([Piece(10 * US, 20 * US, (0, 5 * US)), Piece(20 * US, 30 * US, (6 * US, 9 * US)),
                        Piece(120 * US, 130 * US, (110 * US, 115 * US))], [Call(35 * US, 105 * US, "cudaFree")])
    spans = profile.calls.spans
    spans.thread[spans.start == 35 * US] = 7
    spans.thread[spans.start == 6 * US] = 7 if launches else spans.thread[0]
    (tree,) = trees(profile, NONE)
    assert {leaf.cause: leaf.ns // US for leaf in tree.idle} == causes
