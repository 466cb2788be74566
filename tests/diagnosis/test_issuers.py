"""Who issues a call or work: the outermost operator around it, else the innermost range; nobody where that says nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from nsightlens.diagnosis import words
from nsightlens.diagnosis.findings import Finding, Issuers, findings, issuer_of
from nsightlens.diagnosis.profile_arrays import MEMORY
from nsightlens.diagnosis.tree import Tree, trees
from nsightlens.diagnosis.verdict import judge, sums
from tests.diagnosis.made import Call, Piece, Range, recorded

_US = 1000
_ITEM = [Range(0, 400 * _US, "train"), Range(19 * _US, 102 * _US, "aten::item", "operator", 0, 1),
         Range(20 * _US, 102 * _US, "aten::_local_scalar_dense", "operator", 1, 2)]


def _tree(ranges: Sequence[Range]) -> Tree:
    """Return a job that waits for a kernel in a call from 20 to 200 us, and copies to the device from 210 to 300 us."""
    pieces = [Piece(10 * _US, 100 * _US, (0, 5 * _US)),
              Piece(210 * _US, 300 * _US, (201 * _US, 205 * _US), branch=2, name="HtoD", kind=MEMORY)]
    tree, = trees(recorded(pieces, [Call(20 * _US, 200 * _US, "cudaStreamSynchronize")], ranges), np.zeros(0, np.int64))
    return tree


def _found(ranges: Sequence[Range]) -> dict[str, Finding]:
    return {found.cause: found for found in findings(judge(sums([_tree(ranges)]), None))}


@pytest.mark.parametrize(("ranges", "issuer"), [
    (_ITEM, "aten::item"), (_ITEM[:1], "train"), ([], ""),
    ([Range(0, 400 * _US, "nn.Module: Loss_3", "module")], "nn.Module: Loss_3"),
    ([Range(0, 400 * _US, "step 3")], ""), ([Range(0, 400 * _US, "ProfilerStep#3", "step")], ""),
    ([Range(0, 400 * _US, "train"), Range(10, 300 * _US, "iteration 7", parent=0, depth=1)], "train"),
    ([Range(10, 300 * _US, "autograd::engine::evaluate_function: MulBackward0", "operator")], "MulBackward0"),
])
def test_the_finding_of_a_wait_says_who_issues_it(ranges: Sequence[Range], issuer: str) -> None:
    found = _found(ranges)["waiting"]
    assert found.issuer.names == issuer
    assert (f"cudaStreamSynchronize (in {issuer})" in words.finding(found)) == bool(issuer)


def test_copies_and_kernels_say_who_issues_them() -> None:
    found = _found(_ITEM)
    assert (found["copies"].issuer.names, found["computing"].issuer.names) == ("train", "train")


def test_the_sentence_says_who_issues_copies_and_waits() -> None:
    assert "(cudaStreamSynchronize in train)" in words.sentence(judge(sums([_tree(_ITEM[:1])]), None))
    pieces = [Piece(10 * _US, 300 * _US, (1, 5 * _US), branch=2, name="HtoD", kind=MEMORY)]
    tree, = trees(recorded(pieces, ranges=_ITEM[:1]), np.zeros(0, np.int64))
    assert "(host to device, in train)" in words.sentence(judge(sums([tree]), None))


def test_waits_and_the_idle_time_behind_them_have_one_issuer() -> None:
    """What a call owes (queue_drains.py) counts for who issued that call, not for who launches behind it."""
    pieces = [Piece(10 * _US, 100 * _US, (0, 5 * _US)), Piece(130 * _US, 140 * _US, (102 * _US, 128 * _US))]
    ranges = [Range(10 * _US, 101 * _US, "loss"), Range(101 * _US, 130 * _US, "forward")]
    tree, = trees(recorded(pieces, [Call(20 * _US, 101 * _US, "cudaStreamSynchronize")], ranges), np.zeros(0, np.int64))
    found = next(each for each in findings(judge(sums([tree]), None)) if each.cause == "waiting")
    assert (found.issuer.names, found.owed_ns > 20 * _US) == ("loss", True)


@pytest.mark.parametrize(("of_a", "most"), [(95, True), (94, False), (50, False)])
def test_who_issues_less_than_nearly_all_issues_most(of_a: int, most: bool) -> None:
    assert issuer_of([("a", of_a), ("b", 100 - of_a)], 100) == Issuers("a", most)


@pytest.mark.parametrize(("issued", "ns", "named"), [
    ([("a", 50), ("b", 50)], 100, "a"), ([("a", 40), ("b", 10), ("c", 9)], 100, "a and b"), ([("a", 30), ("b", 10)], 100, ""),
    ([("layer 1", 30), ("layer 2", 30)], 100, "layer #"), ([], 0, ""),
])
def test_those_are_named_who_issue_half(issued: list[tuple[str, int]], ns: int, named: str) -> None:
    assert issuer_of(issued, ns).names == named
