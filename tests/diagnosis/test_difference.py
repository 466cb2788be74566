"""The difference of trees: it sums to the ns, is nothing against itself, and mirrors itself the other way round."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsightlens.diagnosis.branches import BRANCHES
from nsightlens.diagnosis.busy_time import BusyItem
from nsightlens.diagnosis.difference import Side, difference, efficiencies, properties, scale
from nsightlens.diagnosis.difference_words import certainty, first, sentence
from nsightlens.diagnosis.idle import Leaf
from nsightlens.diagnosis.tree import Tree
from nsightlens.diagnosis.verdict import Sums
from nsightlens.statistics.rounding import nearest

MS = 1_000_000
Issuers = dict[str, dict[tuple[str, str], int]]


def tree(steps: int, length: int, rank: int, lengths: Sequence[int] = ()) -> Tree:
    """Return what a difference looks at of a tree. lengths: the ns of its steps."""
    window = SimpleNamespace(steps=steps, length=length, called="step", bounds=tuple(accumulate((0, *lengths))))
    return cast(Tree, SimpleNamespace(window=window, profile_id=f"p{rank}", process_id=str(rank), window_index=0))


def side(run: str, kernels: dict[str, int], idle: dict[str, int], *, steps: int = 1, copies: int = 0, communication: int = 0,
         start_up: int = 0, gpus: int = 1, recordings: tuple[int, ...] = (), issuers: Issuers | None = None,
         lengths: Sequence[int] = ()) -> Side:
    """Return a run: ns of its kernels by name and of its idle time by cause. recordings: the ns of the window of each."""
    parts = (sum(kernels.values()), communication, copies, sum(idle.values()), 0)
    pieces = {"computing": [BusyItem(key, key, ns, 1) for key, ns in kernels.items()],
              "communication": [BusyItem("nccl", "nccl", communication, 1)] if communication else [],
              "copies": [BusyItem("HtoD", "HtoD", copies, 1, memory="pageable")] if copies else []}
    leaves = {"idle": [Leaf(cause, ns, ((f"in {cause}", ns // 2), ("", ns - ns // 2)), 1) for cause, ns in idle.items()],
              "start-up": [Leaf("unknown", start_up, (), 1)] if start_up else [], "wind-down": []}
    whole = sum(parts)
    trees = [tree(steps, ns, 0, lengths) for ns in recordings or (whole,)]
    sums = Sums(tuple(trees), whole, dict(zip(BRANCHES, parts, strict=True)), leaves, pieces, start_up, 0, 0, 0, ())
    known = {key: {("aten::mm", "[1]"): ns} for key, ns in kernels.items()} if issuers is None else issuers
    return Side(run, "nsys", sums, tuple((one,) for one in trees), known, gpus, 0)


times = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 10**10), max_size=5)
sides = st.builds(side, st.sampled_from(("x", "y")), times, times, steps=st.integers(0, 7), copies=st.integers(0, 10**9),
                  communication=st.integers(0, 10**9), start_up=st.integers(0, 10**9))


@settings(max_examples=150)
@given(st.lists(sides, min_size=2, max_size=4))
def test_parts_sum_to_their_node_in_each_run_and_so_do_their_differences(compared: list[Side]) -> None:
    found = difference(compared)
    for place, one in enumerate(compared):
        divisor = one.steps if found.per_step else 1
        assert found.whole.ns[place] == nearest(one.sums.whole_ns, divisor)
    assert sum(line.difference for line in found.below(()) if not line.is_outside) == found.whole.difference
    for line in found.lines[1:]:
        if parts := found.below(line.path):
            assert [sum(ns) for ns in zip(*(part.ns for part in parts), strict=True)] == list(line.ns), line.path


@given(sides)
def test_a_run_against_itself_is_zero_everywhere(one: Side) -> None:
    found = difference([one, one])
    assert {line.difference for line in found.lines} == {0}
    assert {line.names[0] == line.names[1] for line in found.lines} == {True}
    assert "in both; no part of it changed." in sentence(found)
    assert all(each.base == each.other and each.same is not False for each in properties(found))


@given(sides, sides)
def test_the_other_way_round_it_mirrors_itself(one: Side, two: Side) -> None:
    there, back = difference([one, two]), difference([two, one])
    mirrored = {frozenset(filter(None, line.names)) | {line.path[:-1]}: line.ns for line in back.lines}
    assert {frozenset(filter(None, line.names)) | {line.path[:-1]}: line.ns[::-1] for line in there.lines} == mirrored


def test_the_sentence_names_the_step_of_both_and_the_leaf_that_changed() -> None:
    base = side("w0", {"gemm": 98 * MS}, {"data loader": 57 * MS, "operators": 10 * MS})
    other = side("w4", {"gemm": 98 * MS}, {"data loader": 1 * MS, "operators": 11 * MS})
    (said,) = first(difference([base, other]))
    assert said == ("A step takes 110.0 instead of 165.0 ms (-55.00 ms, -33.3 %): the data loader 1.000 instead of 57.00 ms.")


@pytest.mark.parametrize(("before", "after", "median"), [
    ((20, 20, 20), (20, 20, 50), "takes 20.00 ms in both, the longest 50.00 ms, in after."),  # one step makes the difference
    ((20, 20, 26), (22, 22, 22), "takes 22.00 instead of 20.00 ms (+10.0 %), the longest 26.00 ms, in before."),  # and hides one
    ((20, 20, 20), (22, 22, 22), ""), ((20, 20, 21), (20, 21, 20), ""), ((20, 20), (20, 50), ""),
])
def test_few_steps_that_take_long_are_told_from_all(before: tuple[int, ...], after: tuple[int, ...], median: str) -> None:
    base, other = (side(run, {"gemm": sum(lengths) * MS}, {}, steps=len(lengths), lengths=[ms * MS for ms in lengths])
                   for run, lengths in (("before", before), ("after", after)))
    assert sentence(difference([base, other])).partition(" The median step ")[2] == median


def test_a_branch_of_which_all_changed_alike_is_named_itself() -> None:
    base, other = (side("x", dict.fromkeys("abcd", by * 10 * MS), {}, steps=0) for by in (1, 2))
    assert sentence(difference([base, other])) == (
        "First to last GPU work takes 80.00 instead of 40.00 ms (+40.00 ms, +100.0 %): computing 80.00 instead of 40.00 ms.")


def test_windows_as_long_with_fewer_kernels_are_not_told_as_faster_kernels() -> None:
    base = side("x", dict.fromkeys("abcdef", 10 * MS), {"operators": 40 * MS}, steps=0)
    other = side("x", dict.fromkeys("abcd", 10 * MS), {"operators": 60 * MS}, steps=0)
    assert sentence(difference([base, other])) == (
        "First to last GPU work takes 100.0 ms in both, with 4 instead of 6 computing kernels (-33.3 %): "
        "idle 60.00 instead of 40.00 ms.")


def test_start_up_is_named_where_it_competes_and_is_no_part_of_a_step() -> None:
    for steps, is_said in ((0, True), (2, False)):
        base, other = (side("x", {"a": 10 * MS}, {}, steps=steps, start_up=ns * MS) for ns in (100, 300))
        assert ("start-up (not part of it) 300.0 instead of 100.0 ms" in sentence(difference([base, other]))) == is_said


def test_a_kernel_under_another_name_at_the_same_operator_and_shapes_is_one_line() -> None:
    shapes = ("aten::conv", "[3, 3]")
    base = side("x", {"old": 10 * MS, "same": MS, "gone": MS}, {}, issuers={
        "old": {shapes: 10 * MS}, "same": {("b", ""): MS}, "gone": {("c", "[1]"): MS}})
    other = side("y", {"new": 4 * MS, "same": MS, "more": MS}, {}, issuers={
        "new": {shapes: 4 * MS}, "same": {("b", ""): MS}, "more": {("c", "[2]"): MS}})
    lines = {line.names: line.ns for line in difference([base, other]).below(("computing",))}
    assert lines == {("old", "new"): (10 * MS, 4 * MS), ("same", "same"): (MS, MS), ("gone", None): (MS, 0),
                     (None, "more"): (0, MS)}


def test_as_many_others_are_not_the_same() -> None:
    base, other = (side(run, {run: MS}, {}) for run in ("x", "y"))
    (kernels,) = (each for each in properties(difference([base, other])) if each.name == "kernels")
    assert kernels == ("kernels", "1, 1 only here", "1, 1 only here", False)


def test_two_programs_are_told_apart_first() -> None:
    said = first(difference([side("solver", {"stencil": MS}, {}), side("train", {"gemm": MS}, {}, issuers={"gemm": {}})]))
    assert said[0].startswith("No kernel is in both runs: solver has 1, train 1.") and len(said) == 1


@pytest.mark.parametrize(("base", "other", "expected"), [
    ((100,), (90,), "One recording of each: how much such runs vary is unknown."),
    ((100, 101, 99), (90, 91, 89), "3 and 3 recordings: the difference is beyond chance, 95 % interval"),
    ((100, 120, 80), (90, 110, 70), "3 and 3 recordings: the difference may be chance, 95 % interval"),
])
def test_certainty_is_by_recordings(base: tuple[int, ...], other: tuple[int, ...], expected: str) -> None:
    compared = [side(run, {"a": sum(those) * MS}, {}, steps=1, recordings=tuple(ns * MS for ns in those))
                for run, those in (("x", base), ("y", other))]
    said = certainty(difference(compared))
    assert said.startswith(expected) and ("5 of each would show" in said) == ("may be chance" in said)


def weak(gpus: int, waiting: int) -> Side:
    return side(f"g{gpus}", {"gemm": 100 * MS}, {}, communication=waiting * MS, gpus=gpus)


def strong(gpus: int, waiting: int) -> Side:
    return side(f"g{gpus}", {"gemm": 160 * MS // gpus}, {}, communication=waiting * MS, gpus=gpus)


@pytest.mark.parametrize(("made", "factor", "expected"), [(weak, 1.0, [100, 80]), (strong, 0.125, [100, 50])])
def test_efficiency_is_of_as_much_work_for_each_gpu_or_of_work_divided(
    made: object, factor: float, expected: list[int],
) -> None:
    one, eight = (weak(1, 0), weak(8, 25)) if made is weak else (strong(1, 0), strong(8, 20))
    found = difference([one, weak(2, 1) if made is weak else strong(2, 5), eight])
    assert scale(found, eight) == factor
    assert [round(efficiencies(found)[place]) for place in (0, 2)] == expected
    (said,) = first(found)
    assert f"lost in g8: exposed communication {25 if made is weak else 20}.00 ms" in said and "1, 2, 8 GPUs" in said
