"""Rows of the view `findings` -> cards: rows that say the same of several processes or tools, as one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nsightlens.terminal.command import Command
from nsightlens.views.figures import duration, spans
from nsightlens.views.python_calls import arguments

Row = dict[str, Any]

_BEST = ("nsys", "kineto", "ncu")
"""Tools, the least disturbing one first: of a rule that fires under several, its figures are shown."""
_SAID = 3
"""Sentences of a verdict."""
_NAMED = 4
"""Late ranks that it names."""
_BY_WHAT = ("headroom", "capture", "profiler")
"""Rules of which two findings differ only in what they say."""
_HOST = ("host", "tiny_kernels", "data_loader", "api_call")
"""Rules that say why a rank is late, where they fire on the late ranks alone."""
_OF_ALL = ("straggler", "slow_link", "pipeline")
"""Rules whose times are shares of the time of all ranks, as is that of a finding about all of them."""


_OF_RUN = re.compile(r"nsightlens (?P<name>show|compare ranks)(?: (?P<view>\w+))?(?P<rest>(?: \S+)*)")
"""A command of a finding that shows more of its run."""


@dataclass(frozen=True, slots=True)
class Card:
    """A finding: who and what, how long and as what share (as texts), why, what speaks against it, the command for more."""

    rule: str
    tool: str
    others: tuple[str, ...]
    """Further tools under which the rule fired."""
    who: str
    figures: tuple[str, ...]
    what: str
    why: str
    against: str
    more: str
    ranks: frozenset[int]
    row: Row
    """The row whose words and figures the card has: the first of the best tool, which has the largest share."""


def cards(rows: Iterable[Row]) -> list[Card]:
    """Return a card for each rule that fired in a run, over the processes and tools that share it, in the order of the view."""
    found: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["rule"], row["why"], _apart(row)].append(row)
    return [_card(alike) for alike in found.values()]


def with_run(rows: Iterable[Row], runs: Collection[str], shown: Callable[[Command], str] = Command.shell) -> list[Row]:
    """Return findings whose commands name their run, where the store has several; as they are where it has one."""
    return [row | {"more": _more(row, shown)} if len(runs) > 1 else row for row in rows]


def _more(row: Row, shown: Callable[[Command], str]) -> str:
    found = _OF_RUN.fullmatch(row["more"])
    if found is None:
        return str(row["more"])
    view = [found["view"]] if found["view"] else []
    return shown(Command(found["name"], (*view, ("--run", row["run"]), *arguments(found["rest"]))))


def _apart(row: Row) -> object:
    """Return what keeps findings of one rule apart: a late rank is one finding, as are a process group and a function."""
    if row["rule"] == "api_call":
        return row["what"].partition(" (")[0]
    if row["rule"] == "slow_link":
        return row["who"]
    if row["rule"] in _BY_WHAT:
        return row["what"].partition(" runs at ")[0] if row["rule"] == "headroom" else row["what"]
    return row["rank"] if row["rule"] == "straggler" else None


def _card(alike: list[Row]) -> Card:
    best, *others = sorted({row["tool"] for row in alike}, key=_BEST.index)
    rows = [row for row in alike if row["tool"] == best]
    first = rows[0]
    what = first["what"] if len({row["what"] for row in rows}) == 1 else _of_one(first)
    return Card(first["rule"], best, tuple(others), _who(rows), tuple(_figures(rows)), what, first["why"],
                first["against"], first["more"], frozenset(row["rank"] for row in rows if row["rank"] is not None), first)


def _of_one(row: Row) -> str:
    """Return what a row says, as that of one rank or process among others."""
    whose = f"figures of {'the one with the largest share' if row['rank'] is None else 'rank ' + str(row['rank'])}"
    return f"{row['what'][:-1]}; {whose})" if row["what"].endswith(")") else f"{row['what']} ({whose})"


def verdict(found: Sequence[Card]) -> list[str]:
    """Return the run's verdict: a sentence for each of the first findings, and what is said where there is none.

    Late ranks are one sentence, with what their hosts do meanwhile where that is a finding of the same ranks.
    """
    if not found:
        return ["No finding: this capture has no timeline to judge."]
    late = [card for card in found if card.rule == "straggler"]
    if found[0] not in late:
        return [_sentence(card) for card in found[:_SAID]]
    ranks = frozenset[int]().union(*(card.ranks for card in late))
    cause = next((card for card in found if card.rule in _HOST and card.ranks == ranks), None)
    others = [card for card in found if card not in late and card is not cause]
    return [_late(late, cause), *(_sentence(card) for card in others)][:_SAID]


def _late(late: Sequence[Card], cause: Card | None) -> str:
    """Return the sentence on the ranks that the others wait for, longest waiting first."""
    if len(late) == 1 and cause is None:
        waited, _, why = late[0].what.partition(": ")
        amount = ", ".join(late[0].figures[:2])
        return f"{late[0].who[0].upper()}{late[0].who[1:]}: {waited}: {amount}{'; ' * bool(why)}{why}."
    waits = [", ".join(card.figures[:2]) for card in late[:_NAMED]]
    more = f" and {len(late) - _NAMED} more" if len(late) > _NAMED else ""
    ranks = ", ".join(card.who.removeprefix("rank ") for card in late[:_NAMED])
    they = "them" if len(late) > 1 else "it"
    host = f"{'their hosts are' if len(late) > 1 else 'its host is'} late"
    why = f"; {host}, {', '.join(cause.figures[:2])}: {cause.what}" if cause else ""
    return f"Rank{'s' * (len(late) > 1)} {ranks}{more}: the other ranks wait for {they}: {'; '.join(waits)}{why}."


def _sentence(card: Card) -> str:
    amount = ", ".join(card.figures[:2] if card.row["total_ns"] is not None else ())
    if card.rule == "nothing":
        return f"{card.what[0].upper()}{card.what[1:]}; outside compute kernels: {amount}."
    parts = [card.who, card.what, amount]
    sentence = f"{': '.join(filter(None, parts))}."
    return sentence if sentence.startswith(_BEST) else f"{sentence[0].upper()}{sentence[1:]}"


def _who(rows: list[Row]) -> str:
    if rows[0]["rule"] in ("slow_link", "pipeline"):
        return str(rows[0]["who"])
    ranks = {row["rank"] for row in rows} - {None}
    if ranks:
        return f"rank{'s' * (len(ranks) > 1)} {spans(map(str, ranks))}"
    processes = {(row["profile_id"], row["process_id"]) for row in rows}
    return f"{len(processes)} processes" if len(processes) > 1 else ""


def _range(rows: list[Row], column: str) -> str:
    """Return a time of the rows: the least and the most where they differ."""
    least, most = (duration(of(row[column] for row in rows)) for of in (min, max))
    if least == most:
        return most
    same_unit = least.split()[-1] == most.split()[-1]
    return f"{least.split()[0] if same_unit else least} to {most}"


def _figures(rows: list[Row]) -> list[str]:
    """Return how long, as what share, and the limit of the rule."""
    first, shares = rows[0], sorted({row["share_pct"] for row in rows if row["share_pct"] is not None})
    found = []
    if first["total_ns"] is not None:
        whole = " of all ranks" if first["rule"] in _OF_ALL or first["who"] == "all ranks" else ""
        of = _range(rows, "of_ns")
        found.append(_range(rows, "total_ns") + f" of {of}{whole}" * (" to " not in of) + " each" * (len(rows) > 1))
    if shares:
        found.append(" to ".join(f"{pct:.1f}" for pct in dict.fromkeys((shares[0], shares[-1]))) + " %")
    if first["limit_pct"]:
        found.append(f"limit {first['limit_pct']:.0f} %")
    return found
