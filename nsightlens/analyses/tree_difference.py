"""What changed between two runs: their trees of time_tree side by side, and the difference of each node, to the ns.

The times are those of a mean steady step where both runs have steps, else of a mean window, over ranks, GPUs and recordings;
start-up and wind-down are means over processes, and no part of the step. The branches sum to the window, and their differences
to its difference, exactly: fractions of a ns are given to the largest remainders. A kernel that only one run has, and one that
only the other has, are one row if they work for the same operators and shapes. Both runs are compared under one tool: nsys
where both have it, else Kineto. The interval is that of Student's test over recordings (of Welch's, if there are as many of
each): their steps are not replicates of a run.
@scope run
@topic runs
@needs gpu_work
@requires _bounded_kernels, _collective_kernels, _gpu_work, _profile_executions, _serving_names, api_calls, devices, kernels
@requires diagnostics, memory_ops
@requires _process_groups, advice, synchronizations, _ncu_by_config, _tensor_core_counters, speed_of_light
@requires _device_links, collective_summary, cpu_samples, frames, sampled_frames
@requires mpi_calls, os_calls, overheads, page_faults, processes, profiles, range_projections, ranges, recordings
@assumes Both runs do the same work per step, or in all where they have no steps (comparability: what differs).
@param  base           Baseline run; NULL: the first of the store's two runs.
@param  other          Run that is compared with it; NULL: the second.
@param  time           Tool whose times are compared: nsys or kineto; NULL: nsys where both runs have it, else Kineto.
@param  rank           Only this rank; NULL: the mean over all.
@first node, base_ns, other_ns, difference_ns, change_pct, base_count, other_count
@column base_run       Run that is the measure.
@column other_run      Run that is compared with it.
@column tool           Tool whose times are compared.
@column unit           per step, or per window where a run has no steps.
@column row_index      Place of the row, from 0: the window.
@column parent_index   row_index of the row that it is a part of; NULL for the window, start-up and wind-down.
@column depth          0 for the window, start-up and wind-down; 1 for branches; then leaves.
@column node           window, a branch, a cause, or the name of a kernel, call, range or direction (in other, where it has it).
@column base_node      The kernel's name in base, where it has another one there.
@column state          new, gone or renamed; NULL where both runs have it by this name.
@column base_ns        Its time in base.
@column other_ns       Its time in other.
@column difference_ns  other_ns minus base_ns.
@column low_ns         Lower end of the 95 % interval of the window's difference; NULL for its parts, and for one recording
    of each.
@column high_ns        Upper end.
@column change_pct     difference_ns as a share of base_ns.
@column base_count     Kernels, copies or gaps of it in a step or window of base; NULL where not counted.
@column other_count    The same in other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses._compared_runs import common_tool, side, tools
from nsightlens.analyses._runs import named
from nsightlens.diagnosis.counter_difference import Pair
from nsightlens.diagnosis.difference import Difference, Line, difference, efficiencies
from nsightlens.errors import UsageError, not_a_choice
from nsightlens.statistics.significance import interval_of_means

_SCHEMA = pa.schema([
    ("base_run", pa.string()), ("other_run", pa.string()), ("tool", pa.string()), ("unit", pa.string()),
    ("row_index", pa.int32()), ("parent_index", pa.int32()), ("depth", pa.int32()), ("node", pa.string()),
    ("base_node", pa.string()), ("state", pa.string()), ("base_ns", pa.int64()), ("other_ns", pa.int64()),
    ("difference_ns", pa.int64()), ("low_ns", pa.int64()), ("high_ns", pa.int64()), ("change_pct", pa.float64()),
    ("base_count", pa.float64()), ("other_count", pa.float64())])
_COUNTERS = pa.schema([
    ("base_run", pa.string()), ("other_run", pa.string()), ("kernel_key", pa.string()), ("base_kernel_key", pa.string()),
    ("base_configuration", pa.string()), ("other_configuration", pa.string()), ("base_ns", pa.float64()),
    ("other_ns", pa.float64()), ("difference_ns", pa.float64()), ("base_launches", pa.int64()), ("other_launches", pa.int64()),
    ("base_limit", pa.string()),
    ("other_limit", pa.string())])
_SERIES = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("unit", pa.string()), ("gpus", pa.int64()), ("row_index", pa.int32()),
    ("depth", pa.int32()), ("node", pa.string()), ("total_ns", pa.int64()), ("difference_ns", pa.int64()),
    ("efficiency_pct", pa.float64())])


def analyse(ask: Ask, *, base: str | None = None, other: str | None = None, time: str | None = None,
            rank: int | None = None) -> pa.Table:
    """Return the rows of two runs. Raises UsageError for runs that there are not, or without a timeline in common."""
    return table(compared(ask, base, other, time, rank))


def compared(ask: Ask, base: str | None, other: str | None, time: str | None = None, rank: int | None = None) -> Difference:
    """Return the difference of two runs of a store."""
    if time not in (None, "nsys", "kineto"):
        raise not_a_choice(None, "time", time, ("nsys", "kineto"))
    runs = named(ask, base, other)
    tool = common_tool(runs, [tools(ask, run) for run in runs], time)
    sides = [side(ask, run, tool, rank=rank) for run in runs]
    if not all(each.sums.trees for each in sides):
        raise UsageError(f"rank {rank} is not in both runs", subject="rank", value=rank)
    return difference(sides)


def table(found: Difference) -> pa.Table:
    """Return the rows of a difference of two runs."""
    return pa.Table.from_pylist(list(_rows(found)), schema=_SCHEMA)


def _rows(found: Difference) -> Iterator[dict[str, Any]]:
    base, other = found.sides
    where = {"base_run": base.run, "other_run": other.run, "tool": base.tool, "unit": _unit(found)}
    places: dict[tuple[str, ...], int] = {}
    reach = interval_of_means(*found.recordings)
    for place, line in enumerate(found.lines):
        places[line.path] = place
        is_root = len(line.path) == 1 and line.is_outside
        before, after = line.names
        yield where | {
            "row_index": place, "parent_index": None if is_root or not line.path else places[line.path[:-1]],
            "depth": len(line.path) - line.is_outside, "node": (after or before) if line.path else "window",
            "base_node": before if before and after and before != after else None, "state": state(line),
            "base_ns": line.ns[0], "other_ns": line.ns[1], "difference_ns": line.difference,
            "low_ns": None if line.path or not reach else round(reach[0]),
            "high_ns": None if line.path or not reach else round(reach[1]),
            "change_pct": round(100 * line.difference / line.ns[0], 2) if line.ns[0] else None,
            "base_count": line.counts[0], "other_count": line.counts[1]}


def _unit(found: Difference) -> str:
    return "per step" if found.per_step else "per window"


def state(line: Line) -> str | None:
    """Return whether a part is new, gone or renamed."""
    before, after = line.names[0], line.names[-1]
    if before is None or after is None:
        return "new" if before is None else "gone"
    return "renamed" if before != after else None


def series(found: Difference) -> pa.Table:
    """Return the trees of several runs, a row for each node and run; differences and efficiencies are against the first."""
    efficient = efficiencies(found)
    rows = [{
        "run": side.run, "tool": side.tool, "unit": _unit(found), "gpus": side.gpus,
        "row_index": place, "depth": len(line.path) - line.is_outside, "node": line.names[at] or line.path[-1] if line.path else
        "window", "total_ns": line.ns[at], "difference_ns": line.ns[at] - line.ns[0],
        "efficiency_pct": None if line.path else round(efficient[at], 2)}
        for at, side in enumerate(found.sides) for place, line in enumerate(found.lines)]
    return pa.Table.from_pylist(rows, schema=_SERIES)


def counters(found: Sequence[Pair], runs: tuple[str, str]) -> pa.Table:
    """Return the kernels of two runs that only ncu measured: times are those of a mean launch."""
    return pa.Table.from_pylist([{
        "base_run": runs[0], "other_run": runs[1], "kernel_key": pair.kernel.key, "base_kernel_key": pair.base and pair.base.key,
        "difference_ns": pair.difference,
        **{f"{side}_{name}": getattr(one, name) if one else None for side, one in (("base", pair.base), ("other", pair.other))
           for name in ("configuration", "ns", "launches", "limit")}} for pair in found], schema=_COUNTERS)
