"""Who comes last to collectives of MPI, where the GPUs of the others idle meanwhile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nsightlens.diagnosis.findings import findings
from nsightlens.diagnosis.meetings import Meetings, matched
from nsightlens.diagnosis.ranks import waiting
from nsightlens.diagnosis.tree import Tree, trees
from nsightlens.diagnosis.verdict import LATE, judge, sums
from nsightlens.diagnosis.words import sentence
from tests.diagnosis.made import Piece, Range, recorded

_US = 1000
_STEPS = 5


def _tree(rank: int, come_us: int, name: str = "MPI_Allreduce", origin: int = 0) -> Tree:
    """Return five times 1 ms: a kernel until the host comes to a collective that ends at 900 us, and one from then on."""
    pieces, ranges = [], []
    for begin in range(0, 1000 * _STEPS, 1000):
        for start, end in ((0, come_us), (900, 1000)):
            at = (begin + start) * _US
            pieces.append(Piece(at, (begin + end) * _US, launch=(at - 3 * _US, at - 1 * _US)))
        ranges.append(Range((begin + come_us) * _US, (begin + 896) * _US, name))
    profile = recorded(pieces, ranges=ranges)
    profile.ranks[profile.codes["p"]] = rank
    tree, = trees(profile, np.zeros(0, np.int64))
    return replace(tree, origin_ns=origin, process_id=str(rank))


def test_gpus_wait_for_the_rank_that_comes_last_to_mpi() -> None:
    """Ranks 0, 1 and 3 come after 100 us and wait 700 us in each of 5 calls, the first one apart; rank 2 comes after 800 us."""
    every = [_tree(rank, 800 if rank == 2 else 100) for rank in range(4)]
    found = waiting(every, None)
    assert found and found.in_mpi and (found.late, found.ranks) == ((2,), 4)
    assert found.for_late_ns == 3 * _STEPS * 700 * _US and found.winnable_ns == _STEPS * 700 * _US
    verdict = judge(sums(every), found)
    assert (verdict.cause, verdict.lead.branch) == (LATE, "idle")
    assert "late rank 2 in MPI" in sentence(verdict)
    of_mpi = [each for each in findings(verdict) if each.cause in ("late rank", "MPI", "communication")]
    assert [(each.cause, each.subject, each.ns) for each in of_mpi] == [
        ("late rank", "2", found.for_late_ns), ("MPI", "MPI_Allreduce", 4 * _STEPS * 96 * _US)]


@pytest.mark.parametrize("every", [
    [_tree(0, 100), _tree(1, 100)],
    [_tree(0, 100), _tree(1, 800, "MPI_Barrier")],
    [_tree(0, 100, "MPI_Irecv"), _tree(1, 800, "MPI_Irecv")],
    [_tree(0, 100)],
], ids=("nobody is late", "other calls", "calls that do not wait for all", "one rank"))
def test_nobody_is_late_where_calls_do_not_say_so(every: list[Tree]) -> None:
    assert waiting(every, None) is None


def test_clocks_that_differ_do_not_matter() -> None:
    apart = [_tree(0, 100), _tree(1, 100), _tree(2, 800, origin=77_000_000_000)]
    found = waiting(apart, None)
    assert found and found.late == (2,)


def test_calls_whose_ends_do_not_agree_are_not_compared() -> None:
    """Of four calls on two ranks the last ends 1 ms apart; where two of three do so, none is compared."""
    def calls(*ends: int) -> tuple[Meetings, int]:
        end = np.array(ends) * _US
        return Meetings(end - 100 * _US, end, ("MPI_Barrier",) * len(ends)), 0

    found = matched({0: calls(1000, 2000, 3000, 4000), 1: calls(1000, 2000, 3000, 5000)})
    assert found and sorted(found.call.tolist()) == [0, 0, 1, 1, 2, 2]
    assert matched({0: calls(1000, 2000, 3000), 1: calls(1000, 3500, 5000)}) is None
