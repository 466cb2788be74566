"""How much of each rank's communication met its calls on other ranks."""

from __future__ import annotations

from nsightlens.analyses import collective_coverage
from tests.analyses.test_rank_skew import kernel, numbered_calls, of_ranks


def test_what_met_no_call_of_another_rank_is_counted() -> None:
    alone = [kernel(1, 90 + place, 20_000_000 + 1_000 * place, 20_000_700 + 1_000 * place, group_name="h", group_size=2,
                    group_seq=place) for place in range(2)]
    unknown = kernel(2, 99, 0, 100) | {"rank": None}
    rows = collective_coverage.analyse(of_ranks([*numbered_calls(8), *alone, unknown], {0: 0, 1: 0, 2: 0})).to_pylist()
    assert [(row["rank"], row["kernels"], row["unmatched_kernels"], row["total_ns"], row["unmatched_ns"], row["unmatched_pct"],
             row["left_out"]) for row in rows] == [
        (0, 8, 0, 4000, 0, 0.0, None),
        (1, 10, 2, 5400, 1400, 25.9, None),
        (None, 1, 1, 100, 100, 100.0, "its number is not known")]
    assert {(row["run"], row["tool"]) for row in rows} == {("r", "kineto")}


def test_kernels_that_took_no_time_have_no_share() -> None:
    (row,) = collective_coverage.analyse(of_ranks([kernel(0, 1, 5, 5)], {0: 0})).to_pylist()
    assert (row["kernels"], row["total_ns"], row["unmatched_pct"]) == (1, 0, None)
