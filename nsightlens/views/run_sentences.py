"""What a change of the step time says: the same sentences wherever two runs are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nsightlens.terminal.command import Command
from nsightlens.views.figures import MISSING, counted, duration

if TYPE_CHECKING:
    from nsightlens.terminal.text import Part, Text

Row = dict[str, Any]
_CALLED = {"slower": "slower", "faster": "faster", "longer": "longer", "shorter": "shorter", "new": "only in {other}",
           "vanished": "only in {base}"}
"""Each change of an item, in words that follow a number of items."""
ONE_MORE: tuple[Part, ...] = ("To add one, capture the run again: ", Command("ingest", ("AGAIN", ("--run", "NAME"))), ".")


def verdict(step: Row | None, items: Sequence[Row], runs: tuple[str, str], by: str, threshold_pct: float) -> list[str]:
    """Return one sentence: how the second run differs from the first, by rows of run_difference: of its steps, else of items."""
    base, other = runs
    if step is None:
        return _of_items(items, runs, {"key": "kernel", "op": "operator"}.get(by, by), threshold_pct) if items else []
    means = f"a step takes {duration(step['other_ns'])} instead of {duration(step['base_ns'])} ({_change(step)})"
    if step["verdict"] in ("slower", "faster"):
        return [f"{other} is {step['verdict']} than {base}: {means}."]
    if step["verdict"] == "no change":
        return [f"{other} is as fast as {base} to within {threshold_pct:g} %: {means}."]
    why = f"that takes {step['needed']} recordings of each" if step["low_ns"] is None else "its recordings vary too much"
    return [f"Undecided whether {other} is slower or faster than {base}, as {why}; in these, {means}."]


def _of_items(items: Sequence[Row], runs: tuple[str, str], what: str, threshold_pct: float) -> list[str]:
    """Return the verdict on runs of which only the items can be compared."""
    base, other = runs
    of_two = alone(items[0])
    named = Counter(row["in_recordings"] if of_two else row["verdict"] for row in items)
    said = [(named[name], text.format(base=base, other=other)) for name, text in _CALLED.items() if named[name]]
    verbs = ["" if place else "is " if count == 1 else "are " for place, (count, _) in enumerate(said)]
    changed = ", ".join(f"{count} {verb}{text}" for verb, (count, text) in zip(verbs, said, strict=True))
    number = counted(len(items), what)
    if of_two:
        return [f"Undecided whether {other} differs from {base}, as one recording of each does not show how they vary; "
                f"of {number} in these two, {changed or 'none clearly differs'}."]
    if changed:
        return [f"{other} differs from {base}: of {number}, {changed}."]
    if named["no change"] == len(items):
        return [f"{other} does not differ from {base}: of {number}, none changed by {threshold_pct:g} %."]
    return [f"Undecided whether {other} differs from {base}: of {number}, none is known to have changed."]


def _change(row: Row) -> str:
    return MISSING if row["change_pct"] is None else f"{row['change_pct']:+.1f} %"


def sentences(row: Row, threshold_pct: float) -> list[Text]:
    """Return what a row of run_difference by step says: of the runs, and apart from it how two recordings differ."""
    means = f"from {duration(row['base_ns'])} to {duration(row['other_ns'])}"
    return [f"Mean {means}: {signed(row['difference_ns'])} ({_change(row)}).",
            ("Runs: ", *_of_runs(row, threshold_pct)),
            *_of_recordings(row, threshold_pct),
            f"Median from {duration(row['base_median_ns'])} to {duration(row['other_median_ns'])}."]


def unrelated(rows: Sequence[Row], base: str, other: str, by: str) -> list[str]:
    """Return that two runs have no kernel (or operator, …) in common, by their rows of run_difference; else nothing."""
    known = [(row["kernel_key"] or row["item"], row) for row in rows]
    there = [{name for name, row in known if name and row[f"{side}_launches"]} for side in ("base", "other")]
    if not all(there) or there[0] & there[1]:
        return []
    what = "kernel" if by == "key" else by
    return [f"No {what} is in both runs: {base} has {len(there[0])}, {other} {len(there[1])}. They look like different programs: "
            "shares of time can be compared, times cannot."]


def _of_runs(row: Row, threshold_pct: float) -> tuple[Part, ...]:
    """Return the verdict on two runs, with its interval; where it is undecided, what would decide it."""
    if row["low_ns"] is None:
        return ("undecided. One recording of each run does not show how the runs vary, so no change is certain, however large. "
                f"It takes at least {row['needed']} recordings of each run. ", *ONE_MORE)
    within = f"95 % interval {interval(row)}"
    if row["verdict"] != "undecided":
        bound = f" beyond {threshold_pct:g} %" if row["verdict"] == "no change" else ""
        return (f"{row['verdict']}{bound}; {within}.",)
    more = "" if row["needed"] is None else f" {row['needed']} recordings of each run would likely decide it."
    return (f"undecided; {within}: these recordings could have shown a change of {duration(row['smallest_ns'])} or more."
            + more,)


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
