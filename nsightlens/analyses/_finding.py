"""What a finding is made of: the process that it is about, its figures, and its texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nsightlens.analyses._advice import ADVICE

SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("rule", pa.string()), ("rank", pa.int32()), ("profile_id", pa.string()),
    ("process_id", pa.string()), ("window_index", pa.int32()), ("who", pa.string()), ("subject", pa.string()),
    ("what", pa.string()), ("evidence", pa.string()), ("why", pa.string()),
    ("total_ns", pa.int64()), ("of_ns", pa.int64()), ("share_pct", pa.float64()), ("limit_pct", pa.float64()),
    ("confidence", pa.string()), ("against", pa.string()), ("more", pa.string()), ("command", pa.list_(pa.string())),
])
Key = tuple[str, str | None, int | None]
Row = dict[str, Any]
NOBODY: Row = dict.fromkeys(("rank", "profile_id", "process_id", "window_index", "subject", "evidence"))
_SURE = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Process:
    """Where the time of one process (and window) went: ns per category of execution_summary, which sum to length."""

    row: Row
    length: int
    parts: Mapping[str, int]

    @property
    def key(self) -> Key:
        """Return what the rows of a view that are about this process share."""
        return key(self.row)

    @property
    def run(self) -> tuple[str, str]:
        """Return its run and the tool."""
        return self.row["run"], self.row["tool"]

    @property
    def waits_for_host(self) -> int:
        """Return for how long its GPU idled while the host was in API calls, operators or other code; ns."""
        return self.parts["runtime"] + self.parts["cpu_exec"] + self.parts["other"]


def fired(process: Process, rule: str, what: str, total: int) -> Iterable[Row]:
    """Yield the finding, if its time exceeds the limit of the rule."""
    if exceeds(process, rule, total):
        yield row_of(process, rule, what) | {
            "total_ns": total, "of_ns": process.length, "share_pct": pct(total, process.length),
            **{name: process.row[name] for name in ("profile_id", "process_id", "window_index")}}


def lengths_of(processes: Iterable[Process]) -> Mapping[tuple[str, str], int]:
    """Return the time of all ranks, by run and tool; ns."""
    lengths: dict[tuple[str, str], int] = defaultdict(int)
    for process in processes:
        lengths[process.run] += process.length
    return lengths


def exceeds(process: Process, rule: str, total: int) -> bool:
    """Return whether so many ns of the process are above the limit of the rule."""
    return 100 * total > ADVICE[rule].limit_pct * process.length


def row_of(process: Process, rule: str, what: str) -> Row:
    """Return a finding about a process, without its figures."""
    advice, row = ADVICE[rule], process.row
    return NOBODY | {
        "run": row["run"], "tool": row["tool"], "rule": rule, "rank": row["rank"], "who": who(row), "what": what,
        "why": advice.why, "total_ns": None, "of_ns": None, "share_pct": None, "limit_pct": advice.limit_pct or None,
        "confidence": confidence(rule, row["tool"]), "command": advice.command, "against": against(process, rule, advice.against),
    }


def of_run(run: tuple[str, str], rule: str, named: str, what: str, total: int | None, of: int | None) -> Row:
    """Return a finding about a whole run under a tool, or about what several of its processes share."""
    advice = ADVICE[rule]
    return NOBODY | {
        "run": run[0], "tool": run[1], "rule": rule, "who": named, "what": what, "why": advice.why, "total_ns": total,
        "of_ns": of, "share_pct": pct(total, of) if total is not None and of else None, "limit_pct": advice.limit_pct or None,
        "confidence": confidence(rule, run[1]), "against": advice.against, "command": advice.command}


def told(row: Row) -> Row:
    """Return a finding with its command as a table holds it: the line for people, and its fields for programs."""
    return row | {"more": row["command"].shell(), "command": row["command"].fields}


def confidence(rule: str, tool: str | None) -> str:
    """Return how sure a rule is: one less where the tool itself adds to what the rule is about."""
    sure = ADVICE[rule].confidence
    return _SURE[max(0, _SURE.index(sure) - 1)] if tool == "kineto" and ADVICE[rule].of_host else sure


def against(process: Process, rule: str, text: str) -> str:
    """Return what speaks against a finding, the tool included."""
    return text + (" Kineto slows the host." if process.row["tool"] == "kineto" and ADVICE[rule].of_host else "")


def who(row: Row) -> str:
    """Return a process as people call it."""
    return f"process {row['process_id']}" if row["rank"] is None else f"rank {row['rank']}"


def key(row: Row) -> Key:
    """Return profile, process and window."""
    return row["profile_id"], row["process_id"], row["window_index"]


def span(ns: float) -> str:
    """Return a length of time for a sentence."""
    if ns >= 10_000_000_000:
        return f"{ns / 1e9:,.1f} s"
    return f"{ns / 1e6:,.1f} ms" if ns >= 1_000_000 else f"{ns / 1e3:.1f} µs"


def pct(part: int, whole: int) -> float:
    """Return a share in %, to one decimal."""
    return round(100 * part / whole, 1) if whole else 0.0
