"""The first part of a report: its sentences, its figures, and what it says where there is nothing to say."""

from __future__ import annotations

from typing import Any

from nsightlens.html_report.overview import overview

FINDING: dict[str, Any] = {
    "run": "r", "tool": "nsys", "cause": "API calls", "subject": "cudaMalloc", "issuer": None, "who": "rank 3",
    "total_ns": 1_500_000_000, "of_ns": 5_000_000_000, "share_pct": 30.0, "winnable_ns": None,
    "what": "it waits", "action": "wait less",
    "against": None, "confidence": "high", "command": ["show", "cuda_api_summary"]}
NONE: dict[str, list[dict[str, Any]]] = {
    "profile_overview": [], "diagnostic_summary": [], "verdict": [], "findings": [], "time_tree": [],
    "step_breakdown": []}


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


def _tree(rank: int, whole: int, steps: int | None, **branches: int) -> list[dict[str, Any]]:
    row = {"run": "r", "tool": "nsys", "rank": rank}
    parts = [row | {"depth": 1, "node": name, "count": None, "total_ns": ns, "share_pct": 100 * ns / whole}
             for name, ns in branches.items()]
    before = row | {"depth": 0, "node": "start-up", "count": None, "total_ns": 7_000_000, "share_pct": None}
    leaf = row | {"depth": 1, "node": "unknown", "count": 1, "total_ns": 7_000_000, "share_pct": None}
    return [row | {"depth": 0, "node": "window", "count": steps, "total_ns": whole, "share_pct": 100.0}, *parts, before, leaf]


def test_branches_are_those_of_all_trees_and_sum_to_the_window() -> None:
    """Start-up lies before the window, and its leaves are no branches."""
    verdict = {"run": "r", "tool": "nsys", "kind": "verdict", "text": "computing"}
    rows = [*_tree(0, 6_000_000, 3, computing=5_000_000, idle=1_000_000), *_tree(1, 2_000_000, 3, computing=2_000_000, idle=0)]
    other = [row | {"tool": "kineto"} for row in rows]
    found = overview("r", NONE | {"verdict": [verdict], "time_tree": [*other, *rows]})
    assert found.window == "6 steady steps, 8.000 ms, summed over 2 GPUs or ranks"
    assert found.branches == (("computing", "7.000 ms", "87.5 %"), ("idle", "1.000 ms", "12.5 %"))


def test_without_steps_the_window_is_that_of_the_gpu_work() -> None:
    verdict = {"run": "r", "tool": "nsys", "kind": "verdict", "text": "computing"}
    found = overview("r", NONE | {"verdict": [verdict], "time_tree": _tree(0, 6_000_000, None, computing=6_000_000)})
    assert found.window == "first to last GPU work, 6.000 ms"
    assert overview("r", NONE).branches == () and overview("r", NONE).window == ""


def test_what_was_not_judged_is_said_once() -> None:
    rows = [{"run": "r", "tool": "nsys", "kind": kind, "text": text}
            for kind, text in (("verdict", "computing"), ("condition", "lost"), ("condition", "lost"))]
    assert overview("r", NONE | {"verdict": rows}).conditions == ("lost",)
