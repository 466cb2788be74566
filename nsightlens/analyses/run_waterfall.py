"""Where the change of the step time between two runs comes from: exclusive time per item, which sums to the step exactly.

Each moment of a step belongs to one item, the first of: a compute kernel (CUDA graphs of unknown kernels come after known
ones); a memory operation; a communication kernel; and if the GPU idles, the host's activity: a communication call, a runtime
call, the data loader, an operator, nothing recorded. Collectives hidden by kernels therefore do not appear. Of two concurrent
items of one kind, the earlier one has the time until it ends. A step is that of step_breakdown: from the end of the previous
step (the first: from its range's start) to the end of its range and of the GPU work launched in it. The host range alone would
include GPU work of the previous step. Times are means over a rank's steps in a recording, then over its ranks, then over the
recordings: exact fractions, rounded so that the items still sum to the rounded step (largest remainder). Ranks are those that
both runs have; if world sizes differ, or no rank is known, all processes of each run. A process that drives several GPUs
counts as one. Runs without steps are compared by share only, without a verdict: base_ns and other_ns are then time in the
captured slices (from the first operator on, and after the GPU work launched before it), not step times. Both runs are compared
under one tool: nsys where both have it, else Kineto; without a common tool, they are refused. low_ns, high_ns and verdict are
those of run_difference: they rest on recordings.
@scope run
@topic runs
@requires _bounded_kernels, _exclusive_time, _steps, api_calls, kernels, memory_ops, processes, profiles, ranges, recordings
@assumes Both runs do the same work per step (comparability: what differs), and a rank is the same part of it in both.
@assumes A step is a ProfilerStep of Kineto, or an NVTX range named like one (docs/attribution.md): one sequence per process.
@assumes GPU work belongs to the step that launched it, and time with no GPU work on record is idle: what a tool lost shows there.
@assumes Each process has a GPU of its own: where several share one, the work of the others counts as idle time.
@param  base            Baseline run; NULL: the first of the store's two runs.
@param  other           Run that is compared with it; NULL: the second.
@param  by              family, kernel (key and launch configuration), key, op, module or phase: what the items of GPU work are.
@param  per             'run': one waterfall, of the mean over the ranks. 'rank': one for each rank that both runs have.
@param  time            Tool whose times are compared: nsys or kineto; NULL: nsys where both runs have it, else Kineto.
@param  skip_steps      Steps at the start of each process of a recording that are left out (warm-up).
@param  fdr             False-discovery rate: the largest share of false positives among the changes named.
@param  threshold_pct   Smallest change of an item's own time to report, in percent.
@first item, difference_ns, low_ns, high_ns, base_ns, other_ns, rank, verdict
@column base_run        Run that is the measure.
@column other_run       Run that is compared with it.
@column rank            Rank; NULL: the mean over the ranks.
@column kind            compute, memory, collective, or idle (of the GPU).
@column item            The family, kernel, operator, …, memory operation, or what the host did; NULL where it is not known.
@column tool            Tool whose times are compared.
@column unit            per step, or of the capture where a run has no steps.
@column verdict         slower, faster, new, vanished, no change or undecided: of the runs.
@column absent          new, vanished: in no recording of the one run.
@column base_ns         Exclusive time in a mean step of base.
@column other_ns        The same in other.
@column difference_ns   other_ns minus base_ns; NULL without steps.
@column low_ns          Lower end of its 95 % interval, over the recordings; NULL with one recording of each run.
@column high_ns         Upper end.
@column base_pct        base_ns as a share of the step or capture.
@column other_pct       The same in other.
@column difference_pct  other_pct minus base_pct, in points.
@column base_total_ns   The mean step of base, or its mean capture.
@column other_total_ns  The same of other.
@column change_ns       Change of the step time; NULL without steps.
@column base_steps      Steps of base that count, over all ranks.
@column other_steps     Steps of other.
@column base_recordings Recordings of base.
@column other_recordings Recordings of other.
@column base_ranks      Ranks (processes, where unknown) of base that count.
@column other_ranks     Those of other.
@column excluded_ranks  Ranks that only one of the runs has, and that do not count; NULL: none.
@balance base_total_ns = base_ns per rank
@balance other_total_ns = other_ns per rank
@balance change_ns = difference_ns per rank
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses._runs import named
from nsightlens.analyses.run_difference import check, common_tool, judgement
from nsightlens.columns.arrays import Int
from nsightlens.errors import UsageError, not_a_choice
from nsightlens.statistics.changes import judged
from nsightlens.statistics.rounding import apportioned, nearest

Key = tuple[str, str]
Owner = tuple[int, int | str]

PER_STEP, OF_CAPTURE = "per step", "of the capture"
_UNKNOWN = ""
"""Stands for the item that is not known: no kernel, family, operator or module has an empty name."""
_AT_ONCE = 1_000_000
"""Pieces of work that are swept at once: the sweep holds all of a slice of time."""
_BINS = 10_000
# How the work of a run is spread over the time of its profiles; cuts between bins are as good as any.
_BUSY = """
WITH work AS (
    SELECT start_ns FROM kernels WHERE run = $1 AND tool = $2
    UNION ALL SELECT start_ns FROM memory_ops WHERE run = $1 AND tool = $2
    UNION ALL SELECT start_ns FROM api_calls WHERE run = $1 AND tool = $2
    UNION ALL SELECT start_ns FROM ranges WHERE run = $1 AND tool = $2
), bins AS (
    SELECT greatest(1, (max(start_ns) - min(start_ns)) // $3) AS width FROM work
)
SELECT start_ns // width * width AS from_ns, count(*) AS count
FROM work, bins WHERE start_ns IS NOT NULL GROUP BY from_ns ORDER BY from_ns
"""
_STEPS = """
SELECT s.process_id, p.rank, s.end_ns - s.start_ns AS step_ns, step_id IS NOT NULL AS stepped,
    coalesce(recording, 0) AS recording,
    row_number() OVER (ORDER BY s.profile_id, s.process_id, window_index, s.start_ns, s.end_ns, step_id) AS place
FROM _steps AS s LEFT JOIN profiles AS f ON f.profile_id = s.profile_id
LEFT JOIN processes AS p ON p.process_id = s.process_id AND p.profile_id = s.profile_id
LEFT JOIN recordings AS r ON r.profile_id = s.profile_id
WHERE s.run = $1 AND s.tool = $2
ORDER BY f.origin_epoch_ns + s.start_ns, s.profile_id, s.process_id, window_index, s.start_ns, step_id
"""
_SLICE = """
SELECT kind, item, list(place) AS places, list(total_ns) AS times
FROM _exclusive_time(of_run := $1, under_tool := $2, items_of := $3, from_ns := $4, until_ns := $5)
WHERE kind IS NOT NULL GROUP BY kind, item
"""
_WORLDS = """
SELECT count(DISTINCT size) AS sizes
FROM (SELECT max(world_size) AS size FROM processes WHERE run IN (?, ?) AND tool = ? GROUP BY run)
"""
_SCHEMA = pa.schema([
    ("base_run", pa.string()), ("other_run", pa.string()), ("rank", pa.int32()), ("kind", pa.string()), ("item", pa.string()),
    ("tool", pa.string()), ("unit", pa.string()), ("verdict", pa.string()), ("absent", pa.string()),
    ("base_ns", pa.int64()), ("other_ns", pa.int64()),
    ("difference_ns", pa.int64()), ("low_ns", pa.int64()), ("high_ns", pa.int64()), ("base_pct", pa.float64()),
    ("other_pct", pa.float64()), ("difference_pct", pa.float64()), ("base_total_ns", pa.int64()), ("other_total_ns", pa.int64()),
    ("change_ns", pa.int64()), ("base_steps", pa.int64()), ("other_steps", pa.int64()), ("base_recordings", pa.int64()),
    ("other_recordings", pa.int64()), ("base_ranks", pa.int64()), ("other_ranks", pa.int64()), ("excluded_ranks", pa.string()),
])


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The steps of one run: owner (recording, and rank or else process), position among the owner's steps, length; items: their
    times in steps, of which one may stand there more than once."""

    owners: list[Owner]
    owner: Int
    nth: Int
    lengths: Int
    items: dict[Key, tuple[Int, Int]]
    stepped: bool


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean step over some owners: times in ns and shares in hundredths of a percent, in the order of the keys; recordings: per
    item its mean in each recording."""

    times: list[int]
    shares: list[int]
    total: int
    steps: int
    recordings: dict[Key, list[float]]


def analyse(
    ask: Ask, *, base: str | None = None, other: str | None = None, by: str = "family", per: str = "run",
    time: str | None = None, skip_steps: int = 0, fdr: float = 0.01, threshold_pct: float = 1.0,
) -> pa.Table:
    """Return a row per item (and rank), the largest change first; none where a run has no timeline. Raises UsageError."""
    if per not in ("run", "rank"):
        raise not_a_choice("run_waterfall", "per", per, ("run", "rank"))
    check(fdr, threshold_pct, skip_steps)
    runs = named(ask, base, other)
    tool, _ = common_tool(ask, *runs, time)
    sides = [side for run in runs if (side := _read(ask, run, tool, by, skip_steps)) is not None]
    if len(sides) < len(runs):
        return _SCHEMA.empty_table()
    stepped = sides[0].stepped and sides[1].stepped
    alike = ask(_WORLDS, [*runs, tool])["sizes"][0].as_py() < 2
    rows: list[dict[str, Any]] = []
    for rank, owners, excluded_ranks in _pairs(sides, per, alike):
        common = {"base_run": runs[0], "other_run": runs[1], "rank": rank, "tool": tool, "excluded_ranks": excluded_ranks}
        rows += [common | row for row in _rows(sides, owners, stepped, fdr, threshold_pct)]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def called(row: Mapping[str, Any]) -> str:
    """Return what people call a row: its item, with its kind where the item alone is ambiguous."""
    kind, item = row["kind"], row["item"]
    if kind == "idle":
        return "idle, nothing recorded" if item == "nothing recorded" else f"idle, host: {item}"
    if item is None:
        return f"{kind}, unattributed"
    if kind == "compute":
        return f"{item} kernels" if item in ("memory", "collective") else str(item)
    return str(item) if item in (kind, "memset") or str(item).startswith("memcpy") else f"{kind}: {item}"


def _read(ask: Ask, run: str, tool: str, by: str, skip: int) -> StepTimes | None:
    """Return the steps of a run without the first `skip` of each owner; None where nothing is on a timeline.

    Raises UsageError where no step is left.
    """
    steps = ask(_STEPS, [run, tool])
    columns = (steps[name].to_pylist() for name in ("recording", "rank", "process_id"))
    names: list[Owner] = [(recording, process if rank is None else rank)
                          for recording, rank, process in zip(*columns, strict=True)]
    if not names:
        return None
    known = np.array(steps["stepped"].to_pylist(), dtype=bool)
    stepped = bool(known.any())
    order: dict[Owner, int] = {}
    seen: Counter[Owner] = Counter()
    nth = np.full(len(names), -1, dtype=np.int64)
    for place in np.flatnonzero(known) if stepped else range(len(names)):
        nth[place] = seen[names[place]] - (skip if stepped else 0)
        seen[names[place]] += 1
    kept = np.flatnonzero(nth >= 0)
    if not len(kept):
        raise UsageError(f"{run} has no step left under {tool}: it has {max(seen.values())} per rank")
    new = np.full(len(names) + 1, -1, dtype=np.int64)
    new[steps["place"].to_numpy()[kept]] = np.arange(len(kept))
    owner = np.array([order.setdefault(names[place], len(order)) for place in kept], dtype=np.int64)
    return StepTimes(list(order), owner, nth[kept], steps["step_ns"].to_numpy()[kept], _items(ask, run, tool, by, new), stepped)


def _items(ask: Ask, run: str, tool: str, by: str, new: Int) -> dict[Key, tuple[Int, Int]]:
    """Return the time of each item in the steps that count. new: place of a step in the sweep -> its place among these, or -1."""
    found: dict[Key, list[tuple[Int, Int]]] = {}
    for slice_of_time in pairwise([None, *_cuts(ask, run, tool), None]):
        table = ask(_SLICE, [run, tool, by, *slice_of_time])
        for row in range(table.num_rows):
            places = new[_flat(table, "places", row)]
            counts = places >= 0
            if counts.any():
                key = table["kind"][row].as_py(), table["item"][row].as_py() or _UNKNOWN
                found.setdefault(key, []).append((places[counts], _flat(table, "times", row)[counts]))
    return {key: (np.concatenate([places for places, _ in parts]), np.concatenate([times for _, times in parts]))
            for key, parts in found.items()}


def _cuts(ask: Ask, run: str, tool: str) -> list[int]:
    """Return where the time of a run is cut, so that about _AT_ONCE pieces of work begin in each slice."""
    bins = ask(_BUSY, [run, tool, _BINS])
    counts, starts = (bins[name].to_numpy() for name in ("count", "from_ns"))
    before = (np.cumsum(counts) - counts) // _AT_ONCE
    return [int(start) for start in starts[1:][np.diff(before) > 0]]


def _flat(table: pa.Table, column: str, row: int) -> Int:
    return np.asarray(table[column][row].values, dtype=np.int64)


def _pairs(sides: Sequence[StepTimes], per: str, alike: bool) -> list[tuple[int | None, list[list[int]], str | None]]:
    """Return (rank, the owners of each side that are compared, what is left out). Raises UsageError where no rank is in both."""
    names = [{name for _, name in side.owners} for side in sides]
    ranks = [{name for name in mine if isinstance(name, int)} for mine in names]
    common = sorted(ranks[0] & ranks[1]) if ranks == names else []
    alone = ((name, sorted(mine - set(common))) for name, mine in zip(("base", "other"), ranks, strict=True))
    excluded_ranks = "; ".join(f"{name} {', '.join(map(str, mine))}" for name, mine in alone if mine) or None

    def owners(chosen: Sequence[int | str] | None) -> list[list[int]]:
        return [[place for place, (_, name) in enumerate(side.owners) if chosen is None or name in chosen] for side in sides]

    if per == "rank" and common:
        return [(rank, owners([rank]), excluded_ranks) for rank in common]
    if per == "rank" and [len(mine) for mine in names] != [1, 1]:
        raise UsageError("no rank is known in both runs: leave per=rank out")
    if common and alike:
        return [(None, owners(common), excluded_ranks)]
    return [(None, owners(None), None)]


def _rows(
    sides: Sequence[StepTimes], owners: Sequence[list[int]], stepped: bool, fdr: float, threshold_pct: float,
) -> list[dict[str, Any]]:
    """Return a row per item of the mean steps of both sides."""
    keys = sorted(sides[0].items.keys() | sides[1].items.keys())
    base, other = (_mean(side, chosen, keys, stepped) for side, chosen in zip(sides, owners, strict=True))
    spelled = {key: "\t".join(key) for key in keys}
    recordings = [{spelled[key]: some for key, some in mean.recordings.items()} for mean in (base, other)]
    changes = judged(recordings[0], recordings[1], fdr, threshold_pct)
    named = [[side.owners[owner] for owner in chosen] for side, chosen in zip(sides, owners, strict=True)]
    ranks, times = ([len({owner[part] for owner in mine}) for mine in named] for part in (1, 0))
    rows: list[dict[str, Any]] = []
    for place, key in enumerate(keys):
        change = changes.get(spelled[key])
        if change is None:
            continue
        shares = base.shares[place], other.shares[place]
        rows.append({
            "kind": key[0], "item": key[1] or None, "unit": PER_STEP if stepped else OF_CAPTURE,
            **{name: value for name, value in judgement(change).items() if name in _SCHEMA.names},
            "base_ns": base.times[place], "other_ns": other.times[place],
            "difference_ns": other.times[place] - base.times[place] if stepped else None,
            "base_pct": shares[0] / 100, "other_pct": shares[1] / 100, "difference_pct": (shares[1] - shares[0]) / 100,
            "base_total_ns": base.total, "other_total_ns": other.total,
            "change_ns": other.total - base.total if stepped else None,
            "base_steps": base.steps, "other_steps": other.steps, "base_ranks": ranks[0], "other_ranks": ranks[1],
            "base_recordings": times[0], "other_recordings": times[1],
        })
    return sorted(rows, key=lambda row: (-abs(row["difference_ns"] if stepped else row["difference_pct"]), row["kind"],
                                         row["item"] or ""))


def _mean(side: StepTimes, owners: list[int], keys: Sequence[Key], stepped: bool) -> Mean:
    """Return the mean over the recordings, of the mean over the owners of each, of each owner's mean step."""
    counts = np.bincount(side.owner, minlength=len(side.owners)).tolist()
    together = _together(side, owners) if stepped else [owners]
    divisors = {owner: counts[owner] * len(those) for those in together for owner in those}
    common = math.lcm(*divisors.values())
    weights = {owner: common // divisor for owner, divisor in divisors.items()}
    denominator = common * len(together)

    def summed(steps: Int, times: Int) -> int:
        sums = np.zeros(len(side.owners), dtype=np.int64)
        np.add.at(sums, side.owner[steps], times)
        return sum(int(sums[owner]) * weight for owner, weight in weights.items())

    sums = [summed(*side.items[key]) if key in side.items else 0 for key in keys]
    recordings = {
        key: [_mean_step_ns(side, those, counts, key) if stepped else mine / denominator for those in together]
        for key, mine in zip(keys, sums, strict=True) if mine}
    total = summed(np.arange(len(side.lengths)), side.lengths)
    whole = sum(sums)
    shares = apportioned([10_000 * part for part in sums], max(1, whole), 10_000 * bool(whole))
    return Mean(apportioned(sums, denominator, nearest(whole, denominator)), shares,
                nearest(total, denominator), sum(counts[owner] for owner in owners), recordings)


def _together(side: StepTimes, owners: list[int]) -> list[list[int]]:
    """Return the owners of each recording."""
    recordings: dict[int, list[int]] = {}
    for owner in owners:
        recordings.setdefault(side.owners[owner][0], []).append(owner)
    return list(recordings.values())


def _mean_step_ns(side: StepTimes, owners: list[int], counts: list[int], key: Key) -> float:
    """Return an item's time in a mean step of a recording, mean over its ranks."""
    steps, times = side.items[key]
    chosen = np.isin(side.owner[steps], owners)
    return float((times[chosen] / np.array(counts)[side.owner[steps[chosen]]]).sum()) / len(owners)
