"""What changed between two runs of one workload: per kernel (or family, operator, module, phase, step), with its uncertainty.

The verdict rests on recordings. An item's time in a recording is the mean over its steps of the mean over the ranks that have
the step (a step without a launch counts as 0). The step itself (by=step) lasts as in step_breakdown, GPU work included. Runs
without steps are cut into ten blocks of consecutive launches each, and the mean durations of launches are compared (see unit).
Differences are between means over recordings; the interval is that of Welch's test (of Student's, if there are not as many of
each). An item is slower or faster if the interval excludes 0, the change exceeds the threshold, and the false-discovery rate
over all items allows it; the step time is one planned test of its own. No change means that the whole interval lies within the
threshold. Everything else is undecided, as is every item with one recording of each run: the steps of a recording are not
replicates of its run. `needed` is the number of recordings that would suffice. Times outside any operator, module or phase are
the item NULL. Both runs are compared under the same tool: nsys where both have it, else Kineto.
@scope run
@topic runs
@requires _bounded_kernels, _steps, kernels, profiles, recordings
@assumes Both runs do the same work per step on as many ranks (comparability: what differs).
@assumes Recordings of a run are independent of each other, and their means vary normally (see recordings).
@assumes A step is a ProfilerStep of Kineto, or an NVTX range named like one (docs/attribution.md): one sequence per process.
@assumes A rank's kernels that were not recorded took no time; times of collectives include waiting for other ranks.
@param  base            Baseline run; NULL: the first of the store's two runs.
@param  other           Run that is compared with it; NULL: the second.
@param  by              kernel (key and launch configuration), key, family, op, module, phase or step (the step time).
@param  fdr             False-discovery rate: the largest share of false positives among the changes named (by=step: none, 5 %).
@param  threshold_pct   Smallest change of an item's own time to report, in percent.
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
@column needed            Recordings of each run that find such a change in four of five cases; NULL where decided, with fewer
    than three of each, or over 1,000.
@column absent            new, vanished: in no recording of the one run.
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
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses._runs import named
from nsightlens.errors import UsageError, not_a_choice
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
_AXES = ("_x", "_y", "_z")
_KERNEL = ("kernel_key", *(f"{extent}{axis}" for extent in ("grid", "block") for axis in _AXES))
# What is timed: $1 the run, $2 the tool.
_LAUNCHES = """
    SELECT {columns}, kernel_key AS key, profile_id, process_id, duration_ns, {replicate} AS replicate
    FROM _bounded_kernels WHERE run = $1 AND tool = $2 AND duration_ns IS NOT NULL
"""
_BLOCK = f"ntile({BLOCKS}) OVER (PARTITION BY process_id ORDER BY launch_index)"
_WHOLE_STEPS = """
    SELECT NULL AS {columns}, NULL AS key, profile_id, process_id, end_ns - start_ns AS duration_ns, {replicate} AS replicate
    FROM _steps WHERE run = $1 AND tool = $2
"""
# Items are known by their columns: names in millions of rows took gigabytes, and so did each join whose one side DuckDB could
# not tell to be small. Hence the items are asked for first, and given back as $3, each with its code.
_CODES = """
SELECT *, dense_rank() OVER (ORDER BY item) - 1 AS code
FROM (SELECT DISTINCT {columns}, coalesce({item}, '') AS item FROM ({timed}))
"""
# $4: replicates that are left out.
_KEPT = """
WITH timed AS NOT MATERIALIZED ({timed}), replicates AS MATERIALIZED (
    SELECT profile_id, replicate, coalesce(recording, 0) AS recording
    FROM (SELECT DISTINCT profile_id, replicate FROM timed WHERE replicate IS NOT NULL) LEFT JOIN recordings USING (profile_id)
    QUALIFY dense_rank() OVER (PARTITION BY coalesce(recording, 0) ORDER BY replicate) > $4
), kept AS NOT MATERIALIZED (
    SELECT code, recording, t.replicate, process_id, duration_ns, key
    FROM timed AS t JOIN replicates AS r ON r.profile_id = t.profile_id AND r.replicate = t.replicate
    JOIN (SELECT unnest($3::STRUCT({types}, code INTEGER)[], max_depth := 2)) AS i ON {same}
)
"""
_ITEMS = _KEPT + """
SELECT code, any_value(key) AS kernel_key, sum(duration_ns)::BIGINT AS total_ns, count(*) AS launches,
    round(median(duration_ns))::BIGINT AS median_ns
FROM kept GROUP BY code
"""
# $5: whether replicates are steps. The value of an item in a replicate is total_ns by a divisor: the processes that have the
# step, or the item's launches in the block. Of all values of one divisor the sums are exact; the row without an item has the
# number of replicates of a recording.
_MOMENTS = _KEPT + """, present AS (
    SELECT recording, replicate, count(DISTINCT process_id) AS processes FROM kept GROUP BY recording, replicate
), sums AS (
    SELECT code, recording, replicate, sum(duration_ns)::BIGINT AS total_ns, count(*) AS launches
    FROM kept GROUP BY code, recording, replicate
)
SELECT code, recording, CASE WHEN $5 THEN processes ELSE launches END AS divisor, count(*) AS count,
    sum(total_ns)::VARCHAR AS total
FROM sums JOIN present USING (recording, replicate) GROUP BY ALL
UNION ALL
SELECT NULL, recording, NULL, count(DISTINCT replicate), NULL FROM replicates GROUP BY recording
ORDER BY ALL
"""
_SCHEMA = pa.schema([
    ("item", pa.string()), ("kernel_key", pa.string()), ("tool", pa.string()), ("unit", pa.string()), ("verdict", pa.string()),
    ("base_ns", pa.int64()), ("other_ns", pa.int64()), ("difference_ns", pa.int64()), ("low_ns", pa.int64()),
    ("high_ns", pa.int64()), ("change_pct", pa.float64()), ("q_value", pa.float64()), ("smallest_ns", pa.int64()),
    ("needed", pa.int64()), ("absent", pa.string()), ("base_total_ns", pa.int64()),
    ("other_total_ns", pa.int64()), ("base_launches", pa.int64()), ("other_launches", pa.int64()),
    ("base_median_ns", pa.int64()), ("other_median_ns", pa.int64()), ("base_replicates", pa.int64()),
    ("other_replicates", pa.int64()), ("base_recordings", pa.int64()), ("other_recordings", pa.int64()),
])


@dataclass(frozen=True, slots=True)
class ItemTimes:
    """One run, per item: its time in the replicates of each recording (a block without a launch of it is none), launches, total,
    median, key. replicates: how many each recording has."""

    recordings: dict[str, list[float]]
    launches: dict[str, int]
    totals: dict[str, int]
    medians: dict[str, int]
    keys: dict[str, str]
    replicates: list[int]


@dataclass(frozen=True, slots=True)
class _Sums:
    """Replicates of an item whose values are a time by one divisor: how many, and their times summed."""

    divisor: int
    count: int
    total: int


def analyse(
    ask: Ask, *, base: str | None = None, other: str | None = None, by: str = "kernel", fdr: float = 0.01,
    threshold_pct: float = 1.0, skip_steps: int = 0, time: str | None = None,
) -> pa.Table:
    """Return a row per item, the largest difference first."""
    if by not in ITEMS:
        raise not_a_choice("run_difference", "by", by, ITEMS)
    check(fdr, threshold_pct, skip_steps)
    runs = named(ask, base, other)
    tool, stepped = common_tool(ask, *runs, time)
    one, two = (_side(ask, run, tool, by, stepped, skip_steps) for run in runs)
    keys = one.keys | two.keys if by in ("kernel", "key") else {}
    changes = judged(one.recordings, two.recordings, fdr, threshold_pct, planned=by == "step")
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
    runs = change.runs
    return {
        "verdict": change.verdict, "low_ns": runs and round(runs.low), "high_ns": runs and round(runs.high),
        "q_value": runs and runs.rate, "smallest_ns": runs and round((runs.high - runs.low) / 2), "needed": change.needed,
        "absent": change.absent,
    }


def check(fdr: float, threshold_pct: float, skip_steps: int) -> None:
    """Return nothing. Raises UsageError for numbers that mean nothing, of which NaN would call every change a discovery."""
    if not 0 <= fdr <= 1:
        raise UsageError(f"fdr is a share from 0 to 1, not {fdr}")
    if not 0 <= threshold_pct < math.inf:
        raise UsageError(f"threshold_pct is a percentage from 0 on, not {threshold_pct}")
    if not 0 <= skip_steps < 1 << 31:
        raise UsageError(f"skip_steps is a number of steps, not {skip_steps}")


def common_tool(ask: Ask, base: str, other: str, time: str | None = None) -> tuple[str, bool]:
    """Return the tool that is compared, and whether both runs have steps under it. Raises UsageError where there is none."""
    if time not in (None, "nsys", "kineto"):
        raise not_a_choice(None, "time", time, ("nsys", "kineto"))
    found = ask(_TOOLS, [base, other, time]).to_pylist()
    if not found:
        raise UsageError(f"{base} and {other} have no timeline of one tool in common ({time or 'nsys or Kineto'})")
    return found[0]["tool"], found[0]["stepped"]


def _side(ask: Ask, run: str, tool: str, by: str, stepped: bool, skip: int) -> ItemTimes:
    columns = _KERNEL if by == "kernel" else ("kernel_key",) if by == "step" else (ITEMS[by],)
    source, replicate = (_WHOLE_STEPS, "step") if by == "step" else (_LAUNCHES, "step" if stepped else _BLOCK)
    if by == "step" and not stepped:
        source += " AND false"
    parts = {
        "timed": source.format(columns=", ".join(columns), replicate=replicate), "columns": ", ".join(columns),
        "types": ", ".join(f"{name} {'INTEGER' if name[-2:] in _AXES else 'VARCHAR'}" for name in columns),
        "item": ITEMS[by], "same": " AND ".join(f"i.{name} IS NOT DISTINCT FROM t.{name}" for name in columns)}
    codes = ask(_CODES.format(**parts), [run, tool])
    values = [run, tool, codes.drop_columns("item").to_pylist(), skip if stepped else 0]
    names = dict(zip(codes["code"].to_pylist(), codes["item"].to_pylist(), strict=True))
    items = {names[row["code"]]: row for row in ask(_ITEMS.format(**parts), values).to_pylist()}
    found = ask(_MOMENTS.format(**parts), [*values, stepped]).to_pylist()
    replicates = {row["recording"]: row["count"] for row in found if row["code"] is None}
    sums: dict[str, dict[int, list[_Sums]]] = {item: {} for item in items}
    for row in found:
        if row["code"] is not None:
            one = _Sums(row["divisor"], row["count"], int(row["total"]))
            sums[names[row["code"]]].setdefault(row["recording"], []).append(one)
    recordings = {item: [_mean(mine.get(place, ()), count if stepped else None)
                         for place, count in replicates.items() if stepped or place in mine] for item, mine in sums.items()}
    launches, totals, medians, keys = ({item: row[name] for item, row in items.items()}
                                       for name in ("launches", "total_ns", "median_ns", "kernel_key"))
    return ItemTimes(recordings, launches, totals, medians, keys, list(replicates.values()))


def _mean(sums: Sequence[_Sums], replicates: int | None) -> float:
    """Return the mean of an item in a recording. replicates: all, those without the item being 0; None: as counted."""
    total = sum((Fraction(some.total, some.divisor) for some in sums), Fraction(0))
    return float(total / (replicates or sum(some.count for some in sums)))
