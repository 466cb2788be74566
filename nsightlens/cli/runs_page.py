"""The sections of `nsightlens compare runs`: each queries views and prints their key figures."""

from __future__ import annotations

import shlex

from nsightlens.analyses.run_waterfall import called
from nsightlens.cli.page import bar, duration, grid, heading, lines, share
from nsightlens.cli.sections import Row
from nsightlens.cli.tables import MISSING, Column

_CHANGED = ("slower", "faster", "new", "vanished")
_MOST = 12
_HALF = 8


def comparability(rows: list[Row], base: str, other: str) -> None:
    """Print how the two runs differ in how they were made."""
    differ = [row for row in rows if row["same"] is False]
    heading("Comparable?", f"{sum(row['same'] is True for row in rows)} properties are the same")
    unknown = [] if {"command", "driver_version"} & {row["property"] for row in rows} else [
        "The driver, library versions and batch size are not known: captures rarely record them, and there is no sidecar."]
    if not differ:
        lines(["No known property differs.", *unknown])
        return
    grid([
        Column("differs", [row["property"] for row in differ], 9, text=True),
        Column("tool", [row["tool"] for row in differ], 7, text=True),
        Column(base, [row["base_value"] or MISSING for row in differ], 8, text=True, flexible=True),
        Column(other, [row["other_value"] or MISSING for row in differ], 8, text=True, flexible=True),
    ])
    lines(unknown)


def step_time(row: Row, rate: float, threshold_pct: float) -> None:
    """Print the change of the step time, its interval and whether it is significant."""
    heading("Step time", f"{row['tool']}, {row['base_replicates']} and {row['other_replicates']} steps")
    change = MISSING if row["change_pct"] is None else f"{row['change_pct']:+.1f} %"
    if row["low_ns"] is None:
        chance = "no interval: fewer than five steps on a side"
    else:
        unclear = f"not significant: q {row['q_value']:.2g}, limit {rate:g}" if row["q_value"] > rate else \
            f"below the threshold of {threshold_pct:g} %"
        chance = f"95 % interval {_interval(row)}; {unclear if row['verdict'] == 'no change' else row['verdict']}"
    means = f"{duration(row['base_ns'])} to {duration(row['other_ns'])}"
    lines([f"Mean {means}: {_signed(row['difference_ns'])} ({change}); {chance}.",
           f"Median {duration(row['base_median_ns'])} to {duration(row['other_median_ns'])}."])


def waterfall(rows: list[Row], item_kind: str) -> None:
    """Print what each item adds to the change of the step time, the largest first, and the books; without steps: of shares."""
    first = rows[0]
    stepped = first["change_ns"] is not None
    who = "" if first["rank"] is None else f" of rank {first['rank']}"
    counts = f"{first['base_steps']} and {first['other_steps']} {'steps' if stepped else 'captured slices'}"
    heading(f"{'Where the step time went' if stepped else 'Shares of the captured time'}{who}, by {item_kind}",
            f"{first['tool']}, exclusive time, mean of {counts} of {first['base_ranks']} and {first['other_ranks']} processes")
    column = "difference_ns" if stepped else "difference_pct"
    shown = [(called(row), row["base_ns"], row["other_ns"], row["base_pct"], row["other_pct"], row[column], row["verdict"])
             for row in rows[:_MOST]]
    if rest := rows[_MOST:]:
        sums = (sum(row[name] for row in rest) for name in ("base_ns", "other_ns", "base_pct", "other_pct", column))
        shown.append((f"{len(rest)} more, together", *sums, ""))
    totals = first["base_total_ns"], first["other_total_ns"]
    shown.append(("sum: the step" if stepped else "sum", *totals, 100, 100, first["change_ns"] or 0, ""))
    names, base, other, base_pct, other_pct, by, verdicts = (list(cells) for cells in zip(*shown, strict=True))
    most = max(map(abs, by[:-1])) or 1
    grid([
        Column("item", names, 9, text=True, flexible=True, shortest=24),
        Column("base", list(map(duration, base)) if stepped else [f"{pct:.2f} %" for pct in base_pct], 7),
        Column("other", list(map(duration, other)) if stepped else [f"{pct:.2f} %" for pct in other_pct], 7),
        Column("difference", list(map(_signed, by)) if stepped else [f"{points:+.2f}" for points in by], 8),
        Column("", [*(_signed_bar(part / most) for part in by[:-1]), ""], 5, text=True),
        Column("", [verdict if verdict in _CHANGED else "" for verdict in verdicts], 4, text=True),
    ])
    lines(_books(rows, stepped))


def _books(rows: list[Row], stepped: bool) -> list[str]:
    """Return the waterfall's sum, its share of idle time, and what it leaves out."""
    first = rows[0]
    said = [f"Books: {len(rows)} items sum to {sum(row['difference_ns'] for row in rows):+,} ns, the step's change from "
            f"{first['base_total_ns']:,} to {first['other_total_ns']:,} ns." if stepped else
            "No steps were recorded in both runs: these are shares of what was captured, in points, and no step time."]
    idle = [row for row in rows if row["kind"] == "idle"]
    base, other = (sum(row[side] for row in idle) for side in ("base_ns", "other_ns"))
    shares = (100 * base / (first["base_total_ns"] or 1), 100 * other / (first["other_total_ns"] or 1))
    said.append(f"GPU idle in all: {share(shares[0])} to {share(shares[1])}" + (
        f", {duration(base)} to {duration(other)} ({_signed(other - base)})." if stepped else "."))
    if first["tool"] == "kineto":
        said.append("Kineto slows the host: idle time includes profiling overhead.")
    if first["excluded_ranks"]:
        said.append(f"Ranks in only one run are left out: {first['excluded_ranks']}.")
    return said


def _signed_bar(part: float) -> str:
    """Return a bar to the left (part -1 to 0) or to the right (0 to 1) of a line."""
    drawn = bar(abs(part), _HALF)
    return f"{'█' * round(-part * _HALF):>{_HALF}}│" if part < 0 else f"{'':{_HALF}}│{drawn}"


def changes(rows: list[Row], item_kind: str, base_run: str, other_run: str, threshold_pct: float) -> None:
    """Print the items that changed, the largest difference first, and how many could not be judged."""
    changed = [row for row in rows if row["verdict"] in _CHANGED]
    kinds = {(row["unit"], row["tool"], row["base_replicates"], row["other_replicates"]) for row in rows}
    unit, tool, base, other = next(iter(kinds), ("", "", 0, 0))
    kind = "steps" if unit == "per step" else "blocks of launches"
    heading(f"What changed, by {item_kind}", f"{tool}, mean {unit}; {base} and {other} {kind}")
    if changed:
        shown = changed[:_MOST]
        grid([
            Column(item_kind, [row["item"] or f"(no {item_kind} known)" for row in shown], 9, text=True, flexible=True,
                   shortest=24),
            Column("base", [duration(row["base_ns"]) for row in shown], 6),
            Column("other", [duration(row["other_ns"]) for row in shown], 6),
            Column("difference", [_signed(row["difference_ns"]) for row in shown], 8),
            Column("95 % interval", [_interval(row) for row in shown], 4),
            Column("change", [MISSING if row["change_pct"] is None else f"{row['change_pct']:+.1f} %" for row in shown], 7),
            Column("", [row["verdict"] for row in shown], 8, text=True),
        ])
    said = []
    if len(changed) > _MOST:
        said.append(f"{len(changed) - _MOST} more: nsightlens show run_difference by={item_kind} "
                    + shlex.join((f"base={base_run}", f"other={other_run}")))
    same = sum(row["verdict"] == "no change" for row in rows)
    if same:
        said.append(f"{same} without a significant change above {threshold_pct:g} %.")
    unknown = sum(row["verdict"] == "no interval" for row in rows)
    if unknown:
        said.append(f"{unknown} cannot be judged: fewer than five {kind} on a side.")
    lines(said or ["Nothing changed."])


def _signed(ns: int) -> str:
    return duration(ns) if ns < 0 else f"+{duration(ns)}"


def _interval(row: Row) -> str:
    if row["low_ns"] is None:
        return MISSING
    return f"{_signed(row['low_ns'])} … {_signed(row['high_ns'])}"
