"""The evidence of a finding: which ranks have it, what was recorded, how sure it is, what speaks against it, what shows more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nsightlens.diagnosis.busy_time import BusyItem
from nsightlens.diagnosis.conditions import BEFORE_LAUNCH, LOST, OVERHEAD, RANKS, UNLINKED
from nsightlens.diagnosis.findings import OF_CALLS, Finding, counter_findings, findings
from nsightlens.diagnosis.idle import Leaf
from nsightlens.diagnosis.judgement import RunJudgement
from nsightlens.diagnosis.profile_arrays import FAULTS, MIGRATIONS
from nsightlens.diagnosis.timeline import OF_LAUNCHES
from nsightlens.diagnosis.tree import Tree
from nsightlens.diagnosis.verdict import COMMUNICATION, COMPUTING, COPIES, IDLE, START_UP, Verdict, sums
from nsightlens.diagnosis.words import RULES
from nsightlens.terminal.command import Command
from nsightlens.views.figures import counted, duration, spans

_SURE = ("low", "medium", "high")
_LESS_SURE = {"host code": 2, "no launches": 2, "sampled code": 1, COMPUTING: 2, COMMUNICATION: 1, "FP32": 1, "low fill": 1,
              "pause": 1, "clock": 1}
"""By how much a cause is less sure than a time that was seen: what it comes from, or what it can give back, is inferred."""
_OF_WORK = (COMPUTING, COMMUNICATION, COPIES, "FP32", "low fill", FAULTS, MIGRATIONS, "clock")
"""Causes that are work of the GPU; of the others, a profiler that slows the host is a part."""
_DOUBTS = (BEFORE_LAUNCH, LOST, OVERHEAD, UNLINKED)
"""Conditions after whose failure the causes of idle time are less sure."""
_LEAVES = {"host code": "unknown", "sampled code": "unknown"}
_ONCE = "A longer run hides it."
_AGAINST = {
    "other end": "Part of it is the bubble that every pipeline has at its start and end.",
    "late rank": "A profiler may slow one host more than others.",
    "link": "Kernels that compute at the same time slow it down.",
    COMMUNICATION: "It includes waits for late ranks where collectives could not be matched.",
    COPIES: "If every step needs new data, copies can only be hidden, and only while kernels run.",
    "data loader": "More workers help only until CPU cores or storage are saturated.",
    "API calls": "A profiler slows each call.",
    "waiting": "What is launched next may depend on the result.",
    "launching": "Without a profiler, launches may be fast enough.",
    "first use": _ONCE, "compiling": _ONCE, "recording graphs": _ONCE, START_UP: _ONCE,
    "pause": "What the host did in them was not recorded.",
    "another GPU": "What it launches there may depend on what the other GPU computes.",
    "no launches": "What the host did was not recorded.",
    "host code": "What the host did was not recorded.",
    "sampled code": "CPU samples say where it ran, not for how long.",
    "FP32": "Lower precision may cost accuracy; that a kernel uses no tensor cores is read from its name.",
    "low fill": "Work of other streams or processes may fill the rest of the GPU.",
    "clock": "Clocks were not looked at: something else may run on that GPU.",
    COMPUTING: "A kernel near its roof gives nothing back.",
}
_HIDDEN_RANKS = "A rank that was not captured may be the late one."
_COMMANDS = {
    "late rank": Command("compare ranks"), "other end": Command("show", ("stage_waits",)), COMPUTING: Command("plan-ncu"),
    "link": Command("show", ("collective_summary",)),
    COMMUNICATION: Command("show", ("comm_compute_overlap",)), COPIES: Command("show", ("memory_op_summary",)),
    "data loader": Command("show", ("step_breakdown",)), "API calls": Command("show", ("cuda_api_summary",)),
    "launching": Command("show", ("launch_statistics",)), "FP32": Command("show", ("kernel_view",)),
    "clock": Command("show", ("device_sample_summary",)), FAULTS: Command("show", ("kernel_page_faults",)),
    MIGRATIONS: Command("show", ("migration_summary",)), "low fill": Command("show", ("kernel_by_config",)),
    "ranges": Command("show", ("idle_by_range",)),
    "MPI": Command("show", ("mpi_call_summary",)), "sampled code": Command("show", ("cpu_sample_summary",)),
    "OS calls": Command("show", ("os_call_summary",)), START_UP: Command("show", ("time_tree",)),
}
_MORE, _COUNTERS = (Command("show", (view,)) for view in ("idle_causes", "speed_of_light"))
"""The commands for the other causes: those of idle time, and those that ncu counted."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A finding with what goes with it. ranks: those that have it, unknown ones left out; who: the same as people say it.

    seen, against: '' where nothing is known.
    """

    finding: Finding
    ranks: tuple[int, ...]
    who: str
    seen: str
    confidence: str
    against: str
    command: Command


def evidence(judged: RunJudgement) -> list[Evidence]:
    """Return all findings of a run, in their order; none where there is nothing to judge. What ncu counted is sure."""
    verdict = judged.verdict
    if verdict is None:
        measured = counter_findings(judged.counters) if judged.counters else []
        return [Evidence(finding, (), "", "", _SURE[-1], "", RULES if finding.cause == "ncu rule" else _COUNTERS)
                for finding in measured]
    every = findings(verdict)
    of_trees = [(tree, findings(replace(verdict, sums=sums([tree]), waiting=None))) for tree in verdict.sums.trees]
    alike = Counter(finding.cause for finding in every)
    return [_evidence(judged, verdict, finding, _holders(finding, alike[finding.cause] == 1, of_trees)) for finding in every]


def _evidence(judged: RunJudgement, verdict: Verdict, finding: Finding, holders: Sequence[Tree]) -> Evidence:
    late = verdict.waiting.late if finding.cause == "late rank" and verdict.waiting else None
    ranks = tuple(sorted(late or {tree.rank for tree in holders if tree.rank is not None}))
    command = _COMMANDS.get("link" if finding.link else finding.cause, _MORE)
    return Evidence(finding, ranks, _who(ranks, len(holders), verdict), "; ".join(_seen(verdict, finding)),
                    _confidence(judged, finding), _against(judged, finding), command)


def _holders(finding: Finding, alone: bool, of_trees: Sequence[tuple[Tree, list[Finding]]]) -> list[Tree]:
    """Return the trees in which it is a finding, too. alone: whether the run has no other of its cause."""
    return [tree for tree, those in of_trees
            if any(each.cause == finding.cause and (alone or each.subject == finding.subject) for each in those)]


def _who(ranks: Sequence[int], holders: int, verdict: Verdict) -> str:
    trees = verdict.sums.trees
    if len(ranks) > 1 and set(ranks) == {tree.rank for tree in trees}:
        return "all ranks"
    if ranks:
        return f"rank{'s' * (len(ranks) > 1)} {spans(map(str, ranks))}"
    return f"{holders} of {len(trees)} GPUs" if holders and len(trees) > 1 else ""


def _confidence(judged: RunJudgement, finding: Finding) -> str:
    doubts = _LESS_SURE.get(finding.cause, 0)
    if finding.cause not in _OF_WORK:
        doubts += judged.tool == "kineto" or any(condition.code in _DOUBTS for condition in judged.conditions)
    return _SURE[max(0, len(_SURE) - 1 - doubts)]


def _against(judged: RunJudgement, finding: Finding) -> str:
    failed = {condition.code for condition in judged.conditions}
    objections = [_AGAINST.get("link" if finding.link else finding.cause, "")]
    if finding.cause not in _OF_WORK and judged.tool == "kineto":
        objections.append("Kineto slows the host.")
    if finding.cause not in _OF_WORK and OVERHEAD in failed:
        objections.append("Of it, some is the profiler's own time.")
    if finding.cause in ("late rank", COMMUNICATION) and RANKS in failed:
        objections.append(_HIDDEN_RANKS)
    return " ".join(filter(None, objections))


def _seen(verdict: Verdict, finding: Finding) -> Iterator[str]:
    """Yield what is known of it, beside its time: how often, in what, and how few gaps hold half of it."""
    sums, waiting = verdict.sums, verdict.waiting
    if finding.cause == "late rank" and waiting:
        yield f"ranks wait {duration(waiting.waited_ns)} for one another"
    elif finding.cause == "FP32":
        yield from _piece_evidence([piece for piece in sums.pieces[COMPUTING] if piece.plain], "kernel", finding)
    elif finding.cause == "other end":
        yield from (f"in {piece.name}" for piece in sums.pieces[COMMUNICATION]
                    if any(str(whom) == finding.subject for whom, _ in piece.awaited))
    elif finding.cause == COMMUNICATION:
        yield from _piece_evidence(sums.pieces[COMMUNICATION], "kernel", finding)
    elif finding.cause in (COMPUTING, COPIES):
        yield from _piece_evidence([piece for piece in sums.pieces[finding.cause] if finding.subject in (piece.name, piece.key)],
                                   "kernel" if finding.cause == COMPUTING else "memory operation", finding)
    elif finding.cause == START_UP:
        yield sums.leaves[START_UP][0].cause
    elif finding.cause == "launching":
        yield from (f"{leaf.cause} {duration(leaf.ns)} in {counted(leaf.gaps, 'gap')}" for leaf in sums.leaves[IDLE]
                    if leaf.cause in OF_LAUNCHES)
    else:
        cause = _LEAVES.get(finding.cause, finding.cause)
        yield from (said for leaf in sums.leaves[IDLE] if leaf.cause == cause for said in _leaf_evidence(leaf, finding))


def _piece_evidence(pieces: Sequence[BusyItem], what: str, finding: Finding) -> Iterator[str]:
    """Yield how many there are, of which memory, and the name of the largest."""
    if pieces:
        yield counted(sum(piece.count for piece in pieces), what)
        yield from (f"{piece.memory} memory" for piece in pieces[:1] if piece.memory)
        yield from (f"mostly {piece.name}" for piece in pieces[:1] if finding.subject not in (piece.name, piece.key))


def _leaf_evidence(leaf: Leaf, finding: Finding) -> Iterator[str]:
    """Yield in how many gaps it is, how few hold half of it, and what else is in the same leaf."""
    if finding.owed_ns:
        yield f"{duration(finding.owed_ns)} of it after the call, until the host is ahead again"
    has_others = leaf.cause in OF_CALLS and leaf.ns != finding.ns - finding.owed_ns
    of = f"{duration(leaf.ns)} with others of its kind, in " if has_others else ""
    yield f"{of}{counted(leaf.gaps, 'gap')}{f', half of it in {leaf.few}' if leaf.few and leaf.gaps > leaf.few else ''}"
    if leaf.sampled and leaf.sampled.where:
        yield f"{counted(leaf.sampled.total, 'CPU sample')} there, mostly in {leaf.sampled.where}"
    others = [name for name, _ in leaf.names[:3] if name and name not in finding.subject]
    if others:
        yield f"beside it {', '.join(others[:2])}" if finding.subject else f"mostly {', '.join(others[:2])}"
