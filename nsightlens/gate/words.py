"""The sentences of a check: the verdict with the difference and its cause, each question, and what to know of the recordings."""

from __future__ import annotations

from collections.abc import Sequence

from nsightlens.diagnosis import difference_words
from nsightlens.diagnosis.counter_difference import after_before
from nsightlens.diagnosis.difference import Difference
from nsightlens.gate import questions as gate
from nsightlens.gate.comparable import NODES, WORK, Obstacle
from nsightlens.gate.questions import Answer, KernelChange
from nsightlens.gate.recordings import PLAIN, Recording
from nsightlens.names.kernel_names import labels
from nsightlens.views.figures import MISSING, counted, counted_both, duration, share, size

_NAME, _KERNELS = 40, 3
_NAMED = {gate.STEP: "step time", gate.SLOW: "slow steps", gate.COMMUNICATION: "exposed communication",
          gate.MEMORY: "memory peak"}
_VERDICTS = {gate.OK: "OK", gate.SLOWER: "Slower", gate.UNDECIDED: "Undecided", gate.NOT_COMPARABLE: "Not comparable"}
_WHY = {gate.ALONE: "too few recordings to know how much they vary", gate.UNEVEN: "one side varies more than the other",
        gate.UNVARIED: "the recordings do not vary", gate.MISSING: "not in every recording", gate.NEW: "only in the candidate"}
_DRIFT_PCT = 5
ADVISED = 5
"""Recordings of each side that people are advised to make."""
_PROFILERS = {"nsys": "nsys", "kineto": "the PyTorch profiler"}


def sentences(
    verdict: str, sides: tuple[Sequence[Recording], Sequence[Recording]], answers: Sequence[Answer], against: Sequence[Obstacle],
    found: Difference | None, kernels: Sequence[KernelChange],
) -> list[str]:
    """Return what is said of a check: first the verdict with the difference, then what explains both."""
    first = _step(sides, answers) if found is None or sides[0][0].tool == PLAIN else difference_words.sentence(found)
    beside = [] if found is None or sides[0][0].tool != PLAIN else [
        f"Under {_PROFILERS[found.sides[0].tool]}: {difference_words.sentence(found)}"]
    return [f"{_VERDICTS[verdict]}{_which(verdict, answers)}: {first}", *map(_obstacle, against), *beside, *named(kernels),
            *_certainty(verdict, sides, answers), *_recorded(sides)]


def _which(verdict: str, answers: Sequence[Answer]) -> str:
    """Return which questions make the verdict, where the step time alone does not."""
    items = [called(each.question.item) for each in answers if each.verdict == verdict]
    is_plain = items == [_NAMED[gate.STEP]] or len(items) == len(answers)
    return "" if is_plain or verdict not in (gate.SLOWER, gate.UNDECIDED) else f" ({', '.join(items)})"


def _step(sides: tuple[Sequence[Recording], Sequence[Recording]], answers: Sequence[Answer]) -> str:
    """Return the step time of both sides, by the recordings' figures."""
    (step,) = (each for each in answers if each.question.item == gate.STEP)
    base, candidate = round(step.base or 0), round(step.candidate or 0)
    if base == candidate:
        return f"A step takes {duration(base)} in both."
    return f"A step takes {after_before(candidate, base)} ({difference_words.relative(base, candidate)})."


def _obstacle(each: Obstacle) -> str:
    if each.what == WORK:
        return (f"They do other work: {each.base} of the GPU's time of the base and {each.candidate} of the candidate's are in "
                "operators, shapes or kernels that both have.")
    if each.what == NODES:
        return f"They ran on other nodes, {each.base} and {each.candidate}: a difference of nodes is none of the program."
    return f"{each.what}: {each.base} in the base, {each.candidate} in the candidate."


def named(kernels: Sequence[KernelChange]) -> list[str]:
    """Return the kernels that changed beyond chance, in a sentence."""
    if not kernels:
        return []
    names = labels({each.key for each in kernels[:_KERNELS]}, _NAME)
    parts = [f"{names[each.key]} {after_before(round(each.candidate), round(each.base))} "
             f"({difference_words.relative(each.base, each.candidate)})" for each in kernels[:_KERNELS]]
    more = f", and {counted(len(kernels) - _KERNELS, 'other')}" if len(kernels) > _KERNELS else ""
    return [f"Kernels beyond chance: {'; '.join(parts)}{more}."]


def _certainty(
    verdict: str, sides: tuple[Sequence[Recording], Sequence[Recording]], answers: Sequence[Answer],
) -> list[str]:
    counts = [len(side) for side in sides]
    if counts == [1, 1]:
        return [f"One recording of each: how much such runs vary is unknown. Make {ADVISED} of each."]
    if verdict != gate.UNDECIDED:
        return []
    open_ones = [each for each in answers if each.verdict == gate.UNDECIDED]
    needed = [each.needed for each in open_ones]
    known = [number for number in needed if number]
    if needed and len(known) == len(needed):
        return [f"{counted_both(counts[0], counts[1], 'recording')}: about {max(known)} of each would decide."]
    few = f"; make {ADVISED} of each" if min(counts) < ADVISED else ""
    return [f"{counted_both(counts[0], counts[1], 'recording')} do not decide{few}."]


def _recorded(sides: tuple[Sequence[Recording], Sequence[Recording]]) -> list[str]:
    """Return what to know of the recordings: what timed them, cycles of one process, drift and throttling."""
    every = [*sides[0], *sides[1]]
    found = ["Steps are those that the workload timed itself, without a profiler."] if every[0].tool == PLAIN else []
    found += [f"{counted(one.windows, 'capture')} of {one.run} are cycles of one process, so one recording."
              for one in every if one.windows > 1]
    found += [f"Within recording {one.number} of {one.run}, steps become {share(abs(one.drift_pct))} "
              f"{'longer' if one.drift_pct > 0 else 'shorter'}." for one in every
              if one.drift_pct is not None and abs(one.drift_pct) > _DRIFT_PCT]
    found += [f"In recording {one.number} of {one.run}, the GPU slows down: kernels then take {duration(one.slowed_ns)} longer."
              for one in every if one.slowed_ns > _DRIFT_PCT * one.mean_ns * max(one.steps, 1) / 100]
    return found


def called(item: str) -> str:
    """Return what people call an item."""
    return _NAMED.get(item, labels({item}, _NAME)[item])


def side_figures(answer: Answer) -> tuple[str, str]:
    """Return the figures of both sides as texts."""
    item = answer.question.item
    text = share if answer.question.unit == gate.POINTS else size if item == gate.MEMORY else duration
    return text(answer.base), text(answer.candidate)


def limit(answer: Answer) -> str:
    """Return the limit of a question."""
    figure = f"{answer.question.limit:g}"
    return "1 point" if figure == "1" and answer.question.unit == gate.POINTS else f"{figure} {_unit(answer)}"


def change(answer: Answer) -> str:
    """Return by how much the candidate is above the base, with the 95 % interval."""
    if answer.change is None:
        return MISSING
    span = "" if answer.low is None or answer.high is None else f" ({answer.low:+.2f} … {answer.high:+.2f})"
    return f"{answer.change:+.2f}{span} {_unit(answer)}"


def _unit(answer: Answer) -> str:
    return "%" if answer.question.unit == gate.PERCENT else "points"


def outcome(answer: Answer) -> str:
    """Return the verdict on a question, and what an undecided one could have shown, or why it is none."""
    if answer.verdict != gate.UNDECIDED:
        return answer.verdict
    if answer.why:
        return f"{answer.verdict}: {_WHY[answer.why]}"
    return answer.verdict if answer.shown is None else f"{answer.verdict}: would have shown {answer.shown:+.2g} {_unit(answer)}"
