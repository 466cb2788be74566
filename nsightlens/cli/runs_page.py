"""The sections of `nsightlens compare runs`: each asks views and prints what a person reads of them first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsightlens.cli.page import Column, duration, grid, heading, lines
from nsightlens.cli.sections import Row
from nsightlens.cli.tables import MISSING

if TYPE_CHECKING:
    from nsightlens.store import Store

_CHANGED = ("slower", "faster", "new", "vanished")
_MOST = 12


def comparability(store: Store, base: str, other: str) -> None:
    """Print how the two runs differ in how they were made."""
    rows = store.view("comparability", base=base, other=other).to_pylist()
    differ = [row for row in rows if row["same"] is False]
    heading("Comparable?", f"{sum(row['same'] is True for row in rows)} properties are the same")
    if not differ:
        lines(["Nothing that the captures tell differs. They do not tell the driver, library versions, clocks and batch size."])
        return
    grid([
        Column("differs", [row["property"] for row in differ], 9, text=True),
        Column("tool", [row["tool"] for row in differ], 7, text=True),
        Column(base, [row["base_value"] or MISSING for row in differ], 8, text=True, flexible=True),
        Column(other, [row["other_value"] or MISSING for row in differ], 8, text=True, flexible=True),
    ])


def changes(rows: list[Row], what: str, threshold_pct: float) -> None:
    """Print the items that changed, the largest difference first, and what could not be told."""
    changed = [row for row in rows if row["verdict"] in _CHANGED]
    told = {(row["unit"], row["tool"], row["base_replicates"], row["other_replicates"]) for row in rows}
    unit, tool, base, other = next(iter(told), ("", "", 0, 0))
    kind = "steps" if unit == "per step" else "blocks of launches"
    heading(f"What changed, by {what}", f"{tool}, mean {unit}; {base} and {other} {kind}")
    if changed:
        shown = changed[:_MOST]
        grid([
            Column(what, [row["item"] for row in shown], 9, text=True, flexible=True, shortest=24),
            Column("base", [duration(row["base_ns"]) for row in shown], 6),
            Column("other", [duration(row["other_ns"]) for row in shown], 6),
            Column("difference", [_signed(row["difference_ns"]) for row in shown], 8),
            Column("95 % interval", [_interval(row) for row in shown], 4),
            Column("change", [MISSING if row["change_pct"] is None else f"{row['change_pct']:+.1f} %" for row in shown], 7),
            Column("", [row["verdict"] for row in shown], 8, text=True),
        ])
    said = []
    if len(changed) > _MOST:
        said.append(f"{len(changed) - _MOST} more: nsightlens show run_difference what={what}")
    same = sum(row["verdict"] == "no change" for row in rows)
    if same:
        said.append(f"{same} without a change beyond chance and {threshold_pct:g} %.")
    unknown = sum(row["verdict"] == "no interval" for row in rows)
    if unknown:
        said.append(f"{unknown} cannot be told from chance: fewer than five {kind} on a side.")
    lines(said or ["Nothing changed."])


def _signed(ns: int) -> str:
    return duration(ns) if ns < 0 else f"+{duration(ns)}"


def _interval(row: Row) -> str:
    if row["low_ns"] is None:
        return MISSING
    return f"{_signed(row['low_ns'])} … {_signed(row['high_ns'])}"
