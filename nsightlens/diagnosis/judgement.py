"""The judgement of each run of a store: its time trees, its verdict, and what kept parts of it from being judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nsightlens.diagnosis import conditions
from nsightlens.diagnosis.conditions import Condition, Linked
from nsightlens.diagnosis.counters import Counters, counters
from nsightlens.diagnosis.exchanges import Exchanges, SlowLink
from nsightlens.diagnosis.host_only import HostOnly, host_only
from nsightlens.diagnosis.profile_arrays import Ask, Row, read
from nsightlens.diagnosis.ranks import Awaited, waiting, with_awaited
from nsightlens.diagnosis.tree import Tree, trees
from nsightlens.diagnosis.verdict import CPU, KERNEL, NONE, NOT_RECORDED, Sums, Verdict, is_too_little, judge, sums

Communicated = tuple[Exchanges | None, Awaited, SlowLink | None]
"""Matched collectives, None without any; the waits in sends and receives; and the operation that uses its link badly."""
_TIMELINE = ("nsys", "kineto")
_PROFILES = "SELECT * FROM profiles ORDER BY run, tool, profile_id"
_LOSS = """
SELECT message FROM diagnostics WHERE list_contains($1, profile_id) AND severity = 'warning' AND ($2 OR code = 'launches_failed')
ORDER BY code = 'launches_failed' DESC, count DESC NULLS LAST, code, message LIMIT 1
"""
_OF_SEVERAL = """
SELECT count(*) AS results, sum(duration_ns)::BIGINT AS ns FROM kernels WHERE run = $1 AND tool = 'ncu' AND replay_mode = 'range'
"""
_ERROR = """
SELECT regexp_replace(message, '^[^:]*: ', '') AS line FROM diagnostics
WHERE list_contains($1, profile_id) AND code = 'program_error' ORDER BY profile_id LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class RunJudgement:
    """A run under one tool. cause: what leads; verdict: where there is a timeline; conditions: what failed, or was not judged."""

    run: str
    tool: str
    cause: str
    trees: list[Tree]
    sums: Sums | None = None
    verdict: Verdict | None = None
    host: HostOnly | None = None
    counters: Counters | None = None
    conditions: list[Condition] = field(default_factory=list)
    projected: bool = False
    """Whether ranges were recorded with the times of their GPU work, and neither that work nor its launches."""
    loss: str = ""
    """What the reader says where there is no GPU work: of failed launches, or of a file that shows no host either; else ''."""
    ranges: tuple[int, int | None] = (0, None)
    """Results of ncu for several launches at once, and their ns."""
    error: str = ""
    """The last line that the program wrote to its standard error, where there is nothing to judge, '' where it is unknown."""


def judge_runs(ask: Ask, exchanges_of: Callable[[str, str], Communicated]) -> list[RunJudgement]:
    """Return each run and tool, judged; of a run first the tool that disturbs least, of those with something to judge.

    exchanges_of: the communication of a run under a tool over its ranks.
    """
    by_run: dict[tuple[str, str], list[Row]] = {}
    for row in ask(_PROFILES, []).to_pylist():
        by_run.setdefault((row["run"], row["tool"]), []).append(row)
    judgements = [_judge_run(ask, run, tool, profiles, exchanges_of) for (run, tool), profiles in by_run.items()
                  if tool in _TIMELINE]
    of_ncu = [run for run, tool in by_run if tool == "ncu"]
    measured = counters(ask) if of_ncu else {}
    judgements += [RunJudgement(run, "ncu", KERNEL, [], counters=measured[run]) if run in measured else
                   RunJudgement(run, "ncu", NONE, [], ranges=_range_results(ask, run)) for run in of_ncu]
    return sorted(judgements, key=_worth)


def _judge_run(ask: Ask, run: str, tool: str, profiles: Sequence[Row],
               exchanges_of: Callable[[str, str], Communicated]) -> RunJudgement:
    judged_trees: list[Tree] = []
    hosts: list[HostOnly] = []
    failed: list[Condition] = []
    linked: list[Linked] = []
    for profile in profiles:
        recorded = read(ask, profile)
        linked.append(conditions.linked(recorded))
        launches, lost = conditions.lost_launches(recorded)
        failed += conditions.check(recorded, launches, lost)
        of_profile = trees(recorded, lost)
        judged_trees += of_profile
        if not of_profile:
            hosts.append(host_only(recorded))
    if not judged_trees:
        projected = any(_is_projected(ask, profile) for profile in profiles)
        if projected:
            return RunJudgement(run, tool, NONE, [], conditions=failed, projected=True)
        without = _without_gpu(run, tool, hosts, failed)
        loss = _first(ask, _LOSS, profiles, "message", not (without.host and without.host.of_ns))
        return replace(without, loss=loss, error=_first(ask, _ERROR, profiles, "line"))
    judged_trees.sort(key=lambda tree: (tree.rank is None, tree.rank or 0, tree.profile_id, tree.window_index, tree.device_id))
    failed += conditions.missing_ranks({rank for tree in judged_trees for rank in tree.ranks}, _world(ask, profiles))
    exchanges, slow_link = None, None
    if len({tree.rank for tree in judged_trees} - {None}) > 1:
        exchanges, awaited, slow_link = exchanges_of(run, tool)
        judged_trees = [with_awaited(tree, awaited) for tree in judged_trees]
    whole = sums(judged_trees)
    if is_too_little(whole):
        return RunJudgement(run, tool, NONE, judged_trees, whole, conditions=failed, error=_first(ask, _ERROR, profiles, "line"))
    cut = conditions.fragment(linked)
    if cut:
        return RunJudgement(run, tool, NONE, [], whole, conditions=[*cut, *failed])
    if conditions.hides_much(failed):
        return RunJudgement(run, tool, NOT_RECORDED, judged_trees, whole, conditions=failed)
    verdict = replace(judge(whole, waiting(judged_trees, exchanges)), slow_link=slow_link)
    return RunJudgement(run, tool, verdict.cause, judged_trees, whole, verdict, conditions=failed)


def _first(ask: Ask, query: str, profiles: Sequence[Row], column: str, *given: object) -> str:
    """Return the text that a query finds for profiles, '' where it finds none."""
    rows = ask(query, [[profile["profile_id"] for profile in profiles], *given]).to_pylist()
    return str(rows[0][column]) if rows else ""


def _range_results(ask: Ask, run: str) -> tuple[int, int | None]:
    """Return of how many ranges of launches ncu has results, and their ns."""
    row = ask(_OF_SEVERAL, [run]).to_pylist()[0]
    return row["results"], row["ns"]


def _world(ask: Ask, profiles: Sequence[Row]) -> int | None:
    """Return how many ranks the job has, where a process says so."""
    row = ask("SELECT max(world_size) AS ranks FROM processes WHERE list_contains($1, profile_id)",
              [[profile["profile_id"] for profile in profiles]]).to_pylist()[0]
    return row["ranks"]  # type: ignore[no-any-return]


def _is_projected(ask: Ask, profile: Row) -> bool:
    """Return whether a profile holds ranges projected on the GPU, without the work itself."""
    return bool(ask("SELECT 1 FROM range_projections WHERE profile_id = $1 LIMIT 1", [profile["profile_id"]]).num_rows)


def _without_gpu(run: str, tool: str, hosts: list[HostOnly], failed: list[Condition]) -> RunJudgement:
    host = max(hosts, key=lambda each: (each.launches, each.ns))
    cause = NOT_RECORDED if host.launches else CPU if host.name and host.ranges else NONE
    return RunJudgement(run, tool, cause, [], host=host, conditions=failed)


def _worth(each: RunJudgement) -> tuple[Any, ...]:
    order = (*_TIMELINE, "ncu")
    return (each.run, each.verdict is None and each.cause != NOT_RECORDED, each.cause == NONE, each.tool == "ncu",
            order.index(each.tool))
