"""The sentences on the difference of runs: what a step takes now, which parts changed most, and how certain that is."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from nsightlens.diagnosis.counter_difference import after_before
from nsightlens.diagnosis.difference import Difference, Line, efficiencies, scale
from nsightlens.diagnosis.verdict import COMMUNICATION, COMPUTING, COPIES, IDLE, NOT_RECORDED, START_UP, WIND_DOWN
from nsightlens.names.kernel_names import labels
from nsightlens.statistics.significance import interval_of_means, smallest_shown
from nsightlens.views.figures import MISSING, counted, counted_both, duration, number, share

_NAME = 40
"""Characters of a name in a sentence."""
_MOST = 3
_WORTH_PCT, _OF_LARGEST_PCT = 1, 15
"""Shares of the window, and of the change that is largest, from which on a part stands in the first sentence."""
REPLAYED = "Times under ncu are those of replayed kernels, alone on the GPU: how much they vary from run to run is unknown."
_FEWEST = 3
"""Steps from which on their median says more than their mean."""
_MANY = 5
"""Recordings of each run that the line on certainty looks ahead to."""
_TIMES = 3
_BRANCHES = {COMPUTING: "computing", COMMUNICATION: "exposed communication", COPIES: "exposed copies", IDLE: "idle",
             NOT_RECORDED: "time that is not recorded", START_UP: "start-up (not part of it)",
             WIND_DOWN: "wind-down (not part of it)"}
_IDLE = {"data loader": "the data loader", "unknown": "idle outside of recorded calls",
         "no launches": "idle for unknown reasons", "another GPU": "idle while another GPU works",
         "launching": "idle while the host launches", "waiting": "idle in calls that wait", "pause": "pauses of the host",
         "fence": "idle behind work from before", "between kernels": "idle between kernels",
         "first use": "first launches of kernels", "recording graphs": "recording graphs", "compiling": "compiling",
         "operators": "idle in the host's operators", "ranges": "idle in the host's ranges", "MPI": "idle in MPI or NCCL calls"}


def first(found: Difference) -> list[str]:
    """Return what is said before all else: whether two runs are of different programs; then the difference in one sentence."""
    return apart(found) or [_series(found) if len(found.sides) > 2 else sentence(found)]


def apart(found: Difference) -> list[str]:
    """Return that two runs have no kernel in common; nothing where they have."""
    if len(found.sides) > 2 or not found.are_apart:
        return []
    base, other = found.sides
    return [f"No kernel is in both runs: {base.run} has {len(base.issuers)}, {other.run} {len(other.issuers)}. They look like "
            "different programs: shares of time can be compared, times cannot."]


def sentence(found: Difference) -> str:
    """Return how the last run differs from the first: the step or window, and the parts that changed most."""
    whole = found.whole
    if duration(whole.ns[0]) == duration(whole.ns[-1]):
        change = f"{duration(whole.ns[0])} in both"
    else:
        change = f"{instead(whole)} ({signed(whole.difference)}, {relative(*whole.ns)})"
    parts = changed(found)
    same = "" if parts or whole.difference else "; no part of it changed"
    return f"{_subject(found)} {change}{_kernels(found)}{_listed(parts)}{same}.{_few(found)}"


def _few(found: Difference) -> str:
    """Return what the median step says where it differs from the mean, as few steps that take long move that; else ''."""
    lengths = [side.step_lengths for side in (found.sides[0], found.sides[-1])]
    if not found.per_step or min(map(len, lengths)) < _FEWEST:
        return ""
    before, after = (round(median(those)) for those in lengths)
    mean, middle = found.whole.difference, after - before
    if abs(mean - middle) < max(_WORTH_PCT * max(found.whole.ns) / 100, max(abs(mean), abs(middle)) / 2):
        return ""
    longest, run = max((max(those), side.run) for those, side in zip(lengths, (found.sides[0], found.sides[-1]), strict=True))
    said = f"{duration(before)} in both" if before == after else f"{after_before(after, before)} ({relative(before, after)})"
    return f" The median {found.called} takes {said}, the longest {duration(longest)}, in {run}."


def _kernel_counts(found: Difference) -> tuple[int, int]:
    """Return how many kernels ran in all windows of the first run, and of the last."""
    before, after = (sum(piece.count for piece in side.sums.pieces[COMPUTING]) for side in (found.sides[0], found.sides[-1]))
    return before, after


def _kernels(found: Difference) -> str:
    """Return how many kernels that compute ran in each window that is no step, where they differ: as much work it is not."""
    before, after = _kernel_counts(found)
    if found.per_step or not before or 100 * abs(after - before) <= _WORTH_PCT * before:
        return ""
    return f", with {number(after)} instead of {counted(before, 'computing kernel')} ({100 * (after - before) / before:+.1f} %)"


def _listed(parts: Sequence[Line]) -> str:
    return f": {'; '.join(f'{called(line)} {instead(line)}' for line in parts)}" if parts else ""


def _subject(found: Difference) -> str:
    if not found.per_step:
        return "First to last GPU work takes"
    return f"{'An' if found.called[0] in 'aeiou' else 'A'} {found.called} takes"


def instead(line: Line) -> str:
    """Return what a part takes in the last run and took in the first: '0.554 instead of 56.74 ms'."""
    return after_before(line.ns[-1], line.ns[0])


def changed(found: Difference) -> list[Line]:
    """Return the parts that stand in the sentence: of a branch the leaf that makes most of its change, else the branch."""
    parts = [part for branch in found.below(()) if not (found.per_step and branch.is_outside) for part in _parts(found, branch)]
    parts = sorted((part for part in parts if not _is_as_much_a_launch(found, part)),
                   key=lambda line: (-abs(line.difference), line.path))
    least = max(_WORTH_PCT * max(found.whole.ns), _OF_LARGEST_PCT * abs(parts[0].difference)) / 100 if parts else 0
    return [line for line in parts[:_MOST] if abs(line.difference) >= least and line.difference]


def _is_as_much_a_launch(found: Difference, line: Line) -> bool:
    """Return whether computing in windows that are no steps takes what it took for each kernel: only their number differs."""
    if found.per_step or line.path[0] != COMPUTING:
        return False
    counts = (line.counts[0], line.counts[-1]) if len(line.path) > 1 else _kernel_counts(found)
    before, after = (ns / count if count else 0.0 for ns, count in zip((line.ns[0], line.ns[-1]), counts, strict=True))
    return bool(before and after) and 100 * abs(after - before) <= _WORTH_PCT * before


def _parts(found: Difference, branch: Line) -> list[Line]:
    """Return a branch, or its leaves where one of them makes over half of what changed in it."""
    leaves = found.below(branch.path)
    moved = sum(abs(leaf.difference) for leaf in leaves)
    if len(leaves) > 1 and 2 * abs(leaves[0].difference) > moved and abs(leaves[0].difference) > abs(branch.difference) / 2:
        return leaves
    return [branch]


def called(line: Line) -> str:
    """Return what people call a part."""
    if len(line.path) == 1:
        return _BRANCHES.get(line.path[0], line.path[0])
    branch, node = line.path[:2]
    if branch == IDLE:
        return _IDLE.get(node, f"idle in {node}")
    if branch in (START_UP, WIND_DOWN):
        return f"{node} in {_BRANCHES[branch]}"
    name = labels({node}, _NAME)[node] if branch in (COMPUTING, COMMUNICATION) else f"{node} copies"
    return name if len(name) <= _NAME else f"{name[:_NAME - 1]}…"


def signed(ns: int) -> str:
    """Return a difference in ns as a text, with its sign."""
    return duration(ns) if ns <= 0 else f"+{duration(ns)}"


def relative(before: float, after: float) -> str:
    """Return a change as a percentage, or as a factor where it is large."""
    if not before:
        return MISSING
    return f"{after / before:.3g} times as long" if after >= _TIMES * before else f"{100 * (after - before) / before:+.1f} %"


def certainty(found: Difference) -> str:
    """Return how certain the difference of two runs is, by what recordings of each vary."""
    base, other = found.recordings
    counts = counted_both(len(base), len(other), "recording")
    reach = interval_of_means(base, other)
    if reach is None:
        return "One recording of each: how much such runs vary is unknown."
    span = f"95 % interval {signed(round(reach[0]))} … {signed(round(reach[1]))}"
    if not reach[0] <= 0 <= reach[1]:
        return f"{counts}: the difference is beyond chance, {span}."
    shown = smallest_shown(base, other, _MANY)
    more = f"; {_MANY} of each would show {share(100 * shown / found.whole.ns[0])}" if shown and found.whole.ns[0] else ""
    return f"{counts}: the difference may be chance, {span}{more}."


def _series(found: Difference) -> str:
    """Return the step time of several runs, their efficiency, and which branch the loss went to."""
    times = ", ".join(f"{duration(ns)} in {side.run}" for ns, side in zip(found.whole.ns, found.sides, strict=True))
    subject = f"{_subject(found)} {times}"
    base, last = found.sides[0], found.sides[-1]
    if len({side.gpus for side in found.sides}) == 1:
        times = f"{signed(found.whole.difference)}, {relative(found.whole.ns[0], found.whole.ns[-1])}"
        return f"{subject}. {last.run} against {base.run}: {times}{_listed(changed(found))}."
    gpus = ", ".join(str(side.gpus) for side in found.sides)
    efficient = ", ".join(share(pct) for pct in efficiencies(found)[1:])
    kind = "as much work for each GPU" if scale(found, last) == 1 else "the work divided among the GPUs"
    return f"{subject}. On {gpus} GPUs, with {kind}, the efficiency is {efficient}{_lost(found)}."


def _lost(found: Difference) -> str:
    """Return where the time went that the last run loses against the first."""
    factor = scale(found, found.sides[-1])
    losses = sorted(((line.ns[-1] - line.ns[0] * factor, line) for line in found.below(()) if not line.is_outside),
                    key=lambda loss: -loss[0])
    whole = found.whole.ns[-1] - found.whole.ns[0] * factor
    worth = [f"{called(line)} {duration(ns)}" for ns, line in losses[:2] if whole > 0 and ns > _OF_LARGEST_PCT * whole / 100]
    return f"; of the {duration(whole)} lost in {found.sides[-1].run}: {', '.join(worth)}" if worth else ""


def unit(found: Difference) -> str:
    """Return of what the times are a mean."""
    if not found.per_step:
        return "first to last GPU work"
    steps = [side.steps for side in found.sides]
    if len(steps) == 2:
        return f"mean of {counted_both(steps[0], steps[1], f'steady {found.called}')}"
    return f"mean of {', '.join(map(str, steps[:-1]))} and {counted(steps[-1], f'steady {found.called}')}"
