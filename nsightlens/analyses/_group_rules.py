"""Rules of findings about process groups: links slower than those of their peers, pipeline stages that wait for one another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from nsightlens.analyses import Ask, communicator_summary
from nsightlens.analyses._advice import ADVICE
from nsightlens.analyses._finding import Key, Process, Row, key, lengths_of, of_run, pct

_NAMED = """
SELECT run, tool, group_name, any_value(kind ORDER BY kind) AS kind, any_value(description ORDER BY description) AS description
FROM _process_groups GROUP BY ALL
"""
_BUBBLES = "SELECT * FROM pipeline_bubbles ORDER BY ALL"
_SHOWN = 8
"""Stages whose waits a finding lists one by one."""
_UNEVEN = 1.2
"""From how many times the work of the others on a stage has more than they."""


class Groups:
    """What the process groups of runs are for, as the trace names them."""

    def __init__(self, ask: Ask) -> None:
        self._known = {(row["run"], row["tool"], row["group_name"]): row for row in ask(_NAMED, []).to_pylist()}

    def name(self, row: Row) -> str:
        """Return how people call the process group of a row: tensor group 21, process group 21 (mesh_x), process group."""
        name = row["group_name"]
        known = self._known.get((row["run"], row["tool"], name), {})
        if known.get("kind"):
            return f"{known['kind']} group {name}"
        described = f" ({known['description']})" if known.get("description") else ""
        return f"process group {name}{described}" if name is not None else "process group"


def slow_links(communicators: Iterable[Row], processes: Iterable[Process], groups: Groups) -> Iterator[Row]:
    """Yield the process groups that take longer than their peers, with what all their operations cost their ranks.

    communicators: as communicator_summary has them.
    """
    lengths, advice = lengths_of(processes), ADVICE["slow_link"]
    slow: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in communicators:
        if row["verdict"] in (communicator_summary.SLOW, communicator_summary.WAITING):
            slow[tuple(row[name] for name in ("run", "tool", "execution_id", "group_name", "members"))].append(row)
    for (run, tool, *_), rows in slow.items():
        first, total = rows[0], sum(row["excess_ns"] * row["ranks"] for row in rows)
        if 100 * total > advice.limit_pct * lengths[run, tool]:
            missing = (first["group_size"] or 0) - first["ranks"] if first["verdict"] == communicator_summary.WAITING else 0
            what = (f"its {first['collective']} takes {first['transfer_ns'] / max(first['peers_ns'], 1):.1f} times as long "
                    f"as that of the {first['peers']} other groups of its size"
                    + (f", or waits for {missing} of its ranks that were not captured" if missing else ""))
            who = f"{groups.name(first)} (ranks {first['members']})"
            yield of_run((run, tool), "slow_link", who, what, total, lengths[run, tool]) | {"subject": who}


def pipelines(ask: Ask, processes: Sequence[Process]) -> tuple[list[Row], Mapping[Key, int]]:
    """Return the runs whose pipeline stages wait for one another, and how long each process of them does."""
    known = {process.key: process for process in processes}
    stages: dict[tuple[str, str], list[tuple[Process, Row]]] = defaultdict(list)
    for row in ask(_BUBBLES, []).to_pylist():
        process = known.get(key(row))
        if process is not None:
            waits = min(row["bubble_ns"], process.parts["communication"])
            stages[process.run].append((process, row | {"bubble_ns": waits}))
    found: list[Row] = []
    bubbles: dict[Key, int] = {}
    for run, those in stages.items():
        total, length = sum(row["bubble_ns"] for _, row in those), sum(process.length for process, _ in those)
        if 100 * total > ADVICE["pipeline"].limit_pct * length:
            found.append(of_run(run, "pipeline", "pipeline stages", _waiting(those), total, length))
            bubbles |= {process.key: row["bubble_ns"] for process, row in those}
    return found, bubbles


def _waiting(those: Sequence[tuple[Process, Row]]) -> str:
    """Return how long each stage waits, as a share of its time, and which of them has the most work."""
    shares: dict[int, list[tuple[Process, Row]]] = defaultdict(list)
    for process, row in those:
        if row["stage"] is not None:
            shares[row["stage"]].append((process, row))
    waits = {stage: pct(sum(row["bubble_ns"] for _, row in of), sum(process.length for process, _ in of))
             for stage, of in sorted(shares.items())}
    shown = sorted(waits, key=lambda stage: (-waits[stage], stage))[:_SHOWN]
    text = "they wait for one another while their GPUs idle"
    if not waits:
        return text
    listed = ", ".join(f"{stage} for {waits[stage]:.1f} %" for stage in sorted(shown))
    return f"{text}: stage {listed}{' (the longest)' * (len(waits) > len(shown))} of its time{_uneven(shares)}"


def _uneven(shares: Mapping[int, Sequence[tuple[Process, Row]]]) -> str:
    """Return which stage computes longer than the others by a fifth or more."""
    work = {stage: median(row["compute_ns"] for _, row in of) for stage, of in shares.items()}
    most = max(work, key=lambda stage: (work[stage], -stage))
    others = [ns for stage, ns in work.items() if stage != most]
    ratio = work[most] / median(others) if others and median(others) else 0
    return f"; stage {most} computes {ratio:.1f} times as long as the others" if ratio >= _UNEVEN else ""
