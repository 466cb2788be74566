"""The questions of a gate, each judged by itself: slower, ok or undecided; and which kernels changed, which is not gated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, log1p

from nsightlens.errors import UsageError
from nsightlens.gate.recordings import Recording
from nsightlens.statistics.gating import ALPHA, Contrast, contrast
from nsightlens.statistics.significance import differences, discovery_rates, samples

OK, SLOWER, UNDECIDED, NOT_COMPARABLE = "ok", "slower", "undecided", "not comparable"
STEP, SLOW, COMMUNICATION, MEMORY = "step", "slow_steps", "exposed_communication", "memory_peak"
PERCENT, POINTS = "%", "points"
LIMIT, SLOW_LIMIT = 3.0, 1.0
"""Limits where none is given: of the step time in percent, of slow steps in points."""
_FDR = 0.05
_Means = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class Question:
    """What must not grow beyond a limit. unit: % of its time, or points where it is a share. item: STEP …, a family or kernel."""

    item: str
    limit: float
    unit: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The verdict on a question. base, candidate: means over recordings (geometric, of times), None where one has none.

    change, low, high, shown: in the question's unit; low and high: the 95 % interval; shown: the smallest growth that these
    recordings would have called slower in four of five cases. needed: recordings of each side that would decide. why: what keeps
    it undecided. All None where not known.
    """

    question: Question
    verdict: str
    base: float | None
    candidate: float | None
    counts: tuple[int, int]
    nodes: int = 0
    change: float | None = None
    low: float | None = None
    high: float | None = None
    shown: float | None = None
    needed: int | None = None
    why: str = ""


ALONE, UNEVEN, UNVARIED, MISSING, NEW = "alone", "uneven", "unvaried", "missing", "new"
"""Why a question is undecided: too few recordings, one side varies more, none varies, one lacks it, only the candidate has it."""


def questions(limit: float, slow: float, regressions: Mapping[str, float], recordings: Sequence[Recording]) -> list[Question]:
    """Return the questions: step time and slow steps, and what is given a limit of its own.

    Raises UsageError for an item that no recording has.
    """
    found = {STEP: Question(STEP, limit, PERCENT), SLOW: Question(SLOW, slow, POINTS)}
    families = {name for one in recordings for name in one.families if name}
    kernels = {name for one in recordings for name in one.kernels}
    for item, own in regressions.items():
        if item in (STEP, SLOW, COMMUNICATION):
            found[item] = Question(item, own, PERCENT if item == STEP else POINTS)
        elif item == MEMORY or item in families or item in kernels:
            found[item] = Question(item, own, PERCENT)
        else:
            choices = [STEP, SLOW, COMMUNICATION, MEMORY, *sorted(families)]
            raise UsageError(f"{item}: neither a family of kernels nor a kernel of these recordings; items: {', '.join(choices)}",
                             subject="max_regression", value=item, choices=choices)
    return list(found.values())


def answer(
    question: Question, sides: tuple[Sequence[Recording], Sequence[Recording]], asked: int, look: int | None,
) -> Answer:
    """Return the verdict on a question. asked: how many questions the gate has, over which the level of *slower* is divided.

    look: which look at growing numbers of recordings this is, from 1; each has half of what the one before it had.
    """
    figures = [[figure(one, question.item) for one in side] for side in sides]
    counts = len(sides[0]), len(sides[1])
    known = [[value for value in side if value is not None] for side in figures]
    means = mean(known[0], question), mean(known[1], question)
    if len(known[0]) < counts[0] or len(known[1]) < counts[1]:
        return Answer(question, UNDECIDED, *means, counts, why=MISSING)
    is_ratio = question.unit == PERCENT
    if is_ratio and not (all(known[0]) and all(known[1])):
        return _absent(question, known, means, counts)
    base, candidate = ([log(value) for value in side] if is_ratio else side for side in known)
    found = contrast(base, candidate, ([one.node for one in sides[0]], [one.node for one in sides[1]]))
    alpha = ALPHA / 2 ** (look or 0)
    return _judged(question, found, means, alpha, alpha / asked)


def _judged(question: Question, found: Contrast, means: _Means, alpha: float, divided: float) -> Answer:
    is_ratio = question.unit == PERCENT
    limit = log1p(question.limit / 100) if is_ratio else question.limit
    verdict, why = _verdict(found, limit, alpha, divided)
    if why == UNVARIED and question.item == MEMORY:  # the same in each recording by nature, not for want of a finer clock
        verdict, why = SLOWER if found.difference > limit else OK, ""
    shown, span = found.smallest_shown(divided), found.interval(alpha)
    figures = [found.difference, *(span or (None, None)), None if shown is None else limit + shown]
    change, low, high, smallest = (_in_unit(value, is_ratio) for value in figures)
    needed = found.needed(limit, divided) if verdict == UNDECIDED and why != UNEVEN else None
    return Answer(question, verdict, *means, found.counts, found.nodes, change, low, high, smallest, needed, why)


def _verdict(found: Contrast, limit: float, alpha: float, divided: float) -> tuple[str, str]:
    """Return the verdict, and why it is none. alpha: the level of *ok*; divided: that of *slower*."""
    if not found.errors:
        if found.freedom and found.difference <= 0:
            return OK, ""
        return UNDECIDED, UNVARIED if found.freedom else ALONE
    within, beyond = found.interval(alpha), found.interval(divided)
    assert within and beyond
    if beyond[0] > limit:
        return SLOWER, ""
    return (OK, "") if within[1] < limit else (UNDECIDED, UNEVEN if found.is_uneven else "")


def _in_unit(value: float | None, is_ratio: bool) -> float | None:
    return 100 * (exp(value) - 1) if is_ratio and value is not None else value


def mean(values: Sequence[float], question: Question) -> float | None:
    """Return the mean of figures of recordings, geometric of times; None without any."""
    if not values:
        return None
    if question.unit == PERCENT and all(values):
        return exp(sum(map(log, values)) / len(values))
    return sum(values) / len(values)


def _absent(
    question: Question, known: Sequence[Sequence[float]], means: _Means, counts: tuple[int, int],
) -> Answer:
    """Return the answer where recordings spend no time on an item: ok where the candidate spends none."""
    if not any(known[1]):
        return Answer(question, OK, *means, counts)
    return Answer(question, UNDECIDED, *means, counts, why=NEW if not any(known[0]) else MISSING)


def figure(recording: Recording, item: str) -> float | None:
    """Return the figure of a recording for an item: ns, percent of its time, or bytes; None where it was not recorded."""
    if item == STEP:
        return recording.trimmed_ns
    if item == SLOW:
        return recording.slow_pct
    if item == COMMUNICATION:
        return recording.communication_pct
    if item == MEMORY:
        return recording.peak_bytes
    if not recording.kernels:
        return None
    return recording.kernels.get(item, recording.families.get(item, 0.0))


def overall(answers: Sequence[Answer]) -> str:
    """Return the verdict of a gate: slower where one question is, ok where all are."""
    verdicts = [each.verdict for each in answers]
    return SLOWER if SLOWER in verdicts else UNDECIDED if UNDECIDED in verdicts else OK


@dataclass(frozen=True, slots=True)
class KernelChange:
    """A kernel beyond chance: its mean ns in a step of each side, the 95 % interval of the difference, and the smallest
    false-discovery rate at which it is named."""

    key: str
    base: float
    candidate: float
    low: float
    high: float
    rate: float


def kernels(
    sides: tuple[Sequence[Recording], Sequence[Recording]], renamed: Mapping[str, str],
) -> list[KernelChange]:
    """Return the kernels whose time changed beyond chance, the largest change first; nothing with fewer than three recordings.

    renamed: kernels of the base by their names in the candidate.
    """
    if len(sides[0]) + len(sides[1]) < 3 or not min(map(len, sides)):
        return []
    base, candidate = ([one.kernels for one in side] for side in sides)
    base = [{renamed.get(name, name): ns for name, ns in each.items()} for each in base]
    names = sorted({name for each in (*base, *candidate) for name in each})
    if not names:
        return []
    one, two = (samples([[each.get(name, 0.0) for each in side] for name in names]) for side in (base, candidate))
    found = differences(one, two, pooled=True)
    rates = discovery_rates(found.p)
    columns = zip(names, *(column.tolist() for column in (one.mean, two.mean, found.low, found.high, rates)), strict=True)
    changes = [change for change in (KernelChange(*row) for row in columns)
               if change.rate <= _FDR and (change.low > 0 or change.high < 0)]
    return sorted(changes, key=lambda change: (-abs(change.candidate - change.base), change.key))
