"""What is said of simulated jobs, each with one fault: its cause is named, and its amount is what curing it gains."""

from __future__ import annotations

import random
from functools import cache

import pytest

from tests.diagnosis.confusion import KINDS, Case, Row, Table, case, count, fault, job, planted, read

KINETO, NSYS = 0, 6
"""Seeds of healthy jobs of two ranks, under each tool."""
PLANTED = {
    KINETO: {fault.PAGEABLE: 0, fault.ALLOCATION: 1, fault.FP32: 1, fault.UNFUSED: 0, fault.BUCKET: 3, fault.SLOW_LINK: 6,
             fault.SLOW_GPU: 3, "throttling": 3},
    NSYS: {fault.LOADER: 1, fault.OVERHEAD: 1, fault.SLOW_STEP: 1, fault.LATE_HOST: 1, fault.ITEM: 0}}
"""Of each kind a fault of which curing gains such a job 6 % or more, by the number that it is drawn with."""
OF_THEIR_OWN = {fault.TENSOR_PARALLEL: 13, fault.STAGE: 14}
"""Those that not every job can have, by case."""


@cache
def _cases(seed: int) -> dict[str, Case]:
    healthy = job(seed)
    return {kind: Case(healthy, healthy.with_faults((planted(healthy, kind, random.Random(f"fault {number}")),)), None)
            for kind, number in PLANTED[seed].items()}


@pytest.mark.parametrize("seed", [*PLANTED, None])
def test_each_planted_fault_is_named_with_its_gain(seed: int | None) -> None:
    """A store holds all that one healthy job can have, and that job once."""
    cases = {kind: case(number) for kind, number in OF_THEIR_OWN.items()} if seed is None else _cases(seed)
    read(list({id(each): each for one in cases.values() for each in one.jobs()}.values()))
    for kind, each in cases.items():
        table = Table({other: Row() for other in KINDS}, Row())
        wrong = count(each.healthy, each.one, table)
        assert table.kinds[kind] == Row(1, 1, 1, 1), (kind, wrong)


def test_every_kind_is_planted() -> None:
    assert sorted([*OF_THEIR_OWN, *(kind for kinds in PLANTED.values() for kind in kinds)]) == sorted(KINDS)


def test_a_fault_changes_no_other_duration() -> None:
    """The gain of curing a fault is by the same random numbers: only what it adds or prolongs differs."""
    those = _cases(KINETO)[fault.UNFUSED]
    with_it, without = ([record.end - record.start for record in each.records[0].work
                         if record.work.collective is None and not _is_tiny(record.work)] for each in (those.one, those.healthy))
    assert with_it == without


def _is_tiny(work: object) -> bool:
    return any(opened.name == "aten::mul" for opened in work.ranges)  # type: ignore[attr-defined]
