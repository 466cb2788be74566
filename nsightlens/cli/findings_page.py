"""Findings as sentences: who, how much, what, why, what speaks against it, and the command that shows more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from nsightlens.cli.page import duration, spans

Row = dict[str, Any]


_BEST = ("nsys", "kineto", "ncu")
"""Tools, the least disturbing one first: of a rule that fires under several, its figures are shown."""


def sentences(rows: Iterable[Row]) -> list[str]:
    """Return a sentence for each rule that fired, over the processes and tools that share it, in the order of the view."""
    found: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["rule"], row["why"], _apart(row)].append(row)
    return [_sentence(alike) for alike in found.values()]


def _apart(row: Row) -> object:
    """Return what keeps findings of one rule apart: a late rank is one finding, and so is a function of the API."""
    if row["rule"] == "api_call":
        return row["what"].partition(" (")[0]
    return row["rank"] if row["rule"] == "straggler" else None


def _sentence(alike: list[Row]) -> str:
    """Return what rows of one rule say, in the words of the first of the best tool, which has the largest share."""
    best, *others = sorted({row["tool"] for row in alike}, key=_BEST.index)
    rows = [row for row in alike if row["tool"] == best]
    first = rows[0]
    facts = [f"{best}, also under {' and '.join(others)}" if others else best, _who(rows), *_figures(rows)]
    return (f"{first['rule'].replace('_', ' ')} ({'; '.join(filter(None, facts))}): {first['what']}. {first['why']} "
            f"But: {first['against']} More: {first['more']}")


def _who(rows: list[Row]) -> str:
    ranks = {row["rank"] for row in rows} - {None}
    if ranks:
        return f"rank{'s' * (len(ranks) > 1)} {spans(map(str, ranks))}"
    processes = {(row["profile_id"], row["process_id"]) for row in rows}
    return f"{len(processes)} processes" if len(processes) > 1 else ""


def _figures(rows: list[Row]) -> list[str]:
    """Return how long, as what share, and the limit of the rule."""
    first, shares = rows[0], sorted({row["share_pct"] for row in rows if row["share_pct"] is not None})
    found = []
    if first["total_ns"] is not None:
        found.append(f"{'at most ' if len(shares) > 1 else ''}{duration(first['total_ns'])} of {duration(first['of_ns'])}")
    if shares:
        found.append(" to ".join(f"{pct:.1f}" for pct in dict.fromkeys((shares[0], shares[-1]))) + " %")
    if first["limit_pct"]:
        found.append(f"limit {first['limit_pct']:.0f} %")
    return found
