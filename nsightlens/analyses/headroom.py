"""How much faster the GPU work could be: time minus time at its roof, per kernel, operator, module, family, phase or step.

The roof of a launch is the longer of its operations at the GPU's peak for their precision and its bytes at the bandwidth of its
memory, by the datasheet. Work and bytes are what ncu counted of the same kernel, grid and block, else what the shapes of its
operator give (shape_work), carried from Kineto to nsys by launch, else by configuration where all launches agree. A call whose
kernels do its work together has a roof as a whole: per operator, module, phase and step its kernels share it by their times. Of
products, convolutions and attention both must be known; of other kernels the bytes are enough. Collectives, memory operations and
graphs of unknown kernels have no roof here.
max_gain_ns is what a faster kernel can shorten the process by at most: the headroom of each launch as far as the launch is on the
critical path (critical_path). Times are those of the undisturbed tool: nsys, else Kineto; durations add up, also where
kernels run at once. Rows: the largest gain first within each run and tool, then the largest headroom.
@scope run
@requires _bounded_kernels, _datasheet, _datasheet_misfit, _gpu_peak, _ncu_by_config, _ncu_known, _roofline_point, _steps
@requires _stream_work, _timeline_tools, kernels_joined, timeline_kernels, api_calls, devices, gpu_peaks, graph_executions
@requires kernels, memory_ops, processes, ranges, recordings
@assumes The GPU ran at its boost clock, which the datasheet's dense peaks are of: headroom is an upper bound.
@assumes Data is in DRAM: what a cache holds can be faster than its roof, and counts as at the roof (see launches_above_roof).
@assumes Undisturbed launches do the same work as those that ncu counted, and as those in Kineto of the same configuration.
@param  by            kernel (key and launch configuration), key, family, op, module, phase or step.
@param  assume_gpu    Product name for the peaks, where the capture lacks it and its compute capability and SMs fit.
@param  force_gpu     Whether assume_gpu is taken for every GPU, unchecked.
@column run                  Run (one workload in one configuration).
@column tool                 nsys or kineto: the undisturbed tool of the run.
@column rank                 Rank of the process; NULL where unknown.
@column profile_id           Profile; key of `profiles`.
@column process_id           OS process.
@column item                 The kernel, operator, ...; NULL for work outside any.
@column launches             Kernels, memory operations and graph launches.
@column max_gain_ns          What the process can gain at most.
@column headroom_ns          Time above the roof, of launches with a known roof.
@column at_roof_ns           Their time at the roof.
@column unknown_roof_ns      Time of kernels whose roof is unknown.
@column no_roof_ns           Time of collectives, memory operations and graphs of unknown kernels.
@column gpu_ns               Sum of all durations.
@column critical_path_ns     Time on the critical path; NULL where there is none.
@column bound_by             memory or compute: the roof of most of at_roof_ns.
@column work_source          counters, shapes or both.
@column launches_above_roof  Launches that were faster than their roof.
@column gain_limit           critical path, or own time where no critical path is known.
@column reason               Why the roof is unknown, for most of unknown_roof_ns.
@balance gpu_ns = at_roof_ns + headroom_ns + unknown_roof_ns + no_roof_ns
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from nsightlens.analyses import Ask, critical_path
from nsightlens.analyses._roofs import Roof, Roofs
from nsightlens.analyses.run_difference import ITEMS
from nsightlens.errors import UsageError

_ITEMS = {
    "kernel": ITEMS["kernel"], "key": "kernel_key", "family": "family", "op": "known_op", "module": "known_module",
    "phase": "known_phase", "step": "CAST(known_step AS VARCHAR)",
}
_OTHER_ITEMS = {
    "kernel": "concat_ws(' ', kind, direction)", "key": "concat_ws(' ', kind, direction)", "family": "'memory operations'",
    "op": "op", "module": "module", "phase": "phase", "step": "CAST(step AS VARCHAR)",
}
_OF_CALLS = ("op", "module", "phase", "step")
"""Items that hold whole calls of operators."""
_KERNELS = f"""
SELECT run, tool, rank, profile_id, process_id, window_index, device_id, stream, start_ns,
    duration_ns - coalesce(overrun_ns, 0) AS duration_ns, name, kernel_id, family, kineto_kernel_id,
    {ITEMS['kernel']} AS configuration, {{item}} AS item
FROM timeline_kernels AS k JOIN (
    SELECT kernel_id AS known_id, op AS known_op, module AS known_module, phase AS known_phase, step AS known_step,
        kineto_kernel_id
    FROM kernels_joined
) AS j ON k.kernel_id = j.known_id
WHERE duration_ns >= 0"""
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
_BATCH = 1 << 14
_WHO = ("run", "tool", "rank", "profile_id", "process_id", "item")
_SUMS = ("launches", "max_gain_ns", "headroom_ns", "at_roof_ns", "unknown_roof_ns", "no_roof_ns", "gpu_ns", "critical_path_ns",
         "launches_above_roof")
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
        raise UsageError(f"headroom: by is one of {', '.join(_ITEMS)}, not {by!r}")
    if force_gpu and assume_gpu is None:
        raise UsageError("headroom: force_gpu needs assume_gpu")
    groups: dict[tuple[Any, ...], Group] = defaultdict(Group)
    roofs, path = Roofs(ask, assume_gpu, force_gpu), Path(critical_path.analyse(ask))
    calls: dict[tuple[int, int], list[Piece]] = defaultdict(list)
    for batch in ask(_KERNELS.format(item=_ITEMS[by]), []).to_batches(max_chunksize=_BATCH):
        for row in batch.to_pylist():
            piece = _piece(groups[tuple(row[name] for name in _WHO)], row, roofs, path)
            call = roofs.call_of(row["kernel_id"], row["kineto_kernel_id"]) if by in _OF_CALLS else None
            if call is None or piece.roof is None:
                _settle(piece)
            else:
                calls[call].append(piece)
    for (call_id, launches), pieces in calls.items():
        _settle_call(pieces, launches, roofs.of_call(call_id, pieces[0].device_id))
    graph = "'CUDA graphs of unknown kernels'" if by in ("kernel", "key", "family") else "NULL"
    for row in ask(_OTHERS.format(item=_OTHER_ITEMS[by], graph=graph), []).to_pylist():
        group = groups[tuple(row[name] for name in _WHO)]
        group.sums.update(launches=row["launches"], gpu_ns=row["total_ns"], no_roof_ns=row["total_ns"])
    return _table(groups)


class Piece(NamedTuple):
    """One kernel and the row it belongs to. roof: None for collectives, which have none."""

    group: Group
    spent: int
    on_path: int | None
    roof: Roof | None
    device_id: str | None


def _piece(group: Group, row: dict[str, Any], roofs: Roofs, path: Path) -> Piece:
    """Return a kernel, counted in its row."""
    roof = None if row["family"] == "collective" else roofs.of(
        row["kernel_id"], row["run"], row["process_id"], row["device_id"], row["configuration"], row["family"],
        row["kineto_kernel_id"])
    spent, on_path = row["duration_ns"], path.of(row)
    group.has_path |= on_path is not None
    group.sums.update(launches=1, gpu_ns=spent, critical_path_ns=on_path or 0)
    return Piece(group, spent, on_path, roof, row["device_id"])


def _settle(piece: Piece) -> None:
    """Divide the time of a kernel by its own roof."""
    if piece.roof is None:
        piece.group.sums["no_roof_ns"] += piece.spent
    elif piece.roof.ns is None:
        piece.group.sums["unknown_roof_ns"] += piece.spent
        piece.group.reasons[piece.roof.reason or ""] += piece.spent
    else:
        _divide(piece, min(piece.spent, piece.roof.ns), piece.roof, piece.roof.ns > piece.spent)


def _settle_call(pieces: list[Piece], launches: int, whole: Roof) -> None:
    """Divide the time of a call's kernels: by their own roofs where all have one, else by that of the call, shared by time."""
    own = all(piece.roof is not None and piece.roof.ns is not None for piece in pieces)
    if own or whole.ns is None or len(pieces) < launches:
        for piece in pieces:
            _settle(piece)
        return
    rest = sum(piece.spent for piece in pieces)
    left, is_above = min(whole.ns, rest), whole.ns > rest
    for piece in pieces:
        share = left * piece.spent // rest if rest else 0
        _divide(piece, share, whole, is_above)
        left, rest = left - share, rest - piece.spent


def _divide(piece: Piece, at_roof: int, roof: Roof, is_above: bool) -> None:
    above = piece.spent - at_roof
    piece.group.sums.update(at_roof_ns=at_roof, headroom_ns=above, launches_above_roof=int(is_above),
                            max_gain_ns=above if piece.on_path is None else min(above, piece.on_path))
    piece.group.bounds[roof.bound or ""] += at_roof
    piece.group.sources.add(roof.source or "")


class Path:
    """Time of each kernel on the critical path of its process."""

    def __init__(self, segments: pa.Table) -> None:
        self._processes: set[tuple[Any, ...]] = set()
        self._starts: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        self._lengths: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        names = ("profile_id", "process_id", "window_index", "device_id", "stream", "name", "start_ns", "duration_ns", "bound_by")
        for *key, start, length, bound in zip(*(segments[name].to_pylist() for name in names), strict=True):
            self._processes.add(tuple(key[:3]))
            if bound in ("compute", "communication", "memory"):
                self._starts[tuple(key)].append(start)
                self._lengths[tuple(key)].append(length)

    def of(self, row: dict[str, Any]) -> int | None:
        """Return how long a kernel is on the path, ns; None where its process has none.

        A path passes through a kernel once, and no two kernels of one name run at once in a stream: the segment is the first
        that does not begin before the kernel.
        """
        who = row["profile_id"], row["process_id"], row["window_index"]
        if who not in self._processes or row["start_ns"] is None:
            return None
        key = (*who, row["device_id"], row["stream"], row["name"])
        starts = self._starts.get(key, [])
        place = bisect_right(starts, row["start_ns"] - 1)
        inside = place < len(starts) and starts[place] < row["start_ns"] + row["duration_ns"]
        return self._lengths[key][place] if inside else 0


def _table(groups: dict[tuple[Any, ...], Group]) -> pa.Table:
    """Return the rows, the largest gain first within run and tool; NULL sorts as the empty text."""
    rows = []
    for who, group in groups.items():
        row = dict(zip(_WHO, who, strict=True)) | {name: group.sums[name] for name in _SUMS}
        row |= {
            "critical_path_ns": group.sums["critical_path_ns"] if group.has_path else None,
            "bound_by": max(group.bounds, key=lambda name: (group.bounds[name], name)) if group.bounds else None,
            "work_source": "both" if len(group.sources) > 1 else next(iter(group.sources), None),
            "gain_limit": ("critical path" if group.has_path else "own time") if group.bounds else None,
            "reason": max(group.reasons, key=lambda name: (group.reasons[name], name)) if group.reasons else None,
        }
        rows.append(row)
    rows.sort(key=lambda row: (row["run"], row["tool"], -row["max_gain_ns"], -row["headroom_ns"], -row["gpu_ns"],
                               row["rank"] or 0, row["profile_id"] or "", row["process_id"] or "", row["item"] or ""))
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
