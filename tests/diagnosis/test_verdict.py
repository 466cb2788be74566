"""Which cause leads, and what stands beside it, by the sizes of branches alone; and which ranks are late."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nsightlens.diagnosis.branches import BRANCHES
from nsightlens.diagnosis.busy_time import BusyItem as CopyPiece
from nsightlens.diagnosis.exchanges import Exchanges
from nsightlens.diagnosis.findings import findings
from nsightlens.diagnosis.idle import Leaf, Outside
from nsightlens.diagnosis.profile_arrays import Faults
from nsightlens.diagnosis.ranks import Waiting, waiting, winnable
from nsightlens.diagnosis.tree import Tree, by_process, nodes, trees
from nsightlens.diagnosis.verdict import judge, sums
from nsightlens.diagnosis.window import Window
from nsightlens.diagnosis.words import sentence
from tests.diagnosis.made import Piece, recorded


def _tree(lengths: tuple[int, ...], start_up: int = 0, loader: int = 0, rank: int | None = None) -> Tree:
    found, = trees(recorded([Piece(0, sum(lengths))]), np.zeros(0, np.int64))
    return replace(found, lengths=dict(zip(BRANCHES, lengths, strict=True)), loader_ns=loader, start_up=Outside(start_up, ()),
                   wind_down=Outside(0, ()), rank=rank, process_id=str(rank))


@pytest.mark.parametrize(("lengths", "start_up", "loader", "causes"), [
    ((80, 5, 5, 10, 0), 0, 0, ["computing"]),
    ((60, 5, 5, 30, 0), 0, 0, ["computing", "host"]),
    ((40, 5, 5, 50, 0), 0, 25, ["input", "computing"]),
    ((40, 5, 5, 50, 0), 0, 24, ["host", "computing"]),
    ((80, 5, 5, 10, 0), 41, 0, ["computing", "start-up"]),
    ((80, 5, 5, 10, 0), 90, 0, ["start-up", "computing"]),
    ((40, 5, 5, 30, 20), 0, 0, ["not recorded", "computing", "host"]),
    ((60, 5, 5, 10, 20), 0, 0, ["computing", "host"]),  # so little could not change which is largest
    ((41, 40, 0, 0, 19), 0, 0, ["computing", "communication"]),
])
def test_the_largest_branch_leads(lengths: tuple[int, ...], start_up: int, loader: int, causes: list[str]) -> None:
    found = judge(sums([_tree(lengths, start_up, loader)]), None)
    assert [found.lead.cause, *(part.cause for part in found.beside)] == causes


def _exchanges(waits: list[list[int]]) -> Exchanges:
    """Return one collective per row, in which rank n waits waits[n] before a transfer of 10; calls are 1,000 apart."""
    rows = [(call, 0, rank, 1000 * call + 500 - wait, 1000 * call + 510)
            for call, those in enumerate(waits) for rank, wait in enumerate(those)]
    rows.sort(key=lambda row: (row[2], row[3]))
    return Exchanges(*(np.array(column) for column in zip(*rows, strict=True)))


def _ranks(count: int, calls: int) -> list[Tree]:
    exposed = np.array([0]), np.array([1000 * calls])
    return [replace(_tree((1000 * calls, 0, 0, 0, 0), rank=rank), window=Window(0, 1000 * calls), exposed=exposed)
            for rank in range(count)]


def test_a_rank_that_the_others_wait_for_is_late() -> None:
    found = waiting(_ranks(4, 4), _exchanges([[300, 300, 300, 300], *[[200, 200, 0, 200]] * 3]))
    assert found and (found.late, found.for_late_ns, found.winnable_ns) == ((2,), 3 * 600, 3 * 200)


def test_waits_in_the_first_collective_make_no_rank_late() -> None:
    found = waiting(_ranks(4, 4), _exchanges([[400, 400, 0, 400], *[[5, 5, 5, 5]] * 3]))
    assert found and found.late == () and found.first_ns == 1200


def test_two_ranks_that_are_late_together_win_only_together() -> None:
    call, rank, exposed = np.array([0, 0, 0]), np.array([0, 1, 2]), np.array([0, 0, 100])
    assert [winnable(call, rank, exposed, late) for late in ([0], [1], [0, 1])] == [0, 0, 100]


@pytest.mark.parametrize(("call", "memory", "action"), [
    ("cudaMemcpy", "pageable", "copy"), ("cudaMemcpy", "pinned", "asynchronous"),
    ("cuMemcpyHtoDAsync_v2", "pinned", "merge copies"), ("cudaMemcpyAsync", "pageable", "merge copies"),
    ("cudaMalloc", "pinned", "allocate"),
])
def test_no_copy_is_to_be_made_what_it_is(call: str, memory: str, action: str) -> None:
    """What is asynchronous or pinned already is not advised to become that."""
    tree = replace(_tree((10, 0, 5, 85, 0)), idle=[Leaf("API calls", 85, ((call, 85),), 1)],
                   copies=[CopyPiece("HtoD", "HtoD", 5, 1, "memory", memory=memory)])
    found = findings(judge(sums([tree]), None))
    assert [one.action for one in found if one.cause == "API calls"] == [action]


def test_kernels_are_charged_the_time_in_which_their_gpu_handles_page_faults() -> None:
    """Faults from 5 to 15 and 12 to 18 are 13 ns, of which b holds 8; none of another GPU counts, or before the window."""
    profile = recorded([Piece(0, 10, name="a"), Piece(10, 30, name="b")])
    gpu, other = profile.codes["gpu0"], -1
    profile.faults = Faults(np.array([5, 12, 0, -9]), np.array([15, 18, 30, -2]), np.array([gpu, gpu, other, gpu]))
    tree, = trees(profile, np.zeros(0, np.int64))
    assert [(piece.key, piece.ns) for piece in tree.faulting] == [("b", 8), ("a", 5)]
    found = next(one for one in findings(judge(sums([tree]), None)) if one.cause == "page faults")
    assert (found.subject, found.ns, found.others, found.action) == ("b", 13, 1, "migrate")


def test_low_fill_is_summed_over_gpus() -> None:
    every = [replace(_tree((100, 0, 0, 0, 0)), low_fill=fill, sms=108) for fill in (("a", 40, 2), ("b", 50, 9), ("a", 30, 7))]
    found = next(one for one in findings(judge(sums(every), None)) if one.cause == "low fill")
    assert (found.subject, found.ns, found.blocks, found.sms) == ("a", 70, 7, 108)


@pytest.mark.parametrize(("ranks", "rank", "action"), [
    ({}, None, "nonblocking"), ({"p0": 3}, 3, "nonblocking"), ({"p0": 3, "p1": 5}, None, "last"),
])
def test_a_gpu_that_processes_share_has_the_ranks_of_all(ranks: dict[str, int], rank: int | None, action: str) -> None:
    """Of several ranks none stands for the GPU; and what they wait for in MPI is another one of them."""
    profile = recorded([Piece(25 * n, 25 * n + 20, process=f"p{n % 2}") for n in range(8)])
    profile.ranks.update({profile.codes[process]: number for process, number in ranks.items()})
    tree, = trees(profile, np.zeros(0, np.int64))
    assert (tree.rank, tree.ranks, tree.processes) == (rank, tuple(sorted(ranks.values())), 2)
    verdict = judge(sums([replace(tree, idle=[Leaf("MPI", 35, (("MPI_Allreduce", 35),), 7)])]), None)
    assert "2 processes on one GPU" in sentence(verdict)
    assert [found.action for found in findings(verdict) if found.cause == "MPI"] == [action]


def test_processes_that_share_a_gpu_have_their_own_work_and_start_up() -> None:
    """Of 100 ns a computes 70 and b 20, one after the other; b calls first from 5 on, and computes from 40 on."""
    profile = recorded([Piece(10, 40, process="m:1", launch=(0, 4)), Piece(40, 60, process="m:2", launch=(5, 9)),
                        Piece(70, 110, process="m:1", launch=(61, 62))])
    tree, = trees(profile, np.zeros(0, np.int64))
    rows = [(node.path, node.ns, node.process_id) for node in nodes(tree) if node.ns and len(node.path) < 3]
    assert rows[:3] == [(("computing",), 90, ""), (("computing", "process 1"), 70, ""), (("computing", "process 2"), 20, "")]
    assert [row for row in rows if row[0] == ("start-up",)] == [(("start-up",), 10, ""), (("start-up",), 35, "m:2")]
    assert [(piece.key, piece.ns) for piece in sums([tree]).pieces["computing"]] == [("k", 90)]
    assert "process 1 has 77.8 % of it" in sentence(judge(sums([tree]), None))
    profile.ranks[profile.codes["m:1"]] = 4
    tree, = trees(profile, np.zeros(0, np.int64))
    assert list(by_process(tree.computing)) == ["rank 4", "process 2"]


def test_of_findings_worth_the_same_that_with_a_known_gain_comes_first() -> None:
    """A late rank that costs each of 4 ranks 50 ns, and 200 ns of other communication."""
    late = Waiting((2,), 4, 150, 0, 150, 50, (50,))
    every = [replace(_tree((500, 100 - 50 * (rank == 2), 0, 0, 0), rank=rank), communication=[CopyPiece("nccl", "nccl", 88, 1)])
             for rank in range(4)]
    found = [each.cause for each in findings(judge(sums(every), late))]
    assert found.index("late rank") < found.index("communication")
