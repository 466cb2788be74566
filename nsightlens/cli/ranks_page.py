"""The sections of `nsightlens compare ranks`: each asks views and prints what a person reads of them first."""

from __future__ import annotations

from collections import defaultdict

from nsightlens.cli.page import Column, duration, grid, heading, lines, number, share
from nsightlens.cli.sections import Page, Row, best
from nsightlens.names import label

TIMELINE = ("nsys", "kineto")
_MANY, _FEW = 32, 8


def _by_execution(rows: list[Row]) -> dict[tuple[str, str | None], list[Row]]:
    found: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["tool"], row.get("execution_id")].append(row)
    return found


def waiting(page: Page) -> None:
    """Print, per execution, what each rank cost the others in collectives."""
    for (tool, _), rows in _by_execution(page.ask("straggler")).items():
        ranked = [row for row in rows if row["rank"] is not None]
        hidden = next((row for row in rows if row["rank"] is None), None)
        late = [row for row in ranked if row["verdict"] == "straggler"]
        ranked.sort(key=lambda row: (-row["delay_ns"], row["rank"]))
        heading("Who is waited for", f"{tool}, {max((row['collectives'] for row in ranked), default=0)} matched collectives")
        shown = ranked[:_MANY]
        grid([
            Column("rank", [str(row["rank"]) for row in shown], 9),
            Column("last", [number(row["times_last"]) for row in shown], 7),
            Column("delay", [duration(row["delay_ns"]) for row in shown], 8),
            Column("others waited", [duration(row["others_waited_ns"]) for row in shown], 6),
            Column("waited itself", [duration(row["waited_ns"]) for row in shown], 5),
            Column("median arrival", [duration(row["median_arrival_ns"]) for row in shown], 3),
            Column("latest arrival", [duration(row["max_arrival_ns"]) for row in shown], 2),
            Column("", [row["verdict"] for row in shown], 8, text=True),
        ])
        said = [f"Straggler: rank {row['rank']}. Without it {row['times_last']} collectives would have begun "
                f"{duration(row['delay_ns'])} earlier in sum." for row in late]
        if hidden is not None:
            unknown = hidden["verdict"].replace("cannot tell", "cannot tell who was last")
            said.append(f"{hidden['collectives']} collectives: {unknown}.")
        lines(said or ["No rank was late in any collective."])


def clocks(page: Page) -> None:
    """Print how well the ranks' clocks are known."""
    said = []
    for (tool, _), rows in _by_execution(page.ask("rank_clock")).items():
        others = [row for row in rows if row["rank"] != row["reference_rank"]]
        if not others:
            continue
        worst = max(others, key=lambda row: row["uncertainty_ns"])
        far = max(others, key=lambda row: abs(row["offset_ns"]))
        reference = others[0]["reference_rank"]
        if len(others) == 1:
            said.append(f"{tool}: the clock of rank {far['rank']} is {duration(far['offset_ns'])} off that of rank {reference}, "
                        f"± {duration(far['uncertainty_ns'])}.")
        else:
            said.append(f"{tool}: {len(others)} clocks fitted to that of rank {reference}; the farthest is rank {far['rank']}, "
                        f"{duration(far['offset_ns'])} off ± {duration(far['uncertainty_ns'])}; the least certain rank "
                        f"{worst['rank']}, ± {duration(worst['uncertainty_ns'])}.")
        lying = [str(row["rank"]) for row in others if row["same_host"] and not row["shares_clock"]]
        if lying:
            said.append(f"{tool}: rank {', '.join(lying)} names the same host as rank {reference}, but its clock is another: is "
                        "the host name right?")
    if said:
        heading("Clocks")
        lines(said)


def balance(page: Page) -> None:
    """Print what the ranks share least evenly."""
    tool, rows = best(page.ask("rank_balance"), TIMELINE)
    rows = [row for row in rows if row["what"] in ("family", "op")]
    rows = sorted(rows, key=lambda row: (-row["spread_ns"], row["item"]))[:_FEW]
    if not rows:
        return
    heading("Least evenly shared GPU time", f"{tool}; time in collectives includes waiting")
    grid([
        Column("", [row["what"] for row in rows], 5, text=True),
        Column("item", [row["item"] for row in rows], 9, text=True, flexible=True),
        Column("slowest rank", [str(row["max_rank"]) for row in rows], 8),
        Column("its time", [duration(row["max_ns"]) for row in rows], 7),
        Column("median", [duration(row["median_ns"]) for row in rows], 6),
        Column("least", [duration(row["min_ns"]) for row in rows], 4),
        Column("variation", [share(row["variation_pct"]) for row in rows], 3),
    ])


def kernels(page: Page) -> None:
    """Print the kernels on top over all ranks."""
    tool, rows = best(page.ask("kernel_by_rank"), TIMELINE)
    sums: dict[str, dict[int | None, int]] = defaultdict(lambda: defaultdict(int))
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        sums[row["name"]][row["rank"]] += row["total_ns"] or 0
        counts[row["name"]] += row["instances"]
    total = sum(sum(by_rank.values()) for by_rank in sums.values())
    top = sorted(sums, key=lambda name: (-sum(sums[name].values()), name))[:_FEW]
    heading("Top kernels over all ranks", tool)
    grid([
        Column("share", [share(100 * sum(sums[name].values()) / total if total else None) for name in top], 8),
        Column("time", [duration(sum(sums[name].values())) for name in top], 7),
        Column("launches", [number(counts[name]) for name in top], 5),
        Column("kernel", [label(name) for name in top], 9, text=True, flexible=True),
        Column("least on a rank", [duration(min(sums[name].values())) for name in top], 3),
        Column("most on a rank", [duration(max(sums[name].values())) for name in top], 4),
    ])
