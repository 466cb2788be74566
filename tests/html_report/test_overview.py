"""The first part of a report: its sentences, its figures, and what it says where there is nothing to say."""

from __future__ import annotations

from typing import Any

from nsightlens.html_report.overview import overview

FINDING: dict[str, Any] = {
    "run": "r", "tool": "nsys", "cause": "API calls", "subject": "cudaMalloc", "who": "rank 3", "total_ns": 1_500_000_000,
    "of_ns": 5_000_000_000, "share_pct": 30.0, "winnable_ns": None, "what": "it waits", "action": "wait less",
    "against": None, "confidence": "high", "command": ["show", "cuda_api_summary"]}
NONE: dict[str, list[dict[str, Any]]] = {
    "profile_overview": [], "diagnostic_summary": [], "verdict": [], "findings": [], "busy_time": [],
    "gpu_summary": [], "step_breakdown": []}


def test_the_verdict_is_that_of_the_first_tool() -> None:
    rows = [{"run": "r", "tool": tool, "kind": kind, "text": f"{tool} {kind}"}
            for tool in ("nsys", "kineto") for kind in ("verdict", "finding")]
    found = overview("r", NONE | {"verdict": rows, "findings": [FINDING, FINDING | {"tool": "kineto"}]})
    assert found.verdict == ("nsys verdict",)
    assert [card.row["tool"] for card in found.findings] == ["nsys"]


def test_findings_of_other_runs_are_theirs() -> None:
    verdict = {"run": "s", "tool": "nsys", "kind": "verdict", "text": "computing"}
    assert overview("s", NONE | {"verdict": [verdict], "findings": [FINDING]}).findings == ()


def test_a_card_has_its_time_its_whole_and_what_can_be_won() -> None:
    """Start-up is no part of a window: it has no whole."""
    verdict = {"run": "r", "tool": "nsys", "kind": "verdict", "text": "computing"}
    start_up = FINDING | {"of_ns": None, "share_pct": None}
    cards = overview("r", NONE | {"verdict": [verdict], "profile_overview": [_profile("r"), _profile("s")], "findings": [
        FINDING, FINDING | {"winnable_ns": 2_000_000}, start_up]}).findings
    assert [card.figures for card in cards] == [
        ("1.500 s of 5.000 s", "30.0 %"), ("1.500 s of 5.000 s", "30.0 %", "2.000 ms to win"), ("1.500 s",)]
    assert {str(card.command) for card in cards} == {"nsightlens show cuda_api_summary --run r"}


def _profile(run: str) -> dict[str, Any]:
    return {"run": run, "simulated": False, "tool": None}


def test_tiles_are_of_one_tool_and_range_over_its_gpus() -> None:
    gpu = {"run": "r", "tool": "kineto", "communication_ns": 9, "exposed_communication_ns": 2_000_000, "idle_ns": 1000,
           "span_ns": 9_000_000}
    rows = [gpu, gpu | {"exposed_communication_ns": 5_000_000}]
    used = [{"run": "r", "tool": tool, "busy_pct": pct, "span_ns": 8_000_000}
            for tool, pct in (("kineto", 50.0), ("kineto", 75.5), ("nsys", 99.0))]
    steps = [{"run": "r", "tool": tool, "step": 1, "step_ns": ns} for tool, ns in (("kineto", 7_000_000), ("kineto", 9_000_000))]
    tiles = {tile.name: tile for tile in overview(
        "r", NONE | {"busy_time": rows, "gpu_summary": used[:2], "step_breakdown": steps}).tiles}
    assert tiles["Step"].text == "7.000 ms – 9.000 ms" and tiles["GPU busy"].text == "50.0 % – 75.5 %"
    assert tiles["Exposed communication"].text == "2.000 ms – 5.000 ms" and tiles["GPU idle"].text == "1.000 µs"
    assert {tile.name: tile.text for tile in overview("r", NONE | {"gpu_summary": used}).tiles}["GPU busy"] == "99.0 %"


def test_each_figure_names_the_time_that_it_is_of() -> None:
    """The verdict, and so "GPU busy", are of the whole capture or its steps; idle time between kernels is not."""
    used = {"run": "r", "tool": "nsys", "busy_pct": 49.1, "span_ns": 618_400_000}
    busy = {"run": "r", "tool": "nsys", "communication_ns": 0, "idle_ns": 38_610_000, "span_ns": 342_400_000}
    step = {"run": "r", "tool": "nsys", "step": None, "step_ns": 618_400_000}
    answers = NONE | {"busy_time": [busy], "gpu_summary": [used], "step_breakdown": [step]}
    assert [(tile.name, tile.text, tile.note) for tile in overview("r", answers).tiles] == [
        ("GPU busy", "49.1 %", "the whole capture (618.4 ms), nsys"),
        ("GPU idle", "38.61 ms", "first to last GPU work (342.4 ms), nsys")]
    stepped = overview("r", answers | {"step_breakdown": [step | {"step": 3}]}).tiles
    assert stepped[1].note == "first step's start to last step's end (618.4 ms), nsys"


def test_without_communication_or_steps_there_is_no_tile_for_them() -> None:
    gpu = {"run": "r", "tool": "nsys", "communication_ns": 0, "exposed_communication_ns": 0, "idle_ns": 5, "span_ns": 9}
    used = {"run": "r", "tool": "nsys", "busy_pct": 50.0, "span_ns": 9}
    step = {"run": "r", "tool": "nsys", "step": None, "step_ns": 5}
    found = overview("r", NONE | {"busy_time": [gpu], "gpu_summary": [used], "step_breakdown": [step]})
    assert [tile.name for tile in found.tiles] == ["GPU busy", "GPU idle"]
