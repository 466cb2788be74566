"""ncu_plan: on the simulated job the measured stretches hold the configurations that were asked for, and each rule alone."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nsightlens.analyses import ncu_plan
from nsightlens.errors import UsageError
from tests.catalogs import asking, catalog
from tests.fixtures.simulated_run import nsys
from tests.wrappers.stage import WRAPPERS

Kernel = dict[str, Any]


FILTERED: Kernel = {"short_name": "exchange_between_ranks", "family": "collective"}
"""A collective that the wrapper does not know: beside it no start goes without a filter."""


def planned(kernels: list[Kernel], **parameters: Any) -> list[dict[str, Any]]:
    rows = [{"run": "r", "tool": "nsys", "rank": 0, "profile_id": "p", "process_id": "q", "kernel_id": i, "launch_index": i,
             "start_ns": 1000 * i, "duration_ns": 100, "name": k["short_name"], "kernel_key": k["short_name"], "grid_x": 1,
             "family": "gemm"} | k for i, k in enumerate(kernels)]
    connection = catalog(kernels=rows)
    ask = asking(connection)
    found: list[dict[str, Any]] = ncu_plan.analyse(ask, **parameters).to_pylist()
    return found


def told(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    columns = columns or ("kernel", "launch_skip", "launch_count", "configurations")
    return [tuple(row[column] for column in columns) for row in rows]


@pytest.mark.parametrize("parameters", [{}, {"metric_set": "full", "budget_s": 300}])
def test_the_stretches_hold_90_percent_of_the_simulated_time(parameters: dict[str, Any], bundled_store: Path) -> None:
    """Count as ncu does: among the launches of a rank whose base name is the one asked for, in the order of launch."""
    import nsightlens as nl

    plan = nl.open(bundled_store).view("ncu_plan", **parameters).to_pylist()
    launches = nsys(0, 'SELECT s.value, d.value, k.gridX, k.gridY, k.gridZ, k.blockX, k."end" - k.start '
                       "FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName "
                       "JOIN StringIds d ON d.id = k.demangledName ORDER BY k.correlationId, k.graphNodeId")
    time: Counter[Any] = Counter()
    for _, full, *configuration, duration in launches:
        if "nccl" not in full:
            time[full, *configuration] += duration
    measured = set()
    for row in plan:
        word = (row["kernel"] or "").partition("_])")[2].partition("([")[0]
        found = [k for k in launches if "nccl" not in k[1]] if row["kernel"] is None else [
            k for k in launches if (k[0] == row["kernel"] if row["name_base"] == "function" else word and word in k[1])]
        stretch = found[row["launch_skip"] : row["launch_skip"] + row["launch_count"]]
        assert len(stretch) == row["launch_count"] and not any("nccl" in full for _, full, *_ in stretch)
        measured |= {(full, *configuration) for _, full, *configuration, _ in stretch}
    assert any(row["name_base"] == "demangled" for row in plan) == bool(parameters), "without a filter, where that fits"
    assert sum(time[key] for key in measured) >= 0.9 * sum(time.values())
    assert 90 <= sum(row["time_pct"] for row in plan) <= 100


def test_the_first_step_is_passed_over_and_a_step_suffices() -> None:
    step: list[Kernel] = [{"short_name": "a", "grid_x": 1}, {"short_name": "b"}, {"short_name": "a", "grid_x": 2}]
    kernels = [k | {"step": number} for number in (4, 5, 6) for k in step]
    assert told(planned([*kernels, FILTERED], cover=100)) == [("a", 2, 2, 2), ("b", 1, 1, 1)]


def test_what_comes_in_the_warm_up_only_is_measured_there() -> None:
    kernels = [{"short_name": "once"}] + [{"short_name": "a"} for _ in range(9)]
    assert told(planned([*kernels, FILTERED], cover=100)) == [("a", 1, 1, 1), ("once", 0, 1, 1)]
    assert told(planned([{"short_name": "a"} for _ in range(10)])) == [("a", 2, 1, 1)]


def test_a_trace_that_begins_later_is_measured_for_a_whole_step() -> None:
    kernels = [{"short_name": "a", "tool": "kineto", "step": number, "grid_x": i} for number in (10, 11) for i in range(3)]
    assert told(planned(kernels, cover=30)) == [("a", 33, 3, 1)]


def test_one_start_without_a_filter_where_it_is_cheaper() -> None:
    """It measures all but collectives from the first to the last launch that is wanted, and costs 30 s and 0.4 s for each."""
    collective = {"short_name": "ncclDevKernel", "family": "collective"}
    step: list[Kernel] = [{"short_name": "a"}, collective, *[{"short_name": "x"}] * 5, {"short_name": "b"}]
    kernels = [k | {"step": number} for number in (0, 1, 2) for k in step]
    assert told(planned(kernels, cover=100), "kernel", "launch_skip", "launch_count", "configurations", "time_pct",
                "estimated_s") == [(None, 7, 7, 3, 100.0, 32.8)]
    few = told(planned(kernels, cover=100, metric_set="full", budget_s=32), "kernel", "fits")
    assert (None, True) not in few and len(few) == 3, "it does not fit into the budget"
    apart: list[Kernel] = [{"short_name": name, "step": number} for number in (0, 1) for name in ("a", *["x"] * 200, "b")]
    assert len(planned(apart, cover=100)) == 3, "what lies between would take longer than two starts"
    later = [k | {"tool": "kineto", "step": number} for number in (10, 11) for k in step]
    assert told(planned(later, cover=100)) == [(None, 77, 7, 3)], "a trace that begins later: a whole step"


def test_the_wrapper_leaves_out_the_collectives_that_the_plan_counts_on() -> None:
    wrapper = (WRAPPERS / "ncu_wrapper.sh").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^nsl_collectives=\(([^)]*)\)", wrapper, re.MULTILINE)
    assert re.fullmatch(r"\^\((.*)\)", ncu_plan._LEFT_OUT)[1].split("|") == listed.split()  # type: ignore[index]


def test_far_apart_configurations_take_a_start_each() -> None:
    grids = [2, *[1] * 498, 3]
    kernels = [{"short_name": "a", "step": number, "grid_x": grid} for number in (0, 1) for grid in grids]
    assert told(planned(kernels, cover=100)) == [("a", 500, 2, 2), ("a", 999, 1, 1)]


def test_what_lies_between_is_measured_where_that_costs_less_than_a_start() -> None:
    """Of 16 passes at 25 ms: 74 launches take less than the 30 s of a start, 75 more."""
    for between, starts in ((74, [("a", 0, 76, 2)]), (75, [("a", 0, 1, 1), ("a", 76, 1, 1)])):
        others: list[Kernel] = [{"short_name": "a", "grid_x": 2, "family": "collective"}] * between
        kernels: list[Kernel] = [{"short_name": "a", "grid_x": 1}, *others, {"short_name": "a", "grid_x": 3}]
        assert told(planned([k | {"step": 0} for k in kernels], cover=100)) == starts


def test_no_more_is_planned_once_the_share_is_reached() -> None:
    kernels: list[Kernel] = [{"short_name": "a", "duration_ns": 90}, {"short_name": "b", "duration_ns": 10}]
    assert told(planned(kernels), "kernel", "time_pct") == [("a", 90.0)]


def test_collectives_and_uncovered_kernels_are_left_out() -> None:
    kernels = [{"short_name": "ncclDevKernel", "family": "collective", "duration_ns": 9000},
               {"short_name": "a", "duration_ns": 95}, {"short_name": "b", "duration_ns": 5}]
    assert told(planned(kernels), "kernel", "total_ns", "time_pct") == [("a", 95, 95.0)]


def test_cutlass_kernels_are_told_apart_by_their_word() -> None:
    names = [f"void cutlass::Kernel2<cutlass_80_tensorop_{which}_align8>(T1::Params)" for which in ("x", "xx")]
    kernels = [{"short_name": "Kernel2", "name": name, "kernel_key": name, "duration_ns": 900 - len(name)} for name in names * 5]
    assert told(planned([*kernels, FILTERED], cover=100), "kernel", "name_base", "launch_skip") == [
        ("regex:(^|[^A-Za-z0-9_])cutlass_80_tensorop_x_align8([^A-Za-z0-9_]|$)", "demangled", 1),
        ("regex:(^|[^A-Za-z0-9_])cutlass_80_tensorop_xx_align8([^A-Za-z0-9_]|$)", "demangled", 1)]


def test_the_lowest_rank_or_the_one_asked_for() -> None:
    kernels = [{"short_name": f"of{rank}", "rank": rank, "process_id": f"q{rank}"} for rank in (3, 1, 2)]
    assert told(planned(kernels), "rank", "kernel") == [(1, "of1")]
    assert told(planned(kernels, which_rank=3), "rank", "kernel") == [(3, "of3")]
    assert planned(kernels, which_rank=7) == [] and planned(kernels, which_run="other") == []


def test_the_budget_takes_most_time_per_second_first() -> None:
    kernels = [{"short_name": name, "duration_ns": n} for name, n in (("a", 50), ("b", 30), ("c", 20))]
    rows = planned([*kernels, FILTERED], cover=100, budget_s=61)
    assert told(rows, "kernel", "passes", "estimated_s", "fits") == [
        ("a", 16, 30.4, True), ("b", 16, 30.4, True), ("c", 16, 30.4, False)]


@pytest.mark.parametrize("parameters", [{"cover": 0}, {"cover": 101}, {"metric_set": "everything"}])
def test_impossible_parameters_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        planned([{"short_name": "a"}], **parameters)


@pytest.mark.parametrize("name", ["regex:.*", "regex:", "regex:gemm|x(y)", "gemm", "a.regex:b"])
def test_a_name_that_reads_as_an_expression_finds_itself_alone(name: str) -> None:
    """ncu takes what begins with regex: for an expression that is searched for."""
    (row,) = planned([{"short_name": name}])
    asked = row["kernel"]
    assert row["name_base"] == "function" and row["launch_count"] == 1

    def finds(other: str) -> bool:
        expression = asked.removeprefix("regex:")
        return asked == other if expression == asked else re.search(expression, other) is not None

    assert [other for other in {name, f"{name}x", f"x{name}", "gemm", "regex:a"} if finds(other)] == [name]
