"""What is said of simulated jobs, each with one fault: its cause is named, and its amount is what curing it gains."""

from __future__ import annotations

import pytest

from tests.diagnosis.confusion import KINDS, Row, Table, case, count, fault, read

NUMBERS = {
    fault.LOADER: 15, fault.PAGEABLE: 1, fault.ALLOCATION: 2, fault.OVERHEAD: 78, fault.FP32: 4, fault.UNFUSED: 155,
    fault.SLOW_STEP: 6, fault.BUCKET: 7, fault.SLOW_LINK: 8, fault.SLOW_GPU: 9, fault.LATE_HOST: 25, "throttling": 11,
    fault.ITEM: 12, fault.TENSOR_PARALLEL: 13, fault.STAGE: 14}
"""Of each kind a case in which curing it gains 6 % or more."""


@pytest.mark.parametrize("first", range(3))
def test_each_planted_fault_is_named_with_its_gain(first: int) -> None:
    """A store holds a third of them: what a store costs is paid three times, and processors share the work."""
    cases = {kind: case(NUMBERS[kind]) for kind in [*KINDS][first::3]}
    read([job for each in cases.values() for job in (each.healthy, each.one)])
    for kind, each in cases.items():
        table = Table({other: Row() for other in KINDS}, Row())
        wrong = count(each.healthy, each.one, table)
        assert table.kinds[kind] == Row(1, 1, 1, 1), (kind, wrong)


def test_a_fault_changes_no_other_duration() -> None:
    """The gain of curing a fault is by the same random numbers: only what it adds or prolongs differs."""
    those = case(NUMBERS[fault.UNFUSED])
    with_it, without = ([record.end - record.start for record in each.records[0].work
                         if record.work.collective is None and not _is_tiny(record.work)] for each in (those.one, those.healthy))
    assert with_it == without


def _is_tiny(work: object) -> bool:
    return any(opened.name == "aten::mul" for opened in work.ranges)  # type: ignore[attr-defined]
