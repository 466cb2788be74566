"""Rows of the view `findings` -> findings as values: rows that say the same of several processes or tools are one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nsightlens.terminal.command import Command
from nsightlens.views.figures import between, duration, spans

Row = dict[str, Any]

_BEST = ("nsys", "kineto", "ncu")
"""Tools, the least disturbing one first: of a rule that fires under several, its figures are shown."""
_SAID = 3
"""Sentences of a verdict."""
_NAMED = 4
"""Late ranks that it names."""
_BY_WHAT = ("capture", "profiler")
"""Rules of which two findings differ only in what they say."""
_HOST = ("host", "tiny_kernels", "data_loader", "api_call")
"""Rules that say why a rank is late, where they fire on the late ranks alone."""
_OF_ALL = ("straggler", "slow_link", "pipeline")
"""Rules whose times are shares of the time of all ranks, as is that of a finding about all of them."""
_NAMES_ITS_RUN = ("show", "compare ranks", "plan-ncu")
"""Commands that take --run."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What deserves attention: its cause (a rule), what it is about, its figures, what is said of it, the command for more.

    The words are those of the first row of the best tool, which has the largest share. tool: that of the figures; others: further
    tools under which the rule fired. who, ranks: the processes. times_ns, wholes_ns, shares_pct: the least and the most of how
    long, of what, and as what share; None where the rule is not about time. is_of_all: the whole is the time of all ranks.
    processes: how many rows it stands for.
    """

    cause: str
    subject: str | None
    tool: str
    others: tuple[str, ...]
    who: str
    ranks: frozenset[int]
    processes: int
    times_ns: tuple[int, int] | None
    wholes_ns: tuple[int, int] | None
    shares_pct: tuple[float, float] | None
    limit_pct: float | None
    is_of_all: bool
    what: str
    evidence: str | None
    why: str
    against: str
    confidence: str
    command: Command

    @property
    def figures(self) -> tuple[str, ...]:
        """Return how long, as what share, and the limit of the rule, as texts."""
        return tuple(filter(None, (self._amount(), self._share(), f"limit {self.limit_pct:.0f} %" if self.limit_pct else "")))

    @property
    def amount(self) -> str:
        """Return how long and as what share, as a text; nothing where the rule is not about time."""
        return ", ".join(filter(None, (self._amount(), self._share()))) if self.times_ns else ""

    def _amount(self) -> str:
        if self.times_ns is None:
            return ""
        wholes = dict.fromkeys(map(duration, self.wholes_ns or ()))
        of = f" of {next(iter(wholes))}{' of all ranks' if self.is_of_all else ''}" if len(wholes) == 1 else ""
        return f"{between(*self.times_ns)}{of}{' each' if self.processes > 1 else ''}"

    def _share(self) -> str:
        if self.shares_pct is None:
            return ""
        return f"{' to '.join(f'{pct:.1f}' for pct in dict.fromkeys(self.shares_pct))} %"


def findings_of(rows: Iterable[Row], runs: Collection[str]) -> list[Finding]:
    """Return a finding for each rule that fired in a run, over the processes and tools that share it, in the order of the view.

    runs: all of the store. Where there are several, the commands name theirs.
    """
    alike: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        apart = row["what"] if row["rule"] in _BY_WHAT else row["rank"] if row["rule"] == "straggler" else None
        alike[row["rule"], row["why"], row["subject"], apart].append(row)
    return [_finding(those, runs) for those in alike.values()]


def command_of(row: Row, runs: Collection[str]) -> Command:
    """Return the command of a row, with its run where the store has several."""
    return of_run(Command.of(row["command"]), row["run"], runs)


def of_run(command: Command, run: str, runs: Collection[str]) -> Command:
    """Return a command that asks for one run, where the store has several."""
    if len(runs) < 2 or command.name not in _NAMES_ITS_RUN:
        return command
    places = len(command.words)
    return Command(command.name, (*command.arguments[:places], ("--run", run), *command.arguments[places:]))


def _finding(alike: list[Row], runs: Collection[str]) -> Finding:
    best, *others = sorted({row["tool"] for row in alike}, key=_BEST.index)
    rows = [row for row in alike if row["tool"] == best]
    first = rows[0]
    what = first["what"] if len({row["what"] for row in rows}) == 1 else f"{first['what']}, {_whose(first)}"
    return Finding(
        cause=first["rule"], subject=first["subject"], tool=best, others=tuple(others), who=_who(rows),
        ranks=frozenset(row["rank"] for row in rows if row["rank"] is not None), processes=len(rows),
        times_ns=_range(rows, "total_ns"), wholes_ns=_range(rows, "of_ns"), shares_pct=_range(rows, "share_pct"),
        limit_pct=first["limit_pct"], is_of_all=first["rule"] in _OF_ALL or first["who"] == "all ranks", what=what,
        evidence=first["evidence"], why=first["why"], against=first["against"], confidence=first["confidence"],
        command=command_of(first, runs))


def _whose(row: Row) -> str:
    """Return whose figures are shown, of a rank or process among others."""
    return f"figures of {'the one with the largest share' if row['rank'] is None else 'rank ' + str(row['rank'])}"


def verdict_of(found: Sequence[Finding]) -> list[str]:
    """Return the run's verdict: a sentence for each of the first findings, and what is said where there is none.

    Late ranks are one sentence, with what their hosts do meanwhile where that is a finding of the same ranks.
    """
    if not found:
        return ["No finding: this capture has no timeline to judge."]
    late = [finding for finding in found if finding.cause == "straggler"]
    if found[0] not in late:
        return [_sentence(finding) for finding in found[:_SAID]]
    ranks = frozenset[int]().union(*(finding.ranks for finding in late))
    cause = next((finding for finding in found if finding.cause in _HOST and finding.ranks == ranks), None)
    others = [finding for finding in found if finding not in late and finding is not cause]
    return [_late(late, cause), *(_sentence(finding) for finding in others)][:_SAID]


def _late(late: Sequence[Finding], cause: Finding | None) -> str:
    """Return the sentence on the ranks that the others wait for, longest waiting first."""
    they, hosts = ("them", "their hosts are") if len(late) > 1 else ("it", "its host is")
    ranks = ", ".join(str(rank) for finding in late[:_NAMED] for rank in finding.ranks)
    more = f" and {len(late) - _NAMED} more" if len(late) > _NAMED else ""
    waits = "; ".join(finding.amount for finding in late[:_NAMED])
    why = f"; {hosts} late, {cause.amount}: {cause.what}" if cause else ""
    if len(late) == 1 and cause is None and late[0].evidence:
        why = f"; {late[0].evidence}"
    return f"Rank{'s' * (len(late) > 1)} {ranks}{more}: the other ranks wait for {they}: {waits}{why}."


def _sentence(finding: Finding) -> str:
    if finding.cause == "nothing":
        return f"{finding.what[0].upper()}{finding.what[1:]}; outside compute kernels: {finding.amount}."
    sentence = f"{': '.join(filter(None, (finding.who, finding.what, finding.amount)))}."
    is_name = not finding.who and finding.subject == finding.tool
    return sentence if is_name else f"{sentence[0].upper()}{sentence[1:]}"


def _who(rows: list[Row]) -> str:
    if rows[0]["rule"] in ("slow_link", "pipeline"):
        return str(rows[0]["who"])
    ranks = {row["rank"] for row in rows} - {None}
    if ranks:
        return f"rank{'s' * (len(ranks) > 1)} {spans(map(str, ranks))}"
    processes = {(row["profile_id"], row["process_id"]) for row in rows}
    return f"{len(processes)} processes" if len(processes) > 1 else ""


def _range(rows: list[Row], column: str) -> Any:
    """Return the least and the most of a column; None where the first row has none."""
    values = [row[column] for row in rows if row[column] is not None]
    return (min(values), max(values)) if values else None
