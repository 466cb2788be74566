"""The first part of a report, which needs no JavaScript: per run the verdict, findings, branches of the tree and diagnostics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nsightlens.terminal.command import Command
from nsightlens.views.figures import MISSING, counted, duration, number, share, spans
from nsightlens.views.node_names import NODE_NAMES
from nsightlens.views.run_command import command_of

Row = dict[str, Any]
Rows = Mapping[str, Sequence[Row]]

MOST_FINDINGS = 3
"""Findings that stand above the tree; the others follow below it."""


@dataclass(frozen=True, slots=True)
class Card:
    """A finding: a row of the view findings, its figures as texts, and the command that shows more."""

    row: Row
    figures: tuple[str, ...]
    command: Command


@dataclass(frozen=True, slots=True)
class Overview:
    """What a run's part of the page says."""

    run: str
    is_simulated: bool
    verdict: tuple[str, ...]
    window: str
    branches: tuple[tuple[str, str, str], ...]
    """Name, time and share of the window, of those that are not empty."""
    conditions: tuple[str, ...]
    """What was not judged."""
    findings: tuple[Card, ...]
    captured: tuple[Row, ...]
    diagnostics: tuple[Row, ...]


def overview(run: str, answers: Rows) -> Overview:
    """Return what the page says of a run, from the rows of views by name."""
    mine = {view: [row for row in rows if row.get("run") == run] for view, rows in answers.items()}
    profiles = mine["profile_overview"]
    runs = {row["run"] for row in answers["profile_overview"]}
    tree = _verdict_rows(mine["time_tree"], mine["verdict"])
    return Overview(
        run, any(row["simulated"] for row in profiles), _verdict(mine["verdict"]), _window(tree), tuple(_branches(tree)),
        tuple(dict.fromkeys(row["text"] for row in _verdict_rows(mine["verdict"], mine["verdict"])
                            if row["kind"] == "condition")),
        tuple(_card(row, runs) for row in _verdict_rows(mine["findings"], mine["verdict"])), tuple(_captured(profiles)),
        tuple(row for row in mine["diagnostic_summary"] if row["severity"] in ("error", "warning")))


def _verdict(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return what bounds the run, by the first tool that says so."""
    return tuple(row["text"] for row in rows if row["kind"] == "verdict")[:1]


def _verdict_rows(rows: Sequence[Row], verdicts: Sequence[Row]) -> list[Row]:
    """Return the rows by the tool whose verdict the page has."""
    return [row for row in rows if row["tool"] == next((verdict["tool"] for verdict in verdicts), None)]


def _card(row: Row, runs: Collection[str]) -> Card:
    won = row["winnable_ns"]
    amount = duration(row["total_ns"]) + (f" of {duration(row['of_ns'])}" if row["of_ns"] is not None else "")
    figures = [amount, share(row["share_pct"]) if row["share_pct"] is not None else "",
               f"{duration(won)} to win" if won is not None else ""]
    return Card(row, tuple(filter(None, figures)), command_of(row, runs))


def _window(tree: Sequence[Row]) -> str:
    """Return what the trees are of: '6 steady steps, 648.1 ms, summed over 2 GPUs or ranks'."""
    windows = [row for row in tree if row["node"] == "window" and row["depth"] == 0]
    steps = sum(row["count"] or 0 for row in windows)
    what = counted(steps, "steady step") if steps and all(row["count"] for row in windows) else "first to last GPU work"
    over = f", summed over {len(windows)} GPUs or ranks" if len(windows) > 1 else ""
    return f"{what}, {duration(sum(row['total_ns'] for row in windows))}{over}" if windows else ""


def _branches(tree: Sequence[Row]) -> Iterator[tuple[str, str, str]]:
    """Yield name, time and share of each branch over all trees, in their order."""
    whole = sum(row["total_ns"] for row in tree if row["node"] == "window" and row["depth"] == 0)
    sums: dict[str, int] = defaultdict(int)
    for row in tree:
        if row["depth"] == 1 and row["share_pct"] is not None:
            sums[row["node"]] += row["total_ns"]
    for name, ns in sums.items():
        if ns:
            yield NODE_NAMES.get(name, name), duration(ns), share(100 * ns / whole)


def _captured(profiles: Sequence[Row]) -> list[Row]:
    """Return a row per tool: what it recorded."""
    found = []
    for tool in dict.fromkeys(row["tool"] for row in profiles if row["tool"]):
        rows = [row for row in profiles if row["tool"] == tool]
        ranks = [rank for row in rows for rank in (row["ranks"] or "").split(", ") if rank.isdigit()]
        gpus = dict.fromkeys(row["gpus"] for row in rows if row["gpus"])
        found.append({"tool": tool, "profiles": number(len(rows)), "ranks": spans(ranks), "gpus": ", ".join(gpus) or MISSING,
                      "span": duration(max((row["gpu_span_ns"] for row in rows if row["gpu_span_ns"]), default=None)),
                      "kernels": number(sum(row["kernels"] or 0 for row in rows))})
    return found
