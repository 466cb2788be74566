"""Which processes meet, by what their launches are placed, and what the evidence says: catalogs of a few rows."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from nsightlens.matching import cross_tool
from nsightlens.matching.launch_sequence import Ask
from tests.catalogs import catalog

Rows = list[dict[str, Any]]


def recording(tool: str, first: int, names: str, *, run: str = "r", steps: str = "", rank: int | None = 0) -> Rows:
    """Return the kernels of a process, a letter each; `steps`: their steps, a dot where there is none."""
    profile = f"{run} {tool}"
    of = {"run": run, "tool": tool, "rank": rank, "profile_id": profile, "process_id": f"{profile}:{rank}", "grid_x": 1}
    return [{**of, "kernel_id": first + i, "launch_index": i, "kernel_key": name,
             "step": int(steps[i]) if steps and steps[i] != "." else None} for i, name in enumerate(names)]


def inside(rows: Rows, *steps: int) -> Rows:
    """Return the rows of ncu with the step that it printed for each."""
    cell = '  1  "<default domain>:step {}:none:none:none:none:none:none"'
    return [row | {"nvtx_range": cell.format(step)} for row, step in zip(rows, steps, strict=True)]


def asking(connection: duckdb.DuckDBPyConnection) -> Ask:
    return lambda query, values: connection.sql(query, params=values).to_arrow_table()


def met(kernels: Rows, profiles: Rows | None = None) -> list[tuple[int, int, str]]:
    found = cross_tool.matches(asking(catalog(kernels=kernels, profiles=profiles or [])), ["r"])
    return [(row["kernel_id"], row["other_kernel_id"], row["evidence"]) for row in found.to_pylist()]


def test_timelines_meet_step_by_step_where_both_know_steps() -> None:
    kernels = recording("nsys", 0, "abcd", steps=".3.4") + recording("kineto", 10, "abcd", steps=".3.4")
    assert met(kernels) == [(0, 10, "before the first step"), (1, 11, "step 3"), (2, 12, "after step 3"), (3, 13, "step 4")]
    for one, other in (("", ".3.4"), (".3.4", "")):
        kernels = recording("nsys", 0, "abcd", steps=one) + recording("kineto", 10, "abcd", steps=other)
        assert met(kernels) == [(i, 10 + i, "whole recording") for i in range(4)]


def test_a_measured_launch_has_its_place_in_its_step_the_first_launch_of_all_included() -> None:
    timeline = recording("nsys", 0, "abab", steps="1122")
    measured = inside(recording("ncu", 10, "ab"), 1, 2)
    without_filter: Rows = [{"run": "r", "tool": "nsys", "profile_id": "r nsys", "from_start": True},
                            {"run": "r", "tool": "ncu", "profile_id": "r ncu", "launch_skip": 0}]
    for profiles in ([], without_filter):
        assert met(timeline + measured, profiles) == [(0, 10, "NVTX ranges, step 1"), (3, 11, "NVTX ranges, step 2")]


def test_a_measured_launch_has_its_place_in_the_ranges_that_both_tools_name() -> None:
    """All launches are alike. Of the ranges around them ncu printed one that the timeline lacks, and lacks one that this has."""
    tree = [(None, 0, "forward", None), (0, 1, "layer", "net"), (None, 0, "backward", None), (2, 1, "layer", "net"),
            (3, 2, "hook", None)]
    ranges = [{"run": "r", "tool": "nsys", "profile_id": "r nsys", "process_id": "r nsys:0", "kind": "nvtx_push_pop",
               "range_id": i, "parent_id": parent, "depth": depth, "name": name, "domain": domain}
              for i, (parent, depth, name, domain) in enumerate(tree)]
    timeline = [row | {"launch_id": i, "range_id": inner} for i, (row, inner) in
                enumerate(zip(recording("nsys", 0, "aaaaa", steps="11111"), (1, 4, 0, None, 2), strict=True))]
    default = "<default domain>"
    around: list[list[str]] = [
        [f"{default}:forward", "net:layer"], [f"{default}:backward", "net:layer"], [f"{default}:forward"], []]
    printed = [[f"{default}:step 1", *some, "net:mine"] for some in around]
    measured = [row | {"nvtx_range": "1 " + " ".join(f'"{one}:none:none:none:none:none:none"' for one in names)}
                for row, names in zip(recording("ncu", 10, "aaaa"), printed, strict=True)]
    found = cross_tool.matches(asking(catalog(kernels=timeline + measured, ranges=ranges)), ["r"]).to_pylist()
    assert [(row["kernel_id"], row["other_kernel_id"], row["evidence"]) for row in found] == [
        (i, 10 + i, "NVTX ranges, step 1") for i in range(4)]


def test_a_launch_whose_step_is_unknown_is_placed_between_others() -> None:
    measured = inside(recording("ncu", 10, "abc"), 1, 1, 2)
    measured[1]["nvtx_range"] = measured[1]["nvtx_range"].replace("step 1", "mine")
    assert met(recording("nsys", 0, "aabc", steps="0112") + measured) == [
        (1, 10, "NVTX ranges, step 1"), (2, 11, "NVTX ranges between known launches"), (3, 12, "NVTX ranges, step 2")]


def test_processes_of_one_profile_are_placed_by_their_steps_too() -> None:
    kernels = [row for rank in (0, 1) for row in recording("nsys", 100 * rank, "abab", steps="1122", rank=rank)]
    measured = inside(recording("ncu", 10, "ab"), 1, 2) + inside(recording("ncu", 110, "b", rank=1), 2)
    assert [pair[:2] for pair in met(kernels + measured)] == [(0, 10), (3, 11), (103, 110)]


def test_what_nsys_knows_of_both_leads_from_kineto_to_ncu() -> None:
    """Kineto lacks the first launch and knows no steps."""
    kernels = recording("nsys", 0, "cabab", steps="11122") + recording("kineto", 10, "abab")
    found = met(kernels + inside(recording("ncu", 20, "b"), 2))
    assert found == [*((i + 1, 10 + i, "whole recording") for i in range(4)), (4, 20, "NVTX ranges, step 2"),
                     (13, 20, "through nsys: NVTX ranges, step 2")]
    kernels = recording("nsys", 0, "cabd", steps="1112") + recording("kineto", 10, "abd")
    assert met(kernels + inside(recording("ncu", 20, "a"), 1))[-1] == (10, 20, "through nsys: NVTX ranges, step 1")


@pytest.mark.parametrize(("kernel_filter", "launch_skip", "from_start", "places"), [
    ("function a", 0, True, [0, 2]), ("function a", 1, True, [2, 4]), ("function a", 0, False, []),
    ("function a", None, True, []), ("function a", None, False, []),
    (None, 0, True, []), (None, None, None, []), ("function b", 0, True, []),
])
def test_a_launch_has_its_number_in_the_filter_only_where_all_of_it_is_known(
    kernel_filter: str | None, launch_skip: int | None, from_start: bool | None, places: list[int],
) -> None:
    kernels = [row | {"short_name": row["kernel_key"]} for row in recording("nsys", 0, "ababab")]
    measured = [row | {"ncu_id": i} for i, row in enumerate(recording("ncu", 10, "aa"))]
    profiles: Rows = [
        {"run": "r", "tool": "nsys", "profile_id": "r nsys", "from_start": from_start},
        {"run": "r", "tool": "ncu", "profile_id": "r ncu", "kernel_filter": kernel_filter, "launch_skip": launch_skip}]
    assert met(kernels + measured, profiles) == [
        (place, 10 + i, f"launch {i + (launch_skip or 0)} of ncu's filter") for i, place in enumerate(places)]


def test_the_number_in_the_filter_is_a_place_in_nsys_only() -> None:
    """Kineto does not say which launches it lacks."""
    kernels = [row | {"short_name": row["kernel_key"]} for row in recording("kineto", 0, "ababab")]
    measured = [row | {"ncu_id": i} for i, row in enumerate(recording("ncu", 10, "aa"))]
    assert met(kernels + measured, [
        {"run": "r", "tool": "kineto", "profile_id": "r kineto", "from_start": True},
        {"run": "r", "tool": "ncu", "profile_id": "r ncu", "kernel_filter": "function a", "launch_skip": 0}]) == []


def test_two_runs_meet_in_their_timelines_in_either_order_and_never_in_ncu() -> None:
    for tool, pairs in (("nsys", 3), ("kineto", 3), ("ncu", 0)):
        ask = asking(catalog(kernels=recording(tool, 0, "abc", run="a") + recording(tool, 10, "abc", run="b")))
        for base, other in (("a", "b"), ("b", "a")):
            found = cross_tool.between(ask, base, other)
            first, second = (0, 10) if base == "a" else (10, 0)
            expected = [(base, other, first + i, second + i) for i in range(pairs)]
            rows = found.to_pylist()
            assert [(r["run"], r["other_run"], r["kernel_id"], r["other_kernel_id"]) for r in rows] == expected, (tool, base)


def test_one_tool_of_one_run_does_not_meet_itself() -> None:
    kernels = recording("nsys", 0, "abc")
    again = [row | {"kernel_id": 10 + i, "profile_id": "q", "process_id": "q:0"} for i, row in enumerate(kernels)]
    assert met(kernels + again) == []


def test_a_process_of_unknown_rank_meets_the_only_one_of_another_tool_and_none_of_several() -> None:
    unknown, ranks = recording("nsys", 0, "abc", rank=None), [recording("kineto", 10 * rank, "abc", rank=rank) for rank in (1, 2)]
    assert [pair[:2] for pair in met(unknown + ranks[0])] == [(0, 10), (1, 11), (2, 12)]
    assert met(unknown + ranks[0] + ranks[1]) == []
    assert met(recording("nsys", 0, "abc", rank=2) + ranks[0]) == []


def test_each_rank_meets_itself_alone_and_the_work_grows_with_the_ranks() -> None:
    """Ranks by the thousand: their pairs are not gone through, which are millions."""
    ranks = range(3000)
    processes = [{"run": "r", "tool": tool, "rank": rank, "profile_id": tool, "process_id": f"{tool}:{rank}", "launches": 1}
                 for tool in ("nsys", "kineto") for rank in ranks]
    looked_at = 0

    class Looked(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            nonlocal looked_at
            looked_at += 1
            return super().__getitem__(key)

    found = list(cross_tool._meetings([Looked(process) for process in processes]))
    assert [(one["process_id"], other["process_id"]) for one, other in found] == [(f"nsys:{r}", f"kineto:{r}") for r in ranks]
    assert looked_at < 30 * len(processes)
