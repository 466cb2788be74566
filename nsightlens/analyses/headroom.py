"""How much faster the GPU work could be: time minus time at its roof, per kernel, operator, module, family, phase or step.

The roof of a launch is the longer of its operations at the GPU's peak for their precision and its bytes at the bandwidth of
its memory, by the datasheet. Work and bytes come from ncu's counters of the same kernel, grid and block, else from the shapes
of its operator (shape_work), carried from Kineto to nsys by launch, else by configuration if all launches agree. If several
kernels share the work of a call, the call has a roof as a whole: per operator, module, phase and step its kernels share it by
their times. Products, convolutions and attention need both operations and bytes; for other kernels the bytes are enough.
Collectives, memory operations and graphs of unknown kernels have no roof here. max_gain_ns is the most by which faster
kernels can shorten the process: the headroom of each launch, and of one whose roof is unknown all its time, as far as the
launch is on the critical path (critical_path).
Times come from the undisturbed tool: nsys, else Kineto; durations of concurrent kernels add up. If no launch of a row has a
known roof, its gain, headroom and time at the roof are NULL: unknown_roof_ns and no_roof_ns are all of its gpu_ns. Within each
run and tool, the largest gain comes first, then the largest headroom, and unknown ones last.
@scope run
@topic roofline
@needs timeline
@requires _bounded_kernels, _datasheet, _datasheet_misfit, _gpu_peak, _gpu_work, _kineto_known, _ncu_by_config, _ncu_known
@requires _roofline_point, _steps, _timeline_tools, _waits, timeline_kernels, api_calls, devices, gpu_peaks
@requires graph_executions, kernels, memory_ops, processes, profiles, ranges, recordings
@assumes The GPU ran at its boost clock, as the datasheet's dense peaks assume: headroom is an upper bound.
@assumes Data comes from DRAM: kernels that find it in a cache can exceed their roof, and count as at the roof (see
    launches_above_roof).
@assumes Undisturbed launches do the same work as those that ncu counted, and as those in Kineto of the same configuration.
@param  by            kernel (key and launch configuration), key, family, op, module, phase or step.
@param  assume_gpu    Product name for the peaks, where the capture lacks it and its compute capability and SMs fit.
@param  force_gpu     Whether assume_gpu is taken for every GPU, unchecked.
@first rank, item, max_gain_ns, gpu_ns, headroom_ns, bound_by
@column run                  Run (one workload in one configuration).
@column tool                 nsys or kineto: the undisturbed tool of the run.
@column rank                 Rank of the process; NULL where unknown.
@column profile_id           Profile; key of `profiles`.
@column process_id           OS process.
@column item                 The kernel, operator, ...; NULL for work outside any.
@column launches             Kernels, memory operations and graph launches.
@column max_gain_ns          What faster kernels can save the process at most; NULL where no roof is known.
@column headroom_ns          Time above the roof, of launches with a known roof; NULL where there is none.
@column at_roof_ns           Their time at the roof, as above.
@column unknown_roof_ns      Time of kernels whose roof is unknown.
@column no_roof_ns           Time of collectives, memory operations and graphs of unknown kernels.
@column gpu_ns               Sum of all durations.
@column critical_path_ns     Time on the critical path; NULL where there is none.
@column bound_by             memory or compute: the roof of most of at_roof_ns.
@column work_source          counters, shapes or both.
@column launches_above_roof  Launches that were faster than their roof, as above.
@column gain_limit           critical path, or own time where no critical path is known.
@column reason               Why the roof is unknown, for most of unknown_roof_ns.
@balance gpu_ns = at_roof_ns + headroom_ns + unknown_roof_ns + no_roof_ns
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses._on_path import WINDOW, OnPath
from nsightlens.analyses._roofs import Roofs, RoofTime
from nsightlens.analyses.run_difference import ITEMS
from nsightlens.columns.arrays import MISSING, Int, integers
from nsightlens.errors import UsageError, not_a_choice

_ITEMS = {
    "kernel": ITEMS["kernel"], "key": "kernel_key", "family": "family", "op": "known", "module": "known", "phase": "known",
    "step": "known",
}
_KNOWN = {
    "op": "CASE WHEN j.tells_op THEN j.known.op ELSE k.op END", "module": "coalesce(k.module, j.known.module)",
    "phase": "coalesce(k.phase, j.known.phase)", "step": "CAST(coalesce(k.step, j.known.step) AS VARCHAR)",
}
"""What is known of a launch, as in kernels_joined: by its own tool, else by Kineto."""
_OTHER_ITEMS = {
    "kernel": "concat_ws(' ', kind, direction)", "key": "concat_ws(' ', kind, direction)", "family": "'memory operations'",
    "op": "op", "module": "module", "phase": "phase", "step": "CAST(step AS VARCHAR)",
}
_OF_CALLS = ("op", "module", "phase", "step")
"""Items that hold whole calls of operators."""
_ALIKE = ("run", "tool", "rank", "profile_id", "process_id", "window_index", "device_id", "family", "kernel_key",
          "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "known")
_ANY = ", ".join(f"first({name}) AS {name}" for name in _ALIKE)
# Launches that agree in all of these are of one kind, known by a hash: texts are read once per kind.
_LAUNCHES = """
WITH launches AS (
    SELECT k.* REPLACE (k.duration_ns - coalesce(k.overrun_ns, 0) AS duration_ns), {known} AS known,
        CASE WHEN k.tool = 'kineto' THEN k.kernel_id ELSE j.kineto_kernel_id END AS kineto_kernel_id
    FROM timeline_kernels AS k LEFT JOIN _kineto_known AS j ON k.kernel_id = j.kernel_id
    WHERE k.duration_ns >= 0
)"""
_KINDS = f"""{_LAUNCHES}
SELECT kind, run, tool, rank, profile_id, process_id, window_index, device_id, family, {ITEMS['kernel']} AS configuration,
    {{item}} AS item
FROM (SELECT {_ANY}, hash({', '.join(_ALIKE)}) AS kind, min(kernel_id) AS first_id FROM launches GROUP BY kind)
ORDER BY first_id"""
_KERNELS = f"""{_LAUNCHES}
SELECT kernel_id, kineto_kernel_id, hash({', '.join(_ALIKE)}) AS kind, duration_ns, start_ns IS NOT NULL AS is_placed
FROM launches ORDER BY kernel_id"""
_OTHERS = """
SELECT m.run, m.tool, p.rank, m.profile_id, m.process_id, CAST(sum(duration_ns) AS BIGINT) AS total_ns, count(*) AS launches, item
FROM (
    SELECT run, tool, profile_id, process_id, duration_ns, {item} AS item FROM memory_ops WHERE duration_ns >= 0
    UNION ALL
    SELECT run, tool, profile_id, process_id, duration_ns, {graph} FROM graph_executions WHERE duration_ns >= 0
) AS m
SEMI JOIN _timeline_tools AS t ON m.run = t.run AND m.tool = t.tool
LEFT JOIN processes AS p ON m.profile_id = p.profile_id AND m.process_id = p.process_id
GROUP BY ALL"""
_WHO = ("run", "tool", "rank", "profile_id", "process_id", "item")
_SUMS = ("launches", "max_gain_ns", "headroom_ns", "at_roof_ns", "unknown_roof_ns", "no_roof_ns", "gpu_ns", "critical_path_ns",
         "launches_above_roof")
_OF_ROOFS = ("max_gain_ns", "headroom_ns", "at_roof_ns", "launches_above_roof")
"""Figures that only launches with a known roof have."""
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("rank", pa.int32()), ("profile_id", pa.string()), ("process_id", pa.string()),
    ("item", pa.string()), *((name, pa.int64()) for name in _SUMS[:-1]), ("bound_by", pa.string()), ("work_source", pa.string()),
    ("launches_above_roof", pa.int64()), ("gain_limit", pa.string()), ("reason", pa.string()),
])


@dataclass(slots=True)
class Group:
    """One row in the making. bounds, sources, reasons: ns by what they are."""

    sums: Counter[str] = field(default_factory=Counter)
    bounds: Counter[str] = field(default_factory=Counter)
    sources: set[str] = field(default_factory=set)
    reasons: Counter[str] = field(default_factory=Counter)
    has_path: bool = False


def analyse(ask: Ask, *, by: str = "kernel", assume_gpu: str | None = None, force_gpu: bool = False) -> pa.Table:
    """Return a row per process and item.

    Raises UsageError for another `by`, for a GPU that no datasheet is known of, and for force_gpu without one.
    """
    if by not in _ITEMS:
        raise not_a_choice("headroom", "by", by, _ITEMS)
    if force_gpu and assume_gpu is None:
        raise UsageError("headroom: force_gpu needs assume_gpu")
    groups: dict[tuple[Any, ...], Group] = defaultdict(Group)
    roofs, known = Roofs(ask, assume_gpu, force_gpu), _KNOWN.get(by, "NULL")
    kinds = ask(_KINDS.format(known=known, item=_ITEMS[by]), []).to_pylist()
    kernels = _kernels(ask(_KERNELS.format(known=known), []), kinds, OnPath(ask))
    alike, found = roofs.of(kernels.ids, kernels.kineto_ids, kernels.kind, kinds)
    sorts = [Sort(groups[tuple(kinds[kind][name] for name in _WHO)], roof, kinds[kind]["device_id"]) for kind, roof in found]
    _count(kernels, alike, sorts)
    calls: dict[tuple[int, int], list[int]] = defaultdict(list)
    if by in _OF_CALLS:
        for place, call in roofs.calls_of(kernels.ids, kernels.kineto_ids):
            if sorts[alike[place]].roof is not None:
                calls[call].append(place)
    alone = np.ones(len(alike), np.bool_)
    for (call_id, launches), places in calls.items():
        whole = roofs.call_roof(call_id, sorts[alike[places[0]]].device_id)
        if _settle_call([KernelTime(sorts[alike[place]], *kernels.times(place)) for place in places], launches, whole):
            alone[places] = False
    _settle(kernels, np.flatnonzero(alone), alike, sorts)
    graph = "'CUDA graphs of unknown kernels'" if by in ("kernel", "key", "family") else "NULL"
    for row in ask(_OTHERS.format(item=_OTHER_ITEMS[by], graph=graph), []).to_pylist():
        group = groups[tuple(row[name] for name in _WHO)]
        group.sums.update(launches=row["launches"], gpu_ns=row["total_ns"], no_roof_ns=row["total_ns"])
    return _table(groups)


class Sort(NamedTuple):
    """What launches of one row have in common that have one roof. roof: None for collectives, which have none."""

    group: Group
    roof: RoofTime | None
    device_id: str | None


class KernelTime(NamedTuple):
    """One kernel of a call: its length, and its time on the path (None where there is none); ns."""

    sort: Sort
    spent: int
    on_path: int | None


class Kernels(NamedTuple):
    """The kernels, by their ids. kind: place in the list of kinds; spent, on_path: ns, MISSING without a path."""

    ids: Int
    kineto_ids: Int
    kind: Int
    spent: Int
    on_path: Int

    def times(self, place: int) -> tuple[int, int | None]:
        """Return the length of a kernel, and its time on the path."""
        on_path = int(self.on_path[place])
        return int(self.spent[place]), None if on_path == MISSING else on_path


def _kernels(table: pa.Table, kinds: list[dict[str, Any]], path: OnPath) -> Kernels:
    """Return the kernels, with their time on the critical path of their process."""
    ids, spent = table["kernel_id"].to_numpy(), table["duration_ns"].to_numpy()
    hashes = np.array([row["kind"] for row in kinds], np.uint64)
    order = np.argsort(hashes)
    kind = order[np.searchsorted(hashes, table["kind"].to_numpy(), sorter=order)]
    has_path = np.array([tuple(row[name] for name in WINDOW) in path.windows for row in kinds], np.bool_)
    on_path = np.where(has_path[kind] & table["is_placed"].to_numpy(), path.of(ids), MISSING)
    return Kernels(ids, integers(table["kineto_kernel_id"].combine_chunks()), kind, spent, on_path)


def _summed(values: Int, alike: Int, number: int) -> list[int]:
    """Return the sum of the values of each sort of launches."""
    found = np.zeros(number, np.int64)
    np.add.at(found, alike, values)
    return found.tolist()


def _count(kernels: Kernels, alike: Int, sorts: list[Sort]) -> None:
    """Count the kernels and their times in their rows."""
    has_path = kernels.on_path != MISSING
    columns = (np.ones_like(alike), kernels.spent, np.where(has_path, kernels.on_path, 0), has_path.astype(np.int64))
    for sort, launches, spent, on_path, with_path in zip(
            sorts, *(_summed(column, alike, len(sorts)) for column in columns), strict=True):
        sort.group.sums.update(launches=launches, gpu_ns=spent, critical_path_ns=on_path)
        sort.group.has_path |= with_path > 0


def _settle(kernels: Kernels, places: Int, alike: Int, sorts: list[Sort]) -> None:
    """Divide the time of these kernels, each by its own roof."""
    alike, spent, on_path = alike[places], kernels.spent[places], kernels.on_path[places]
    roof = np.array([MISSING if sort.roof is None or sort.roof.ns is None else sort.roof.ns for sort in sorts], np.int64)[alike]
    at_roof = np.where(roof == MISSING, 0, np.minimum(spent, roof))
    gain = np.where(on_path == MISSING, spent - at_roof, np.minimum(spent - at_roof, on_path))
    columns = (np.ones_like(alike), spent, at_roof, gain, (roof > spent).astype(np.int64))
    for sort, launches, *times in zip(sorts, *(_summed(column, alike, len(sorts)) for column in columns), strict=True):
        if launches and sort.roof is None:
            sort.group.sums["no_roof_ns"] += times[0]
        elif launches and sort.roof is not None and sort.roof.ns is None:
            sort.group.sums.update(unknown_roof_ns=times[0], max_gain_ns=times[2])
            sort.group.reasons[sort.roof.reason or ""] += times[0]
        elif launches and sort.roof is not None:
            _divide(sort.group, sort.roof, *times)


def _settle_call(pieces: list[KernelTime], launches: int, whole: RoofTime) -> bool:
    """Divide the time of a call's kernels by the roof of the call, shared by time; return False where each is to have its own."""
    own = all(piece.sort.roof is not None and piece.sort.roof.ns is not None for piece in pieces)
    if own or whole.ns is None or len(pieces) < launches:
        return False
    rest = sum(piece.spent for piece in pieces)
    left, is_above = min(whole.ns, rest), whole.ns > rest
    for piece in pieces:
        share = left * piece.spent // rest if rest else 0
        above = piece.spent - share
        gain = above if piece.on_path is None else min(above, piece.on_path)
        _divide(piece.sort.group, whole, piece.spent, share, gain, int(is_above))
        left, rest = left - share, rest - piece.spent
    return True


def _divide(group: Group, roof: RoofTime, spent: int, at_roof: int, gain: int, above_roof: int) -> None:
    group.sums.update(at_roof_ns=at_roof, headroom_ns=spent - at_roof, launches_above_roof=above_roof, max_gain_ns=gain)
    group.bounds[roof.bound or ""] += at_roof
    group.sources.add(roof.source or "")


def _table(groups: dict[tuple[Any, ...], Group]) -> pa.Table:
    """Return the rows, the largest gain first within run and tool; NULL sorts as the empty text, unknown gains last."""
    rows = []
    for who, group in groups.items():
        row = dict(zip(_WHO, who, strict=True)) | {name: group.sums[name] for name in _SUMS}
        row |= {
            "critical_path_ns": group.sums["critical_path_ns"] if group.has_path else None,
            "bound_by": max(group.bounds, key=lambda name: (group.bounds[name], name)) if group.bounds else None,
            "work_source": "both" if len(group.sources) > 1 else next(iter(group.sources), None),
            "gain_limit": ("critical path" if group.has_path else "own time") if group.bounds else None,
            "reason": max(group.reasons, key=lambda name: (group.reasons[name], name)) if group.reasons else None,
        } | (dict.fromkeys(_OF_ROOFS) if not group.bounds else {})
        rows.append(row)
    rows.sort(key=lambda row: (row["run"], row["tool"], row["max_gain_ns"] is None, -(row["max_gain_ns"] or 0),
                               -(row["headroom_ns"] or 0), -row["gpu_ns"], row["rank"] or 0, row["profile_id"] or "",
                               row["process_id"] or "", row["item"] or ""))
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
