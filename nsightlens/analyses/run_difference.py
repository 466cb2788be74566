"""What changed between two runs of one workload: per kernel (or family, operator, module, phase, step), with its uncertainty.

Runs are judged by their recordings: an item's time in a recording is the mean over its steps, of the mean over the ranks that
have the step (a step in which it was not launched counts as 0). The step itself (by=step) lasts as in step_breakdown, GPU work
included. Runs without steps are cut into ten blocks of consecutive launches each, and the mean duration of a launch is compared
(unit says). Differences are of the means over recordings, and the interval is that of Welch's test (of Student's, where a run
has one recording). An item is called slower or faster where the interval excludes 0, the change is beyond the threshold, and
the false-discovery rate over all items allows it; the step time is the one planned test and stands alone. No change means that
the whole interval lies within the threshold. All else is undecided, and always what one recording of each run shows: the
steps of a recording are no replicates of its run. `needed` says how many recordings would do.
With one recording of each run, in_recordings says how far these two differ, judged by their steps (five or more of each): true
of the recordings, and of the runs only where runs vary less than that. Times that belong to no operator, module or phase are
the item NULL. Both runs are compared under the same tool: nsys where both have it, else Kineto.
@scope run
@topic runs
@requires _bounded_kernels, _steps, kernels, recordings
@assumes Both runs do the same work per step on as many ranks (comparability: what differs).
@assumes Recordings of a run are independent of each other, and their means vary normally (see recordings).
@assumes A step is a ProfilerStep of Kineto, or an NVTX range named like one (docs/attribution.md): one sequence per process.
@assumes A rank's kernels that were not recorded took no time; times of collectives include waiting for other ranks.
@param  base            Run that is the measure; NULL: the first of the store's two runs.
@param  other           Run that is compared with it; NULL: the second.
@param  by              kernel (key and launch configuration), key, family, op, module, phase or step (the step time).
@param  fdr             False-discovery rate: the largest share of false positives among the changes named (by=step: none, 5 %).
@param  threshold_pct   Smallest change of an item's own time that is named, in percent.
@param  skip_steps      Steps at the start of each recording that are left out (warm-up).
@param  time            Tool whose times are compared: nsys or kineto; NULL: nsys where both runs have it, else Kineto.
@first item, difference_ns, verdict
@column item              The kernel, family, operator, module or phase, or step.
@column kernel_key        Kernel key, for kernels.
@column tool              Tool whose times are compared.
@column unit              per step, or per launch where a run has no steps.
@column verdict           slower, faster, new, vanished, no change or undecided: of the runs.
@column base_ns           Mean over the recordings of base.
@column other_ns          Mean over those of other.
@column difference_ns     other_ns minus base_ns.
@column low_ns            Lower end of the 95 % interval of the runs' difference; NULL with one recording of each.
@column high_ns           Upper end.
@column change_pct        difference_ns as a share of base_ns.
@column q_value           Smallest false-discovery rate at which the change is significant (by=step: the p-value).
@column smallest_ns       Smallest difference that these recordings could have shown: half the interval; NULL: none at all.
@column needed            Recordings of each run that find such a change in four of five cases; NULL where decided, or over 1,000.
@column in_recordings     new, vanished: in no recording of the one run; with one of each: longer, shorter, alike, no interval.
@column recordings_low_ns Lower end of the 95 % interval of the two recordings' difference, over their steps or blocks.
@column recordings_high_ns Upper end.
@column base_total_ns     Sum of the durations in base, all steps or blocks and ranks.
@column other_total_ns    Sum of those in other.
@column base_launches     Launches in base (for step: steps), all steps or blocks and ranks.
@column other_launches    Launches in other.
@column base_median_ns    Median duration of a launch in base.
@column other_median_ns   Median duration of a launch in other.
@column base_replicates   Steps or blocks of base.
@column other_replicates  Steps or blocks of other.
@column base_recordings   Recordings of base.
@column other_recordings  Recordings of other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.columns.arrays import Float
from nsightlens.errors import UsageError
from nsightlens.statistics.changes import Change, judged

BLOCKS = 10
ITEMS = {
    "kernel": "concat(kernel_key, '  grid ', grid_x, 'x', grid_y, 'x', grid_z, ' block ', block_x, 'x', block_y, 'x', block_z)",
    "key": "kernel_key", "family": "family", "op": "op", "module": "module", "phase": "phase", "step": "'step'",
}
_TOOLS = """
SELECT tool, bool_and(steps > 0) AS stepped
FROM (SELECT tool, run, count(step) AS steps FROM kernels
      WHERE run IN (?, ?) AND tool <> 'ncu' AND tool = coalesce(?, tool) AND duration_ns IS NOT NULL GROUP BY ALL)
GROUP BY tool HAVING count(DISTINCT run) = 2
ORDER BY tool DESC
"""
# What is timed: $1 the run, $2 the tool, $3 whether replicates are steps. An item that is not known is ''.
_LAUNCHES = f"""
    SELECT coalesce({{item}}, '') AS item, kernel_key, profile_id, process_id, duration_ns,
        CASE WHEN $3 THEN step ELSE ntile({BLOCKS}) OVER (PARTITION BY process_id ORDER BY launch_index) END AS replicate
    FROM _bounded_kernels WHERE run = $1 AND tool = $2 AND duration_ns IS NOT NULL
"""
_WHOLE_STEPS = """
    SELECT 'step' AS item, NULL AS kernel_key, profile_id, process_id, end_ns - start_ns AS duration_ns, step AS replicate
    FROM _steps WHERE run = $1 AND tool = $2 AND $3
"""
_KEPT = """
WITH timed AS ({timed}), kept AS (
    SELECT t.*, coalesce(r.recording, 0) AS recording
    FROM timed AS t LEFT JOIN recordings AS r ON r.profile_id = t.profile_id
    WHERE replicate IS NOT NULL
    QUALIFY dense_rank() OVER (PARTITION BY recording ORDER BY replicate) > $4
)
"""
_ITEMS = _KEPT + """
SELECT item, any_value(kernel_key) AS kernel_key, sum(duration_ns)::BIGINT AS total_ns, count(*) AS launches,
    round(median(duration_ns))::BIGINT AS median_ns
FROM kept GROUP BY item ORDER BY item
"""
# $5: the items, each of which is its place here: millions of rows with their names took gigabytes.
_SUMS = _KEPT + """, present AS (
    SELECT recording, replicate, count(DISTINCT process_id) AS processes FROM kept GROUP BY recording, replicate
), sums AS (
    SELECT code, recording, replicate, sum(duration_ns)::BIGINT AS total_ns, count(*) AS launches
    FROM kept JOIN (SELECT unnest($5::VARCHAR[]) AS item, generate_subscripts($5::VARCHAR[], 1) - 1 AS code) USING (item)
    GROUP BY code, recording, replicate
)
SELECT code, recording, replicate, total_ns / CASE WHEN $3 THEN processes ELSE launches END AS mean_ns
FROM sums JOIN present USING (recording, replicate) ORDER BY code
"""
_SCHEMA = pa.schema([
    ("item", pa.string()), ("kernel_key", pa.string()), ("tool", pa.string()), ("unit", pa.string()), ("verdict", pa.string()),
    ("base_ns", pa.int64()), ("other_ns", pa.int64()), ("difference_ns", pa.int64()), ("low_ns", pa.int64()),
    ("high_ns", pa.int64()), ("change_pct", pa.float64()), ("q_value", pa.float64()), ("smallest_ns", pa.int64()),
    ("needed", pa.int64()), ("in_recordings", pa.string()), ("recordings_low_ns", pa.int64()),
    ("recordings_high_ns", pa.int64()), ("base_total_ns", pa.int64()),
    ("other_total_ns", pa.int64()), ("base_launches", pa.int64()), ("other_launches", pa.int64()),
    ("base_median_ns", pa.int64()), ("other_median_ns", pa.int64()), ("base_replicates", pa.int64()),
    ("other_replicates", pa.int64()), ("base_recordings", pa.int64()), ("other_recordings", pa.int64()),
])


@dataclass(frozen=True, slots=True)
class Side:
    """One run, per item: its time in each replicate of each recording (ns; NaN where a block has no launch), launches, total,
    median, key. replicates: how many each recording has."""

    values: dict[str, list[Float]]
    launches: dict[str, int]
    totals: dict[str, int]
    medians: dict[str, int]
    keys: dict[str, str]
    replicates: list[int]


def analyse(
    ask: Ask, *, base: str | None = None, other: str | None = None, by: str = "kernel", fdr: float = 0.01,
    threshold_pct: float = 1.0, skip_steps: int = 0, time: str | None = None,
) -> pa.Table:
    """Return a row per item, the largest difference first."""
    if by not in ITEMS:
        raise UsageError(f"by is one of {', '.join(ITEMS)}, not {by!r}")
    check(fdr, threshold_pct, skip_steps)
    runs = named(ask, base, other)
    tool, stepped = common_tool(ask, *runs, time)
    one, two = (_side(ask, run, tool, by, stepped, skip_steps) for run in runs)
    keys = one.keys | two.keys if by in ("kernel", "key") else {}
    changes = judged(one.values, two.values, fdr, threshold_pct, planned=by == "step")
    rows: list[dict[str, Any]] = [{
        "item": item or None, "kernel_key": keys.get(item), "tool": tool, "unit": "per step" if stepped else "per launch",
        "base_ns": round(change.base), "other_ns": round(change.other),
        "difference_ns": round(change.other) - round(change.base),
        "change_pct": round(100 * (change.other - change.base) / change.base, 2) if change.base else None,
        **judgement(change), "base_total_ns": one.totals.get(item, 0), "other_total_ns": two.totals.get(item, 0),
        "base_launches": one.launches.get(item, 0), "other_launches": two.launches.get(item, 0),
        "base_median_ns": one.medians.get(item), "other_median_ns": two.medians.get(item),
        "base_replicates": sum(one.replicates), "other_replicates": sum(two.replicates),
        "base_recordings": len(one.replicates), "other_recordings": len(two.replicates),
    } for item, change in changes.items()]
    rows.sort(key=lambda row: (-abs(row["difference_ns"]), row["item"] or ""))
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def judgement(change: Change) -> dict[str, Any]:
    """Return the columns that say how sure a change is."""
    runs, recordings = change.runs, change.recordings
    return {
        "verdict": change.verdict, "low_ns": runs and round(runs.low), "high_ns": runs and round(runs.high),
        "q_value": runs and runs.rate, "smallest_ns": runs and round((runs.high - runs.low) / 2), "needed": change.needed,
        "in_recordings": change.seen, "recordings_low_ns": recordings and round(recordings.low),
        "recordings_high_ns": recordings and round(recordings.high),
    }


def check(fdr: float, threshold_pct: float, skip_steps: int) -> None:
    """Return nothing. Raises UsageError for numbers that mean nothing, of which NaN would call every change a discovery."""
    if not 0 <= fdr <= 1:
        raise UsageError(f"fdr is a share from 0 to 1, not {fdr}")
    if not 0 <= threshold_pct < math.inf:
        raise UsageError(f"threshold_pct is a percentage from 0 on, not {threshold_pct}")
    if not 0 <= skip_steps < 1 << 31:
        raise UsageError(f"skip_steps is a number of steps, not {skip_steps}")


def named(ask: Ask, base: str | None, other: str | None) -> tuple[str, str]:
    """Return the two runs that are meant. Raises UsageError where the store does not have them."""
    there = ask("SELECT DISTINCT run FROM kernels WHERE tool <> 'ncu' ORDER BY run", [])["run"].to_pylist()
    if base is None and other is None and len(there) == 2:
        return there[0], there[1]
    for run in (base, other):
        if run is None or run not in there:
            raise UsageError(f"{'name two runs (base, other)' if run is None else f'no run {run} with kernels on a timeline'}; "
                             f"the store has {', '.join(there) or 'none, as a recording without a GPU has none'}")
    if base == other:
        raise UsageError(f"base and other are both {base}")
    return str(base), str(other)


def common_tool(ask: Ask, base: str, other: str, time: str | None = None) -> tuple[str, bool]:
    """Return the tool that is compared, and whether both runs have steps under it. Raises UsageError where there is none."""
    if time not in (None, "nsys", "kineto"):
        raise UsageError(f"time is nsys or kineto, not {time!r}")
    found = ask(_TOOLS, [base, other, time]).to_pylist()
    if not found:
        raise UsageError(f"{base} and {other} have no timeline of one tool in common ({time or 'nsys or Kineto'})")
    return found[0]["tool"], found[0]["stepped"]


def _side(ask: Ask, run: str, tool: str, by: str, stepped: bool, skip: int) -> Side:
    timed = _WHOLE_STEPS if by == "step" else _LAUNCHES.format(item=ITEMS[by])
    values = [run, tool, stepped, skip if stepped else 0]
    items = ask(_ITEMS.format(timed=timed), values).to_pylist()
    names = [row["item"] for row in items]
    sums = ask(_SUMS.format(timed=timed), [*values, names])
    code, recording, replicate, mean = (sums[name].to_numpy() for name in ("code", "recording", "replicate", "mean_ns"))
    pairs, place = np.unique(np.stack([recording, replicate], axis=1), axis=0, return_inverse=True)
    replicates = np.unique(pairs[:, 0], return_counts=True)[1]
    ends = np.searchsorted(code, np.arange(len(items)), side="right")
    times: dict[str, list[Float]] = {}
    for item, first, end in zip(names, [0, *ends], ends, strict=False):
        every = np.full(len(pairs), 0.0 if stepped else np.nan)
        every[place[first:end]] = mean[first:end]
        times[item] = np.split(every, np.cumsum(replicates)[:-1])
    launches, totals, medians, keys = ({row["item"]: row[name] for row in items}
                                       for name in ("launches", "total_ns", "median_ns", "kernel_key"))
    return Side(times, launches, totals, medians, keys, replicates.tolist())
