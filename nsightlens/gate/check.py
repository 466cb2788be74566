"""A check: whether the candidate became slower than the base, with each answer, each recording, the cause and the exit code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nsightlens.analyses import _compared_runs, tree_difference
from nsightlens.diagnosis import difference as trees
from nsightlens.diagnosis.verdict import sums
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.gate import questions as gate
from nsightlens.gate import recordings as figures
from nsightlens.gate import words
from nsightlens.gate.baselines import Saved
from nsightlens.gate.comparable import Obstacle, Properties, merged, obstacles, properties
from nsightlens.gate.questions import NOT_COMPARABLE, OK, SLOWER, UNDECIDED, Answer, KernelChange
from nsightlens.gate.recordings import PLAIN, Recording

if TYPE_CHECKING:
    from nsightlens.store.comparison import RunPlace

EXIT_CODES = {OK: 0, SLOWER: 3, UNDECIDED: 4, NOT_COMPARABLE: 5}
BASE, CANDIDATE = "base", "candidate"
_QUESTIONS = pa.schema([
    ("item", pa.string()), ("verdict", pa.string()), ("limit", pa.float64()), ("unit", pa.string()), ("base", pa.float64()),
    ("candidate", pa.float64()), ("change", pa.float64()), ("low", pa.float64()), ("high", pa.float64()), ("shown", pa.float64()),
    ("needed", pa.int64()), ("base_recordings", pa.int64()), ("candidate_recordings", pa.int64()), ("paired_nodes", pa.int64()),
    ("why", pa.string())])
_RECORDINGS = pa.schema([
    ("side", pa.string()), ("run", pa.string()), ("tool", pa.string()), ("recording", pa.int64()), ("node", pa.string()),
    ("commit", pa.string()), ("windows", pa.int64()), ("steps", pa.int64()), ("dropped", pa.int64()), ("mean_ns", pa.float64()),
    ("trimmed_ns", pa.float64()), ("slow_pct", pa.float64()), ("communication_pct", pa.float64()), ("peak_bytes", pa.int64()),
    ("drift_pct", pa.float64()), ("slowed_ns", pa.int64()), ("begun_ns", pa.int64())])
_KERNELS = pa.schema([
    ("kernel_key", pa.string()), ("base_ns", pa.float64()), ("candidate_ns", pa.float64()), ("difference_ns", pa.float64()),
    ("change_pct", pa.float64()), ("low_ns", pa.float64()), ("high_ns", pa.float64()), ("q_value", pa.float64()),
    ("base_recordings", pa.int64()), ("candidate_recordings", pa.int64())])
_OF_ANSWER = ("verdict", "base", "candidate", "change", "low", "high", "shown", "needed")
_VERDICT = pa.schema([("verdict", pa.string()), ("exit_code", pa.int64()), ("sentence", pa.string())])


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a check. limit_pct: of the step time; slow_points: of slow steps; regressions: limits by item; look: which
    look at growing numbers of recordings this is; force: judge what is not comparable."""

    limit_pct: float = gate.LIMIT
    slow_points: float = gate.SLOW_LIMIT
    regressions: Mapping[str, float] = field(default_factory=dict)
    look: int | None = None
    force: bool = False

    def __post_init__(self) -> None:
        limits = {"limit": self.limit_pct, "slow_steps": self.slow_points, **self.regressions}
        for name, limit in limits.items():
            if not (isfinite(limit) and 0 <= limit <= _MOST):
                raise UsageError(f"{name}: a limit is 0 to {_MOST}, not {limit}", subject=name, value=limit)
        if self.look is not None and not 1 <= self.look <= _LOOKS:
            raise UsageError(f"look is 1 (the first of several) to {_LOOKS}, not {self.look}", subject="look", value=self.look)


_MOST, _LOOKS = 1000, 20


class Check(dict[str, pa.Table]):
    """The tables of a check (questions, recordings, kernels, tree, verdict); printed, and in a notebook, what it says.

    verdict: ok, slower, undecided or not comparable. exit_code: what the command ends with. answers, obstacles, sides, kernels:
    the values behind the tables; found: the difference of the trees, None without any. sentences: what is said, verdict first.
    """

    def __init__(
        self, sides: tuple[Sequence[Recording], Sequence[Recording]], answers: Sequence[Answer], against: Sequence[Obstacle],
        found: trees.Difference | None, kernels: Sequence[KernelChange], asked: Asked,
    ) -> None:
        self.sides, self.answers, self.obstacles = sides, tuple(answers), tuple(against)
        self.found, self.kernels, self.asked = found, tuple(kernels), asked
        self.verdict = NOT_COMPARABLE if against and not asked.force else gate.overall(answers)
        self.exit_code = EXIT_CODES[self.verdict]
        self.sentences = words.sentences(self.verdict, sides, answers, against, found, kernels)
        super().__init__(self._tables())

    def _tables(self) -> dict[str, pa.Table]:
        verdict = [{"verdict": self.verdict, "exit_code": self.exit_code, "sentence": self.sentences[0]}]
        rows = [{"side": name, "recording": one.number, **asdict(one)}
                for name, side in zip((BASE, CANDIDATE), self.sides, strict=True) for one in side]
        found = {
            "verdict": pa.Table.from_pylist(verdict, schema=_VERDICT),
            "questions": pa.Table.from_pylist([_question(each) for each in self.answers], schema=_QUESTIONS),
            "recordings": pa.Table.from_pylist([{name: row[name] for name in _RECORDINGS.names} for row in rows],
                                               schema=_RECORDINGS),
            "kernels": pa.Table.from_pylist([self._kernel(each) for each in self.kernels], schema=_KERNELS)}
        return found | ({"tree": tree_difference.table(self.found)} if self.found else {})

    def _kernel(self, change: KernelChange) -> dict[str, Any]:
        return {"kernel_key": change.key, "base_ns": change.base, "candidate_ns": change.candidate,
                "difference_ns": change.candidate - change.base,
                "change_pct": 100 * (change.candidate - change.base) / change.base if change.base else None,
                "low_ns": change.low, "high_ns": change.high, "q_value": change.rate,
                "base_recordings": len(self.sides[0]), "candidate_recordings": len(self.sides[1])}

    def __repr__(self) -> str:
        """Return what it says, and the names of the tables with their numbers of rows."""
        tables = ", ".join(f"{name} ({table.num_rows})" for name, table in self.items())
        return "\n".join([*self.sentences, f"tables (rows): {tables}"])

    def _repr_html_(self) -> str:
        """Return what it says and its questions, as notebooks show them."""
        from nsightlens.views.html_table import escaped, html_table

        return "".join(f"<p>{escaped(line)}</p>" for line in self.sentences) + html_table(self["questions"], len(self.answers))


def _question(each: Answer) -> dict[str, Any]:
    question = each.question
    return {"item": question.item, "limit": question.limit, "unit": question.unit, "base_recordings": each.counts[0],
            "candidate_recordings": each.counts[1], "paired_nodes": each.nodes, "why": each.why or None,
            **{name: getattr(each, name) for name in _OF_ANSWER}}


def check_sides(base: Sequence[RunPlace | Saved], candidate: Sequence[RunPlace | Saved], asked: Asked) -> Check:
    """Return the check of runs and baselines, one or several on each side.

    Raises NsightlensError where nothing of both was timed alike, or something only of some.
    """
    sides = tuple(base), tuple(candidate)
    tool, found, traced = _traced(sides)
    plain = _plain(base), _plain(candidate)
    timed = plain if _fewest(plain) and _fewest(plain) >= _fewest(traced) else traced
    if not _fewest(timed):
        raise NsightlensError(
            "nothing to check: one side has neither GPU work on a timeline (nsys, PyTorch profiler) nor steps.json of a run "
            "without a profiler. Times under ncu are those of replayed kernels")
    lacking = [each.name for side in sides for each in side if not isinstance(each, Saved) and not _tools(each)]
    if timed is traced and lacking:
        raise NsightlensError(f"{', '.join(lacking)}: no GPU work on a timeline, as others have it: check without")
    timed_by = "steps" if timed is plain else tool
    against = obstacles((_properties(base, timed_by), _properties(candidate, timed_by)), timed, traced, found)
    traced_too = traced if _fewest(traced) else timed
    wanted = gate.questions(asked.limit_pct, asked.slow_points, asked.regressions, [*traced_too[0], *traced_too[1]])
    answers = [gate.answer(each, timed if each.item in (gate.STEP, gate.SLOW) else traced_too, len(wanted), asked.look)
               for each in wanted]
    renamed = trees.renames(found.sides[0], found.sides[1]) if found else {}
    return Check(timed, answers, against, found, gate.kernels(traced_too, renamed), asked)


def _fewest(sides: tuple[Sequence[Recording], Sequence[Recording]]) -> int:
    return min(map(len, sides))


def _plain(side: Sequence[RunPlace | Saved]) -> list[Recording]:
    saved = [one for each in side if isinstance(each, Saved) for one in each.recordings.get(PLAIN, ())]
    return figures.plain([each for each in side if not isinstance(each, Saved)]) + saved


def _properties(side: Sequence[RunPlace | Saved], tool: str) -> Properties:
    """Return the properties of a side under a tool."""
    return merged(each.properties if isinstance(each, Saved) else properties(each) for each in side).get(tool, {})


def _traced(
    sides: tuple[Sequence[RunPlace | Saved], Sequence[RunPlace | Saved]],
) -> tuple[str, trees.Difference | None, tuple[list[Recording], list[Recording]]]:
    """Return the tool that both sides have a timeline of, the difference of their trees (None with a baseline), and their
    recordings. Raises NsightlensError where a baseline is of steps and the others are not, or the other way round."""
    there = [[(each, tools) for each in side if (tools := _tools(each))] for side in sides]
    if not all(there):
        return "", None, ([], [])
    every = [each for side in there for each in side]
    named = [", ".join(each.runs) if isinstance(each, Saved) else each.name for each, _ in every]
    tool = _compared_runs.common_tool(named, [tools for _, tools in every], None)
    places = [[each for each, _ in side if not isinstance(each, Saved)] for side in there]
    saved = [[one for each, _ in side if isinstance(each, Saved) for one in each.recordings[tool]] for side in there]
    per_step = all(tree.window.steps for place in [*places[0], *places[1]] for tree in figures.trees_of(place, tool))
    if any(bool(one.steps) != per_step for one in [*saved[0], *saved[1]]):
        raise NsightlensError("nothing to check: the baseline and the others are not both of steps")
    base, candidate = (figures.traced(of_side, tool, per_step=per_step) + kept
                       for of_side, kept in zip(places, saved, strict=True))
    if saved[0] or saved[1]:
        return tool, None, (base, candidate)
    return tool, trees.difference([_side(name, side, tool) for name, side in ((BASE, places[0]), (CANDIDATE, places[1]))]), (
        base, candidate)


def _tools(side: RunPlace | Saved) -> list[str]:
    if isinstance(side, Saved):
        return [tool for tool in side.recordings if tool != PLAIN]
    return _compared_runs.tools(side.store.sql, side.run)


def _side(name: str, places: Sequence[RunPlace], tool: str) -> trees.Side:
    """Return the runs of a side as one side of a difference."""
    sides = [_compared_runs.side(place.store.sql, place.run, tool) for place in places]
    issuers: dict[str, dict[tuple[str, str], int]] = defaultdict(dict)
    for side in sides:
        for key, by_issuer in side.issuers.items():
            of_key = issuers[key]
            for issuer, ns in by_issuer.items():
                of_key[issuer] = of_key.get(issuer, 0) + ns
    return trees.Side(name, tool, sums([tree for side in sides for tree in side.sums.trees]),
                      tuple(each for side in sides for each in side.recordings), issuers, max(side.gpus for side in sides),
                      sum(side.missing for side in sides))
