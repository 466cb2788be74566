"""Which launches of a run are worth counting with ncu: one per kernel and configuration, up to a share of the GPU time.

A row is one start of the program under ncu: a filter that matches one kernel, the number of matching launches to skip, and the
number to measure. The plan is for the process of the lowest rank of each run. Collectives are left out: ncu replays a launch
alone, and a collective would wait for the others. The warm-up is skipped: the first recorded step, or without steps the first
fifth of the launches; a configuration that occurs only there is measured there. Nearby launches of one kernel are measured in
one start if that is cheaper than two. Where it is cheaper still, one start without a filter measures all that lies between the
first and the last launch that are wanted (of a Kineto trace a whole step): everything but collectives, which the wrapper leaves
out. An nsys capture is assumed to begin with the program. A Kineto trace begins later: the
plan skips as many launches as the steps before it would have had if they were like its own, and measures a whole step of the
kernel. The same launches recur only if the program repeats the same work. The estimate is rough, and none of it was measured:
passes 10 (basic), 12 (minimal), 16 (roofline), 30 (detailed), 42 (full); a pass takes twice the kernel's own duration (base
clock, cold caches) and 25 ms, a start 30 s and the time until its last launch.
@scope run
@topic roofline
@needs gpu_work
@requires timeline_kernels, kernels
@assumes The program repeats the same work in the same order; otherwise ncu measures other launches than those chosen.
@assumes An nsys capture begins with the program; a Kineto trace begins after steps that were like its own.
@assumes The passes of a set, and the time of a pass and of a start, are guesses: none of the estimate was measured.
@param  cover            Share of the measurable GPU time, in percent, that the chosen configurations cover together.
@param  which_run        Only this run.
@param  which_rank       The rank to plan for; NULL: the lowest.
@param  metric_set       Set of counters: minimal, basic, roofline, detailed or full.
@param  budget_s         Seconds that all starts may take together; NULL: no bound. Those with the most time per second fit first.
@first kernel, time_pct, launch_skip, launch_count, estimated_s, fits
@column run              Run.
@column tool             Tool whose timeline is planned from: nsys or kineto.
@column rank             Rank to measure; NULL where unknown.
@column kernel           What ncu is to find: a base name, or regex:EXPRESSION found in what name_base says; NULL: all.
@column name_base        What the filter is compared with: function (base names) or demangled; NULL without a filter.
@column launch_skip      Matching launches to skip.
@column launch_count     Launches that are measured.
@column configurations   Launch configurations that these stand for.
@column total_ns         GPU time of these configurations in the run's process.
@column time_pct         Its share of the measurable GPU time, to one decimal.
@column passes           Passes per launch, estimated.
@column estimated_s      Seconds that the start takes, estimated.
@column fits             Whether it is within the budget.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.errors import UsageError, not_a_choice

PASSES = {"minimal": 12, "basic": 10, "roofline": 16, "detailed": 30, "full": 42}
"""Passes per launch and set: rough, as they differ by GPU and version."""
_PASS_S = 0.025
_SLOWER = 2.0
_START_S = 30.0
_LEFT_OUT = (r"^(nccl|nvshmem|multimem_|cross_device_reduce|one_shot_all|two_shot_all|oneShotAll|twoShotAll|userbuffers_"
             r"|wait_signal|allreduce|all_reduce|allgather|all_gather|alltoall|all_to_all|reducescatter|reduce_scatter)")
"""Base names of collectives that the wrapper leaves out of a start without a filter."""

# All kernels of CUTLASS share a few base names: these are distinguished by the word in their template argument.
_CONFIGURATIONS = """
WITH process AS (
    SELECT run, tool, rank, profile_id, process_id
    FROM timeline_kernels
    WHERE (? IS NULL OR run = ?) AND (? IS NULL OR rank = ?)
    GROUP BY run, tool, rank, profile_id, process_id
    QUALIFY row_number() OVER (PARTITION BY run ORDER BY rank NULLS LAST, count(*) DESC, profile_id, process_id) = 1
), launched AS (
    SELECT k.*, row_number() OVER mine - 1 AS place_of_all, count(*) OVER (PARTITION BY k.run) AS all_launches,
        min(step) OVER (PARTITION BY k.run) AS first_step, max(step) OVER (PARTITION BY k.run) AS last_step,
        start_ns + duration_ns - min(start_ns) OVER (PARTITION BY k.run) AS until_ns,
        (sum(CASE WHEN family = 'collective' THEN 0 ELSE 1 END) OVER mine)::BIGINT AS ordinal,
        (sum(CASE WHEN family = 'collective' THEN 0 ELSE coalesce(duration_ns, 0) END) OVER mine)::BIGINT AS before_ns,
        bool_or(family = 'collective' AND NOT regexp_matches(short_name, ?)) OVER (PARTITION BY k.run) AS has_others,
        CASE WHEN short_name IN ('Kernel', 'Kernel2', 'device_kernel')
            THEN coalesce(nullif(regexp_extract(name, '<\\s*(\\w*cutlass\\w*_\\w+)', 1), ''), short_name)
            ELSE short_name END AS found
    FROM kernels AS k
    SEMI JOIN process AS p ON k.run = p.run AND k.profile_id = p.profile_id AND k.process_id = p.process_id
    WHERE k.tool IN ('nsys', 'kineto') AND short_name IS NOT NULL
    WINDOW mine AS (PARTITION BY k.run ORDER BY launch_index, kernel_id)
), placed AS (
    SELECT *, row_number() OVER (PARTITION BY run, found ORDER BY place_of_all) - 1 AS place,
        CASE WHEN first_step < last_step THEN coalesce(step <= first_step, true)
            WHEN first_step IS NOT NULL THEN step IS NULL
            ELSE place_of_all < all_launches // 5 END AS is_warm_up
    FROM launched
), steps AS (
    SELECT run, count(*) AS steps, max(n) AS most_in_step, sum(n) / count(*) AS mean_in_step, max(ns) AS most_ns
    FROM (SELECT run, step, count(*) FILTER (family IS DISTINCT FROM 'collective') AS n,
            sum(duration_ns) FILTER (family IS DISTINCT FROM 'collective') AS ns
        FROM launched WHERE step IS NOT NULL GROUP BY run, step)
    GROUP BY run
), rates AS (
    SELECT run, found, max(n) AS most_per_step, sum(n) / any_value(steps) AS mean_per_step
    FROM (SELECT run, found, step, count(*) AS n FROM placed WHERE step IS NOT NULL GROUP BY run, found, step)
    JOIN steps USING (run)
    GROUP BY run, found
)
SELECT p.run, p.tool, p.rank, p.found, min(p.first_step) AS first_step, max(r.most_per_step) AS most_per_step,
    max(r.mean_per_step) AS mean_per_step,
    min(p.short_name) <> p.found AS is_word,
    CAST(sum(p.duration_ns) AS BIGINT) AS total_ns, avg(p.duration_ns) AS mean_ns,
    coalesce(min(place) FILTER (NOT is_warm_up), max(place)) AS place,
    min_by({'until_ns': until_ns, 'ordinal': ordinal, 'before_ns': before_ns, 'own_ns': p.duration_ns},
        (is_warm_up, CASE WHEN is_warm_up THEN -place ELSE place END)) AS chosen,
    any_value(has_others) AS has_others, any_value(s.most_in_step) AS most_in_step, any_value(s.mean_in_step) AS mean_in_step,
    any_value(s.most_ns) AS most_ns
FROM placed AS p
LEFT JOIN steps AS s ON p.run = s.run
LEFT JOIN rates AS r ON p.run = r.run AND p.found = r.found
WHERE p.family IS DISTINCT FROM 'collective' AND p.duration_ns IS NOT NULL
GROUP BY p.run, p.tool, p.rank, p.found, p.kernel_key, p.grid_x, p.grid_y, p.grid_z, p.block_x, p.block_y, p.block_z
ORDER BY p.run, total_ns DESC, p.found, place
"""
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("rank", pa.int64()), ("kernel", pa.string()), ("name_base", pa.string()),
    ("launch_skip", pa.int64()), ("launch_count", pa.int64()), ("configurations", pa.int64()), ("total_ns", pa.int64()),
    ("time_pct", pa.float64()), ("passes", pa.int64()), ("estimated_s", pa.float64()), ("fits", pa.bool_()),
])


def analyse(
    ask: Ask, *, cover: float = 90.0, which_run: str | None = None, which_rank: int | None = None, metric_set: str = "roofline",
    budget_s: float | None = None,
) -> pa.Table:
    """Return a row per start of the program, by run, most GPU time first. Raises UsageError for impossible parameters."""
    if metric_set not in PASSES:
        raise not_a_choice("ncu_plan", "metric_set", metric_set, PASSES)
    if not 0 < cover <= 100:
        raise UsageError(f"cover is a share in percent, above 0 and up to 100, not {cover}")
    found = ask(_CONFIGURATIONS, [which_run, which_run, which_rank, which_rank, _LEFT_OUT]).to_pylist()
    by_run: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in found:
        by_run[row["run"]].append(row | {"until_ns": row["chosen"]["until_ns"]})
    rows = [row for configurations in by_run.values() for row in _starts(configurations, cover, PASSES[metric_set], budget_s)]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _starts(configurations: list[dict[str, Any]], cover: float, passes: int, budget_s: float | None) -> list[dict[str, Any]]:
    """Return the rows of one run."""
    all_ns = sum(row["total_ns"] for row in configurations)
    by_kernel: dict[str, list[dict[str, Any]]] = defaultdict(list)
    covered = 0
    for row in configurations:
        if 100 * covered >= cover * all_ns:
            break
        covered += row["total_ns"]
        by_kernel[row["found"]].append(row)
    starts = [_start(group, all_ns, passes) for wanted in by_kernel.values() for group in _groups(wanted, passes)]
    starts.sort(key=lambda row: (-row["total_ns"], row["kernel"], row["launch_skip"]))
    left = float("inf") if budget_s is None else budget_s
    whole = _unfiltered(configurations, [row for wanted in by_kernel.values() for row in wanted], all_ns, passes)
    if whole["estimated_s"] <= left and whole["estimated_s"] < sum(row["estimated_s"] for row in starts) and not any(
            row["has_others"] for row in configurations):
        starts = [whole]
    for row in sorted(starts, key=lambda row: -row["total_ns"] / row["estimated_s"]):
        row["fits"] = row["estimated_s"] <= left
        left -= row["estimated_s"] if row["fits"] else 0
    return starts


def _groups(wanted: list[dict[str, Any]], passes: int) -> list[list[dict[str, Any]]]:
    """Return the configurations of one kernel by start: a stretch is cut where measuring what lies between costs more."""
    wanted = sorted(wanted, key=lambda row: row["place"])
    if _begins_later(wanted[0]):
        return [wanted]
    groups = [[wanted[0]]]
    for before, row in pairwise(wanted):
        between_s = (row["place"] - before["place"] - 1) * _launch_s(row, passes)
        if between_s > _START_S + row["until_ns"] / 1e9:
            groups.append([])
        groups[-1].append(row)
    return groups


def _begins_later(row: dict[str, Any]) -> bool:
    """Return whether launches came before the capture, in steps: then a whole step is measured to meet every configuration."""
    return row["tool"] == "kineto" and row["most_per_step"] is not None


def _launch_s(row: dict[str, Any], passes: int) -> float:
    return passes * float(_PASS_S + _SLOWER * row["mean_ns"] / 1e9)


def _start(group: list[dict[str, Any]], all_ns: int, passes: int) -> dict[str, Any]:
    """Return the row of one start that measures these configurations of one kernel."""
    first, last = group[0], group[-1]
    if _begins_later(first):
        skip, count = round((first["first_step"] + 1) * first["mean_per_step"]), first["most_per_step"]
    else:
        skip, count = first["place"], last["place"] - first["place"] + 1
    total_ns = sum(row["total_ns"] for row in group)
    mean_s = sum(_launch_s(row, passes) for row in group) / len(group)
    return {
        "run": first["run"], "tool": first["tool"], "rank": first["rank"],
        "kernel": _word(first["found"]) if first["is_word"] else _base_name(first["found"]),
        "name_base": "demangled" if first["is_word"] else "function", "launch_skip": skip, "launch_count": count,
        "configurations": len(group), "total_ns": total_ns, "time_pct": round(100 * total_ns / all_ns, 1) if all_ns else None,
        "passes": passes, "estimated_s": round(_START_S + last["until_ns"] / 1e9 + count * mean_s, 1),
    }


def _unfiltered(
    configurations: list[dict[str, Any]], wanted: list[dict[str, Any]], all_ns: int, passes: int,
) -> dict[str, Any]:
    """Return the row of one start that measures all launches from the first to the last that are wanted, or a whole step."""
    first, last = (pick(wanted, key=lambda row: row["chosen"]["ordinal"]) for pick in (min, max))
    if all(_begins_later(row) for row in wanted):
        skip, count, ns = round((first["first_step"] + 1) * first["mean_in_step"]), first["most_in_step"], first["most_ns"]
        met = [row for row in configurations if _begins_later(row)]
    else:
        skip, count = first["chosen"]["ordinal"] - 1, last["chosen"]["ordinal"] - first["chosen"]["ordinal"] + 1
        ns = last["chosen"]["before_ns"] - first["chosen"]["before_ns"] + first["chosen"]["own_ns"]
        met = [row for row in configurations if skip < row["chosen"]["ordinal"] <= skip + count]
    total_ns = sum(row["total_ns"] for row in met)
    return {
        "run": first["run"], "tool": first["tool"], "rank": first["rank"], "kernel": None, "name_base": None,
        "launch_skip": int(skip), "launch_count": int(count), "configurations": len(met), "total_ns": total_ns,
        "time_pct": round(100 * total_ns / all_ns, 1) if all_ns else None, "passes": passes,
        "estimated_s": round(_START_S + last["until_ns"] / 1e9 + passes * (count * _PASS_S + _SLOWER * float(ns) / 1e9), 1),
    }


def _base_name(name: str) -> str:
    """Return the filter that finds this base name alone: ncu takes what begins with regex: for an expression."""
    return f"regex:^{re.escape(name)}$" if name.startswith("regex:") else name


def _word(word: str) -> str:
    """Return the filter that finds a whole word of a demangled name. Only what every kind of regular expression has is used."""
    return f"regex:(^|[^A-Za-z0-9_]){re.escape(word)}([^A-Za-z0-9_]|$)"
