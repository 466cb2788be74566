"""What a change of the step time says: the same sentences wherever two runs are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nsightlens.views.figures import MISSING, duration

Row = dict[str, Any]
ONE_MORE = "To add one, capture the run again: nsightlens ingest AGAIN --run NAME."


def sentences(row: Row, threshold_pct: float) -> list[str]:
    """Return what a row of run_difference by step says: of the runs, and apart from it how two recordings differ."""
    change = MISSING if row["change_pct"] is None else f"{row['change_pct']:+.1f} %"
    means = f"{duration(row['base_ns'])} to {duration(row['other_ns'])}"
    return [f"Mean {means}: {signed(row['difference_ns'])} ({change}).", f"Runs: {_of_runs(row, threshold_pct)}",
            *_of_recordings(row, threshold_pct),
            f"Median {duration(row['base_median_ns'])} to {duration(row['other_median_ns'])}."]


def unrelated(rows: Sequence[Row], base: str, other: str, by: str) -> list[str]:
    """Return that two runs have no kernel (or operator, …) in common, by their rows of run_difference; else nothing."""
    known = [(row["kernel_key"] or row["item"], row) for row in rows]
    there = [{name for name, row in known if name and row[f"{side}_launches"]} for side in ("base", "other")]
    if not all(there) or there[0] & there[1]:
        return []
    what = "kernel" if by == "key" else by
    return [f"No {what} is in both runs: {base} has {len(there[0])}, {other} {len(there[1])}. They look like different programs: "
            "shares of time can be compared, times cannot."]


def _of_runs(row: Row, threshold_pct: float) -> str:
    """Return the verdict on two runs, with its interval; where it is undecided, what would decide it."""
    if row["low_ns"] is None:
        return ("undecided. One recording of each run does not show how the runs vary, so no change is certain, however large. "
                f"It takes at least {row['needed']} recordings of each run. {ONE_MORE}")
    within = f"95 % interval {interval(row)}"
    if row["verdict"] != "undecided":
        bound = f" beyond {threshold_pct:g} %" if row["verdict"] == "no change" else ""
        return f"{row['verdict']}{bound}; {within}."
    more = "" if row["needed"] is None else f" {row['needed']} recordings of each run would likely decide it."
    return (f"undecided; {within}: these recordings could have shown a change of {duration(row['smallest_ns'])} or more."
            + more)


def _of_recordings(row: Row, threshold_pct: float) -> list[str]:
    """Return how the only two recordings differ, as such."""
    if not alone(row):
        return []
    if row["recordings_low_ns"] is None:
        return ["These two recordings: no interval, as one has fewer than five steps."]
    said = {"longer": "the other's steps are longer", "shorter": "the other's steps are shorter"}.get(
        row["in_recordings"], f"no clear difference beyond {threshold_pct:g} %")
    return [f"These two recordings: {said}, 95 % interval {interval(row, 'recordings_')} over steps. Two recordings of one "
            "setting can differ as much."]


def alone(row: Row) -> bool:
    """Return whether each run has one recording."""
    return bool(row["base_recordings"] + row["other_recordings"] == 2)


def signed(ns: int) -> str:
    """Return a difference in ns as a text, with its sign."""
    return duration(ns) if ns < 0 else f"+{duration(ns)}"


def interval(row: Row, of: str = "") -> str:
    """Return the interval of the runs' difference, or that of="recordings_"."""
    low, high = row[f"{of}low_ns"], row[f"{of}high_ns"]
    return MISSING if low is None else f"{signed(low)} … {signed(high)}"
