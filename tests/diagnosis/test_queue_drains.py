"""What of idle time is owed to a call that emptied the queue: no more than its launches would have come earlier."""

from __future__ import annotations

import numpy as np
import pytest

from nsightlens.diagnosis.findings import findings
from nsightlens.diagnosis.profile_arrays import MEMORY, Spans
from nsightlens.diagnosis.queue_drains import Owed
from nsightlens.diagnosis.tree import trees
from nsightlens.diagnosis.verdict import judge, sums
from tests.diagnosis.made import Call, Piece, Range, recorded

_US = 1000


def _job(call: str, held_from: int = 20, kernels: int = 2) -> list[Owed]:
    """Return what is owed to a call that waits until a kernel of 100 us is done, and 1 us more.

    Behind it each kernel is launched in 8 us, begins 2 us later, lasts 10 us, and the next call begins 10 us after the last one.
    """
    pieces = [Piece(10 * _US, 100 * _US, (0, 5 * _US))]
    for number in range(kernels):
        began = (101 + 30 * number) * _US
        pieces.append(Piece(began + 10 * _US, began + 20 * _US, (began, began + 8 * _US)))
    tree, = trees(recorded(pieces, [Call(held_from * _US, 101 * _US, call)]), np.zeros(0, np.int64))
    assert sum(leaf.ns for leaf in tree.idle) == tree.lengths["idle"]
    return tree.owed


@pytest.mark.parametrize("call", ["cudaStreamSynchronize", "cudaFree", "cudaMalloc"])
def test_gaps_behind_a_call_that_emptied_the_queue_are_owed_to_it(call: str) -> None:
    """Two gaps of 11 and 20 us, but for the 1 us of the call itself: 8 us of launching and 2 us to begin; 10 us of other code."""
    assert {(part.cause, part.ns) for part in _job(call)} == {
        ("launching", 16 * _US), ("between kernels", 4 * _US), ("unknown", 10 * _US)}
    assert {part.to for part in _job(call)} == {call}


@pytest.mark.parametrize(("held_from", "owed_us"), [(91, 0), (90, 10), (71, 10), (70, 30), (20, 30)])
def test_gaps_that_would_only_be_shorter_are_owed_to_nobody(held_from: int, owed_us: int) -> None:
    """It held the host for so long while the GPU worked: by that launches would come earlier, to gaps of 10 and 20 us."""
    assert sum(part.ns for part in _job("cudaStreamSynchronize", held_from=held_from)) == owed_us * _US


@pytest.mark.parametrize(("held_from", "behind_us"), [(20, 30), (71, 10)])
def test_gaps_behind_a_profiler_that_emptied_the_queue_are_owed_to_it(held_from: int, behind_us: int) -> None:
    """As behind a call that waits: gaps of 11 and 20 us, and the queue runs empty 1 us before the profiler lets go."""
    pieces = [Piece(10 * _US, 100 * _US, (0, 5 * _US))]
    for began in (101 * _US, 131 * _US):
        pieces.append(Piece(began + 10 * _US, began + 20 * _US, (began, began + 8 * _US)))
    profile = recorded(pieces)
    profile.texts.append("Buffer Flush")
    name, process = np.array([len(profile.texts) - 1]), np.array([profile.codes["p"]])
    profile.overheads = Spans(np.array([held_from * _US]), np.array([101 * _US]), name, process, process * 0, process)
    tree, = trees(profile, np.zeros(0, np.int64))
    found, = (each for each in findings(judge(sums([tree]), None)) if each.cause == "profiler")
    assert (found.ns, found.owed_ns) == ((1 + behind_us) * _US, behind_us * _US)
    assert sum(leaf.ns for leaf in tree.idle) == tree.lengths["idle"]


@pytest.mark.parametrize("call", ["cudaFuncGetAttributes", "cudaFreeAsync"])
def test_nothing_is_owed_to_calls_that_do_not_wait(call: str) -> None:
    assert _job(call) == []


def test_long_code_of_the_host_is_a_cause_of_its_own() -> None:
    """A range that holds the host for 2 ms behind a wait of 80 ms would hold it without the wait, too."""
    pieces = [Piece(10, 80_000 * _US, (0, 5)), Piece(82_010 * _US, 82_020 * _US, (82_002 * _US, 82_008 * _US))]
    tree, = trees(recorded(pieces, [Call(10, 80_001 * _US, "cudaStreamSynchronize")],
                           [Range(80_001 * _US, 82_002 * _US, "save_checkpoint")]), np.zeros(0, np.int64))
    assert {(part.cause, part.ns) for part in tree.owed} == {("launching", 6 * _US), ("between kernels", 2 * _US)}


def test_what_was_launched_in_time_is_owed_to_nobody() -> None:
    """The gap of 3 us ends a kernel that was launched before the wait: it would begin no earlier without it."""
    pieces = [Piece(10, 100 * _US, (0, 5)), Piece(103 * _US, 110 * _US, (5, 9))]
    tree, = trees(recorded(pieces, [Call(20 * _US, 101 * _US, "cudaStreamSynchronize")]), np.zeros(0, np.int64))
    assert tree.owed == []


def test_gaps_between_kernels_that_were_queued_empty_no_queue() -> None:
    """The wait lasts over three kernels that were queued; only the gap after the last one is owed to it, once."""
    pieces = [Piece((10 + 33 * number) * _US, (40 + 33 * number) * _US, (number, number + 1)) for number in range(3)]
    late = Piece(117 * _US, 120 * _US, (109 * _US, 115 * _US)), Piece(300 * _US, 310 * _US, (292 * _US, 298 * _US))
    tree, = trees(recorded([*pieces, *late], [Call(20 * _US, 107 * _US, "cudaStreamSynchronize")]), np.zeros(0, np.int64))
    assert sum(part.ns for part in tree.owed) == 10 * _US  # 86 us of lead: of the gap of 180 us, too little


def test_another_call_that_waits_takes_over() -> None:
    """Without the first one, the host would have waited in the second one all the same."""
    pieces = [Piece(10, 100 * _US, (0, 5)), Piece(110 * _US, 200 * _US, (102 * _US, 108 * _US)),
              Piece(210 * _US, 220 * _US, (202 * _US, 208 * _US))]
    calls = [Call(20 * _US, 101 * _US, "cudaFree"), Call(150 * _US, 201 * _US, "cudaStreamSynchronize")]
    tree, = trees(recorded(pieces, calls), np.zeros(0, np.int64))
    of_calls = {call: sum(part.ns for part in tree.owed if part.to == call) for call in ("cudaFree", "cudaStreamSynchronize")}
    assert of_calls == {"cudaFree": 9 * _US, "cudaStreamSynchronize": 9 * _US}


@pytest.mark.parametrize(("done", "owed_ns"), [(100 * _US, 9 * _US), (120 * _US, 0)])
def test_a_copy_that_returns_once_it_is_done_waits(done: int, owed_ns: int) -> None:
    """One that returns before it is done does not: the host is ahead of the GPU."""
    pieces = [Piece(90 * _US, done, (20 * _US, 101 * _US), branch=2, name="DtoH", kind=MEMORY), Piece(10, 90 * _US, (0, 5)),
              Piece(done + 10 * _US, done + 20 * _US, (done + 2 * _US, done + 8 * _US))]
    profile = recorded(pieces)
    call, = (place for place, start in enumerate(profile.calls.spans.start.tolist()) if start == 20 * _US)
    profile.texts.append("cudaMemcpyAsync")
    profile.calls.spans.name[call] = len(profile.texts) - 1
    profile.calls.copies[call], profile.calls.launches[call] = True, False
    tree, = trees(profile, np.zeros(0, np.int64))
    assert sum(part.ns for part in tree.owed) == owed_ns


@pytest.mark.parametrize(("held_from", "waiting_us", "launching_us"), [(20, 71, 20), (90, 11, 80)])
def test_what_is_owed_to_a_call_is_no_part_of_another_finding(
    held_from: int, waiting_us: int, launching_us: int,
) -> None:
    """Gaps of 10 and four times 20 us, in each 10 us to launch and begin; a wait of 80 us owes the first four."""
    pieces = [Piece(10 * _US, 100 * _US, (0, 5 * _US))]
    for number in range(5):
        began = (101 + 30 * number) * _US
        pieces.append(Piece(began + 10 * _US, began + 20 * _US, (began, began + 8 * _US)))
    tree, = trees(recorded(pieces, [Call(held_from * _US, 101 * _US, "cudaStreamSynchronize")]), np.zeros(0, np.int64))
    sizes = {found.cause: found.ns for found in findings(judge(sums([tree]), None))}
    assert (sizes["waiting"], sizes["launching"] + sizes.get("host code", 0)) == (waiting_us * _US, launching_us * _US)


@pytest.mark.parametrize(("call", "began", "ranges", "owed_us"), [
    ("cudaDeviceSynchronize", -90, [], None), ("cudaDeviceSynchronize", 20, [], 3), ("cudaStreamSynchronize", -90, [], 3),
    ("cudaDeviceSynchronize", -90, [Range(-95 * _US, 0, "loss", "operator")], 3),
    ("cudaDeviceSynchronize", -90, [Range(-95 * _US, 0, "ProfilerStep#6", "step")], None),
])
def test_a_wait_before_the_first_launch_is_that_of_whoever_measures(
    call: str, began: int, ranges: list[Range], owed_us: int | None,
) -> None:
    """A wait for the device that begins before any launch or operator is no finding, nor is what follows it."""
    pieces = [Piece(-80 * _US, 100 * _US), Piece(120 * _US, 130 * _US, (111 * _US, 118 * _US))]
    calls = [Call(began * _US, 110 * _US, call), *([Call(10 * _US, 11 * _US, "cudaMemcpyAsync")] if began > 0 else [])]
    tree, = trees(recorded(pieces, calls, ranges), np.zeros(0, np.int64))
    found = {each.cause: each.owed_ns for each in findings(judge(sums([tree]), None))}
    assert found.get("waiting") == (None if owed_us is None else owed_us * _US)  # the other 7 us are a first use
    assert sum(leaf.ns for leaf in tree.idle) == 20 * _US
