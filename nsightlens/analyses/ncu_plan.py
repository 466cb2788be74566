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
@column word             The word that the filter finds in the demangled name; NULL: it finds a base name, or all.
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
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.columns.arrays import MISSING, Int, Mask, distinct, integers, numbered, sorted_places, split
from nsightlens.errors import UsageError, not_a_choice

PASSES = {"minimal": 12, "basic": 10, "roofline": 16, "detailed": 30, "full": 42}
"""Passes per launch and set: rough, as they differ by GPU and version."""
_PASS_S = 0.025
_SLOWER = 2.0
_START_S = 30.0
_LEFT_OUT = (r"^(nccl|nvshmem|multimem_|cross_device_reduce|one_shot_all|two_shot_all|oneShotAll|twoShotAll|userbuffers_"
             r"|wait_signal|allreduce|all_reduce|allgather|all_gather|alltoall|all_to_all|reducescatter|reduce_scatter)")
"""Base names of collectives that the wrapper leaves out of a start without a filter."""

_PROCESSES = """
SELECT run, tool, rank, profile_id, process_id
FROM timeline_kernels
WHERE (? IS NULL OR run = ?) AND (? IS NULL OR rank = ?)
GROUP BY run, tool, rank, profile_id, process_id
QUALIFY row_number() OVER (PARTITION BY run ORDER BY rank NULLS LAST, count(*) DESC, profile_id, process_id) = 1
ORDER BY run
"""
_CONFIGURATION = ("kernel_key", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
# All kernels of CUTLASS share a few base names: these are distinguished by the word in their template argument.
_OF_CUTLASS = "short_name IN ('Kernel', 'Kernel2', 'device_kernel')"
_IS_COLLECTIVE = "family IS NOT DISTINCT FROM 'collective'"
_ALIKE = f"short_name, CASE WHEN {_OF_CUTLASS} THEN name END, {_IS_COLLECTIVE}, {', '.join(_CONFIGURATION)}"
_FIRST = ", ".join(f"first({name}) AS {name}" for name in ("short_name", "name", "family", *_CONFIGURATION))
_HERE = "run = ? AND profile_id = ? AND process_id = ? AND tool IN ('nsys', 'kineto') AND short_name IS NOT NULL"
# Launches that agree in these are of one kind, known by a hash: texts are read once per kind.
_KINDS = f"""
SELECT kind, short_name, {', '.join(_CONFIGURATION)}, {_IS_COLLECTIVE} AS is_collective,
    CASE WHEN {_OF_CUTLASS} THEN coalesce(nullif(regexp_extract(name, '<\\s*(\\w*cutlass\\w*_\\w+)', 1), ''), short_name)
        ELSE short_name END AS found
FROM (SELECT hash({_ALIKE}) AS kind, {_FIRST} FROM kernels WHERE {_HERE} GROUP BY kind) ORDER BY kind
"""
_LAUNCHES = f"SELECT hash({_ALIKE}) AS kind, launch_index, kernel_id, step, start_ns, duration_ns FROM kernels WHERE {_HERE}"
_LAST = np.iinfo(np.int64).max
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("rank", pa.int64()), ("kernel", pa.string()), ("word", pa.string()),
    ("name_base", pa.string()), ("launch_skip", pa.int64()), ("launch_count", pa.int64()), ("configurations", pa.int64()),
    ("total_ns", pa.int64()),
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
    rows = []
    for process in ask(_PROCESSES, [which_run, which_run, which_rank, which_rank]).to_pylist():
        rows += _starts(_configurations(ask, process), cover, PASSES[metric_set], budget_s)
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


class _Launches(NamedTuple):
    """The launches of a process in their order, NULL as MISSING. kind: a place in the list of kinds; place: among those that are
    found by the same name; is_own: it is no collective."""

    kind: Int
    place: Int
    is_own: Mask
    step: Int
    start: Int
    duration: Int


def _configurations(ask: Ask, process: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what `_start` asks for of each kernel and configuration of a process, the most time first."""
    here = [process["run"], process["profile_id"], process["process_id"]]
    kinds = ask(_KINDS, here)
    found, names = distinct(kinds["found"])
    launches = _launches(ask(_LAUNCHES, here), kinds, found)
    per_step = _per_step(found[launches.kind], launches.step, len(names))
    warm = _warm_up(launches.step)
    steps = launches.step[launches.step != MISSING]
    rows = kinds.to_pylist()
    known = {**{name: process[name] for name in ("run", "tool", "rank")}, "first_step": int(steps.min()) if len(steps) else None,
             "has_others": any(row["is_collective"] and not re.search(_LEFT_OUT, row["short_name"]) for row in rows),
             **_step_counts(launches)}
    configurations: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for kind, row in enumerate(rows):
        if not row["is_collective"]:
            configurations[row["found"], *(row[name] for name in _CONFIGURATION)].append(kind)
    number = np.full(len(rows), -1)
    for place, alike in enumerate(configurations.values()):
        number[alike] = place
    measured = _measured(launches, number[launches.kind], warm, len(configurations))
    told = [known | per_step[found[alike[0]]] | {"found": rows[alike[0]]["found"]} | figures
            | {"is_word": min(rows[kind]["short_name"] for kind in alike) != rows[alike[0]]["found"]}
            for alike, figures in zip(configurations.values(), measured, strict=True) if figures]
    return sorted(told, key=lambda row: (-row["total_ns"], row["found"], row["place"]))


def _launches(table: pa.Table, kinds: pa.Table, found: Int) -> _Launches:
    index, ids, step, start, duration = (integers(table[name].combine_chunks()) for name in table.column_names[1:])
    kind = np.searchsorted(kinds["kind"].to_numpy(), table["kind"].to_numpy())
    order = sorted_places(np.where(index == MISSING, _LAST, index), ids)
    kind = kind[order]
    place = np.empty(len(order), np.int64)
    for _, mine in split(np.arange(len(order)), found[kind]):
        place[mine] = np.arange(len(mine))
    is_own = ~kinds["is_collective"].to_numpy()[kind]
    return _Launches(kind, place, is_own, step[order], start[order], duration[order])


def _warm_up(step: Int) -> Mask:
    """Return which launches are of the first step, or in none; without steps, which are of the first fifth."""
    known = step[step != MISSING]
    if not len(known):
        return np.arange(len(step)) < len(step) // 5
    is_first: Mask = (step == MISSING) | ((step <= known.min()) & (known.min() < known.max()))
    return is_first


def _step_counts(launches: _Launches) -> dict[str, Any]:
    """Return the most launches and ns that a step has, collectives apart, and the mean number over all steps; None without."""
    known = launches.step != MISSING
    step, is_own = numbered(launches.step[known]), launches.is_own[known]
    if not len(step):
        return dict.fromkeys(("most_in_step", "mean_in_step", "most_ns"))
    timed = is_own & (launches.duration[known] != MISSING)
    number, ns = np.bincount(step[is_own], minlength=int(step.max()) + 1), np.zeros(int(step.max()) + 1, np.int64)
    np.add.at(ns, step[timed], launches.duration[known][timed])
    return {"most_in_step": int(number.max()), "mean_in_step": float(number.mean()), "most_ns": int(ns.max())}


def _per_step(found: Int, step: Int, names: int) -> list[dict[str, Any]]:
    """Return for each name the most launches that a step has of it, and the mean over all steps; None in none."""
    known = step != MISSING
    steps = int(numbered(step[known]).max(initial=-1)) + 1
    pair = numbered(found[known], step[known])
    each = np.bincount(pair)
    name = np.zeros(len(each), np.int64)
    name[pair] = found[known]
    most, total = np.zeros(names, np.int64), np.zeros(names, np.int64)
    np.maximum.at(most, name, each)
    np.add.at(total, name, each)
    return [{"most_per_step": largest or None, "mean_per_step": number / steps if largest else None}
            for largest, number in zip(most.tolist(), total.tolist(), strict=True)]


def _measured(launches: _Launches, number: Int, warm: Mask, configurations: int) -> list[dict[str, Any]]:
    """Return the time of each configuration, the place of its first launch after the warm-up (else of its last one), when that
    has ended, and what is `chosen` of it: its place among all launches but collectives, from 1, the time of these up to its end,
    and its own; nothing of one without a known duration. number: that of each launch's configuration, -1 for none."""
    timed = np.flatnonzero((number >= 0) & (launches.duration != MISSING))
    total, count = np.zeros(configurations, np.int64), np.bincount(number[timed], minlength=configurations)
    np.add.at(total, number[timed], launches.duration[timed])
    placed = timed[launches.start[timed] != MISSING]
    first, first_placed = (_first_after(number, warm, rows, configurations) for rows in (timed, placed))
    begin = launches.start[launches.start != MISSING].min(initial=_LAST)
    ends = launches.start[first_placed] + launches.duration[first_placed] - begin
    own_ns = np.where(launches.is_own & (launches.duration != MISSING), launches.duration, 0)
    chosen = (np.cumsum(launches.is_own)[first], np.cumsum(own_ns)[first], launches.duration[first])
    return [{"total_ns": ns, "mean_ns": ns / each, "place": place, "until_ns": end,
             "chosen": {"ordinal": ordinal, "before_ns": before_ns, "own_ns": lasts}} if each else {}
            for ns, each, place, end, ordinal, before_ns, lasts in zip(*(column.tolist() for column in (
                total, count, launches.place[first], ends, *chosen)), strict=True)]


def _first_after(number: Int, warm: Mask, rows: Int, configurations: int) -> Int:
    """Return for each configuration the first of these launches after the warm-up, else the last of all."""
    found = np.zeros(configurations, np.int64)
    found[number[rows]] = rows  # the last assignment stays
    after = rows[~warm[rows]][::-1]
    found[number[after]] = after
    return found


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
    if not by_kernel:
        return []
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
        "word": first["found"] if first["is_word"] else None, "name_base": "demangled" if first["is_word"] else "function",
        "launch_skip": skip, "launch_count": count,
        "configurations": len(group), "total_ns": total_ns, "time_pct": round(100 * total_ns / all_ns, 1) if all_ns else None,
        "passes": passes, "estimated_s": round(_START_S + last["until_ns"] / 1e9 + count * mean_s, 1),
    }


def _unfiltered(
    configurations: list[dict[str, Any]], wanted: list[dict[str, Any]], all_ns: int, passes: int,
) -> dict[str, Any]:
    """Return the row of one start that measures all launches from the first to the last that are wanted, or a whole step."""
    first, last = (pick(wanted, key=lambda row: row["chosen"]["ordinal"]) for pick in (min, max))
    if all(_begins_later(row) for row in wanted):
        skip, count, span_ns = round((first["first_step"] + 1) * first["mean_in_step"]), first["most_in_step"], first["most_ns"]
        measured = [row for row in configurations if _begins_later(row)]
    else:
        skip, count = first["chosen"]["ordinal"] - 1, last["chosen"]["ordinal"] - first["chosen"]["ordinal"] + 1
        span_ns = last["chosen"]["before_ns"] - first["chosen"]["before_ns"] + first["chosen"]["own_ns"]
        measured = [row for row in configurations if skip < row["chosen"]["ordinal"] <= skip + count]
    total_ns = sum(row["total_ns"] for row in measured)
    return {
        "run": first["run"], "tool": first["tool"], "rank": first["rank"], "kernel": None, "word": None, "name_base": None,
        "launch_skip": int(skip), "launch_count": int(count), "configurations": len(measured), "total_ns": total_ns,
        "time_pct": round(100 * total_ns / all_ns, 1) if all_ns else None, "passes": passes,
        "estimated_s": round(_START_S + last["until_ns"] / 1e9 + passes * (count * _PASS_S + _SLOWER * float(span_ns) / 1e9), 1),
    }


def _base_name(name: str) -> str:
    """Return the filter that finds this base name alone: ncu takes what begins with regex: for an expression."""
    return f"regex:^{re.escape(name)}$" if name.startswith("regex:") else name


def _word(word: str) -> str:
    """Return the filter that finds a whole word of a demangled name. Only what every kind of regular expression has is used."""
    return f"regex:(^|[^A-Za-z0-9_]){re.escape(word)}([^A-Za-z0-9_]|$)"
