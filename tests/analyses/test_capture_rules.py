"""Rules about the capture: made cases that must fire each, and near misses that must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyses.test_findings import WHERE, WHERE_OF_PROCESS, of

Rows = dict[str, list[dict[str, Any]]]


def busy(process: dict[str, Any], lengths: list[int], **columns: Any) -> list[dict[str, Any]]:
    """Return kernels of one configuration that follow one another, each of so many ns."""
    starts = [sum(lengths[:place]) for place in range(len(lengths))]
    same = WHERE | process | {"name": "mm", "kernel_key": "mm", "family": "gemm", "device_id": "g", "stream": 7}
    return [same | {"kernel_id": place + 1000 * process.get("rank", 0), "start_ns": start, "duration_ns": length} | columns
            for place, (start, length) in enumerate(zip(starts, lengths, strict=True))]


def stepped(lengths: list[int]) -> Rows:
    """Return a process with steps of so many ns, in which the GPU always computes."""
    kernels = busy({}, lengths)
    steps = [WHERE | {"range_id": row["kernel_id"], "kind": "step", "step": row["kernel_id"], "name": "step",
                      "start_ns": row["start_ns"], "duration_ns": row["duration_ns"]} for row in kernels]
    return {"kernels": kernels, "ranges": steps, "processes": [WHERE_OF_PROCESS]}


def ranks(*slowness: float, few: bool = False) -> Rows:
    """Return ranks whose kernels take 1000 ns, that many times; few: only every second of their configurations."""
    rows: Rows = {"kernels": [], "processes": []}
    for rank, factor in enumerate(slowness):
        who = {"profile_id": f"p{rank}", "process_id": f"p{rank}:0", "rank": rank}
        rows["processes"].append(WHERE_OF_PROCESS | who)
        kernels = busy(who, [round(1000 * (1 if few and place % 2 else factor)) for place in range(8)])
        rows["kernels"] += [row | {"grid_x": place} for place, row in enumerate(kernels)]
    return rows


def rules(rows: Rows) -> dict[str, dict[str, Any]]:
    return {row["rule"]: row for row in of(**rows)}


def test_first_steps_that_are_longer_are_warm_up() -> None:
    row = rules(stepped([900, 500, 100, 110, 90, 100]))["warm_up"]
    assert (row["total_ns"], row["of_ns"], row["rank"]) == (1200, 1800, 3)
    assert "first 2 steps are up to 9.0 times" in row["what"]


@pytest.mark.parametrize("lengths", [
    [149, 100, 100, 100, 100], [900, 100, 100], [100, 100, 900, 100, 100, 100], [160] + [100] * 20])
def test_no_warm_up(lengths: list[int]) -> None:
    """Not 1.5 times as long; too few steps to judge; not the first; less than 5 % of the time."""
    assert "warm_up" not in rules(stepped(lengths))


def test_a_rank_whose_kernels_are_all_slower_has_a_slower_gpu() -> None:
    row = rules(ranks(1, 1, 1.1, 1))["clock"]
    assert (row["rank"], row["total_ns"], row["of_ns"]) == (2, 800, 8800)
    assert row["what"].startswith("kernels take 1.10 times as long as the same kernels on the median rank")


@pytest.mark.parametrize("rows", [ranks(1, 1, 1.04), ranks(1, 1.5), ranks(1, 1, 1.5, few=True)])
def test_no_slower_gpu(rows: Rows) -> None:
    """Within 5 %; of two ranks none is the usual one; only some kernels are slower: other work."""
    assert "clock" not in rules(rows)


def test_kernels_that_become_slower_say_that_the_gpu_slows_down() -> None:
    row = rules({"kernels": busy({}, [100] * 30 + [130] * 30), "processes": [WHERE_OF_PROCESS]})["clock"]
    assert "in the last third of the capture" in row["what"] and "1.30 times" in row["what"]
    assert 0 < row["total_ns"] <= 30 * 30
    assert "clock" not in rules({"kernels": busy({}, [130] * 30 + [100] * 30), "processes": [WHERE_OF_PROCESS]})


@pytest.mark.parametrize(("held", "fires"), [(60, True), (51, True), (50, False)])
def test_a_profiler_that_held_up_threads_is_named(held: int, fires: bool) -> None:
    rows = stepped([250] * 4) | {
        "api_calls": [WHERE | {"launch_id": 1, "name": "cudaLaunchKernel", "thread": 1, "start_ns": 0, "duration_ns": 1000}],
        "overheads": [WHERE | {"source": "profiler", "thread": 1, "start_ns": 100, "duration_ns": held}]}
    found = rules(rows)
    assert ("profiler" in found) is fires
    if fires:
        assert (found["profiler"]["total_ns"], found["profiler"]["of_ns"]) == (held, 1000)
        assert found["profiler"]["more"] == "nsightlens show profiler_share", "the view that has this share"


@pytest.mark.parametrize(("code", "severity", "fires"), [
    ("events_lost", "warning", True), ("truncated", "error", True), ("no_steps", "warning", False), ("truncated", "info", False)])
def test_what_was_lost_forbids_to_say_that_nothing_is_worth_doing(code: str, severity: str, fires: bool) -> None:
    defect = {"run": "r", "tool": "nsys", "profile_id": "p", "path": "a", "severity": severity, "code": code, "count": 7,
              "message": "7 events are missing."}
    found = rules(stepped([250] * 4) | {"diagnostics": [defect]})
    assert ("capture" in found, found["nothing"]["what"].startswith("nothing is worth doing")) == (fires, not fires)
    if fires:
        assert found["capture"]["what"] == f"{code.replace('_', ' ')} (7 times): 7 events are missing"


@pytest.mark.parametrize(("world", "fires"), [(2, True), (1, False), (None, False)])
def test_ranks_that_were_not_captured_are_counted(world: int | None, fires: bool) -> None:
    found = rules(stepped([250] * 4) | {"processes": [WHERE_OF_PROCESS | {"world_size": world}]})
    assert ("capture" in found) is fires
    if fires:
        assert found["capture"]["what"] == "1 of 2 ranks were captured"
