"""Rows of the view findings, as a test needs them."""

from __future__ import annotations

from typing import Any

from nsightlens.views.finding import Finding, findings_of

ROW: dict[str, Any] = {
    "run": "r", "tool": "kineto", "rule": "straggler", "rank": 3, "who": "rank 3", "profile_id": None, "process_id": None,
    "subject": None, "what": "the other ranks wait for it", "evidence": None, "why": "Its host is slower.",
    "total_ns": 1_500_000_000, "of_ns": 5_000_000_000, "share_pct": 30.0, "limit_pct": 5.0, "confidence": "high",
    "against": "Perhaps not.", "more": "nsightlens compare ranks", "command": ["compare ranks"]}


def findings(*rows: dict[str, Any], runs: tuple[str, ...] = ("r",)) -> list[Finding]:
    """Return the findings of rows. runs: those of the store."""
    return findings_of(rows, runs)
