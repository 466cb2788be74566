"""The first part of a report, which needs no JavaScript: per run the verdict, its key figures, findings and diagnostics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nsightlens.terminal.command import Command
from nsightlens.views.figures import MISSING, duration, number, share, spans
from nsightlens.views.run_command import command_of

Row = dict[str, Any]
Rows = Mapping[str, Sequence[Row]]

TIMELINE = ("nsys", "kineto")
"""Tools with a timeline, the least disturbing first."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure: its name, its text, what it is of, and the command that prints it."""

    name: str
    text: str
    note: str
    command: Command


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
    tiles: tuple[Tile, ...]
    findings: tuple[Card, ...]
    captured: tuple[Row, ...]
    diagnostics: tuple[Row, ...]


def overview(run: str, answers: Rows) -> Overview:
    """Return what the page says of a run, from the rows of views by name."""
    mine = {view: [row for row in rows if row.get("run") == run] for view, rows in answers.items()}
    profiles = mine["profile_overview"]
    runs = {row["run"] for row in answers["profile_overview"]}
    return Overview(
        run, any(row["simulated"] for row in profiles), _verdict(mine["verdict"]), tuple(_tiles(mine)),
        tuple(_card(row, runs) for row in _of_verdict(mine["findings"], mine["verdict"])), tuple(_captured(profiles)),
        tuple(row for row in mine["diagnostic_summary"] if row["severity"] in ("error", "warning")))


def _verdict(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return what bounds the run, by the first tool that says so."""
    return tuple(row["text"] for row in rows if row["kind"] == "verdict")[:1]


def _of_verdict(rows: Sequence[Row], verdicts: Sequence[Row]) -> list[Row]:
    """Return the findings by the tool whose verdict the page has."""
    return [row for row in rows if row["tool"] == next((verdict["tool"] for verdict in verdicts), None)]


def _card(row: Row, runs: Collection[str]) -> Card:
    won = row["winnable_ns"]
    amount = duration(row["total_ns"]) + (f" of {duration(row['of_ns'])}" if row["of_ns"] is not None else "")
    figures = [amount, share(row["share_pct"]) if row["share_pct"] is not None else "",
               f"{duration(won)} to win" if won is not None else ""]
    return Card(row, tuple(filter(None, figures)), command_of(row, runs))


def best(rows: Sequence[Row], order: Sequence[str] = TIMELINE) -> list[Row]:
    """Return the rows of the first tool of `order` that has some: figures of two tools are never mixed."""
    return next((found for tool in order if (found := [row for row in rows if row["tool"] == tool])), [])


def _tiles(mine: Rows) -> list[Tile]:
    steps = best([row for row in mine["step_breakdown"] if row["step"] is not None])
    busy = best(mine["busy_time"])
    tiles = []
    if steps:
        tiles.append(Tile("Step", _range([row["step_ns"] for row in steps], duration),
                          f"shortest to longest of {len(steps)}, {steps[0]['tool']}", Command("show", ("step_breakdown",))))
    if used := best(mine["gpu_summary"]):
        covered = "first step's start to last step's end" if steps else "the whole capture"
        tiles.append(Tile("GPU busy", _range([row["busy_pct"] for row in used], share),
                          f"{covered} ({_range([row['span_ns'] for row in used], duration)}), {_of(used)}",
                          Command("show", ("gpu_summary",))))
    if any(row["communication_ns"] for row in busy):
        tiles.append(Tile("Exposed communication", _range([row["exposed_communication_ns"] for row in busy], duration),
                          _of(busy), Command("show", ("busy_time",))))
    if busy:
        tiles.append(Tile("GPU idle", _range([row["idle_ns"] for row in busy], duration),
                          f"first to last GPU work ({_range([row['span_ns'] for row in busy], duration)}), {_of(busy)}",
                          Command("show", ("busy_time",))))
    kernels = sum(row["kernels"] or 0 for row in mine["profile_overview"] if row["tool"] == "ncu")
    if not tiles and kernels:
        tiles.append(Tile("Kernels with counters", number(kernels), "ncu", Command("show", ("ncu_by_config",))))
    return tiles


def _of(rows: Sequence[Row]) -> str:
    """Return what a figure is of: 'lowest to highest of 8 GPUs, nsys'."""
    return f"{f'lowest to highest of {len(rows)} GPUs, ' if len(rows) > 1 else ''}{rows[0]['tool']}"


def _range(values: Sequence[Any], text: Any) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return MISSING
    low, high = text(min(known)), text(max(known))
    return low if low == high else f"{low} – {high}"


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
