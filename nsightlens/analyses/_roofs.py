"""How long each launch would take at its roof: from ncu's counters where they are known, else from the shapes of its operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from nsightlens import op_cost
from nsightlens.analyses import Ask, shape_work
from nsightlens.analyses.run_difference import ITEMS
from nsightlens.errors import UsageError

CONTRACTIONS = ("gemm", "convolution", "attention")
"""Families whose bytes alone say nothing of how fast they could be: their operations must be known."""
_WITH_COUNTERS = """
SELECT k.kernel_id, coalesce(n.configuration_id, c.configuration_id) AS configuration_id, n.grade
FROM _ncu_known AS n
JOIN timeline_kernels AS k ON n.kernel_id = k.kernel_id
LEFT JOIN kernels AS m ON n.ncu_kernel_id = m.kernel_id AND m.tool = 'ncu'
LEFT JOIN _ncu_by_config AS c ON m.run = c.run AND m.rank IS NOT DISTINCT FROM c.rank AND m.kernel_key = c.kernel_key
    AND m.grid_x = c.grid_x AND m.grid_y = c.grid_y AND m.grid_z = c.grid_z
    AND m.block_x = c.block_x AND m.block_y = c.block_y AND m.block_z = c.block_z
    AND m.clock_control IS NOT DISTINCT FROM c.clock_control AND m.cache_control IS NOT DISTINCT FROM c.cache_control
    AND NOT c.summarised
WHERE n.grade IS NOT NULL"""
_COUNTED = """
SELECT configuration_id, precision, peak_key, CAST(work_flop AS DOUBLE) AS work_flop,
    CAST(traffic_bytes AS DOUBLE) AS traffic_bytes
FROM _roofline_point WHERE level = 'dram'"""
_UNEVEN = f"""
SELECT run, process_id, {ITEMS['kernel']} AS configuration
FROM timeline_kernels WHERE duration_ns >= 0 AND coalesce(overrun_ns, 0) = 0 GROUP BY ALL
HAVING quantile_cont(duration_ns, 0.95) > 1.5 * quantile_cont(duration_ns, 0.05)"""
_KINETO = f"SELECT kernel_id, run, {ITEMS['kernel']} AS configuration FROM kernels WHERE tool = 'kineto'"
_DATASHEET = "SELECT datasheet FROM _datasheet(product := ?) WHERE datasheet IS NOT NULL"
_PEAKS = """
WITH gpus AS (
    SELECT k.device_id, k.gpu, CASE WHEN a.force THEN coalesce(a.assumed, k.gpu) ELSE coalesce(k.gpu, a.assumed) END AS product,
        a.force, a.assumed IS NOT NULL AS is_assumed, max(d.compute_capability) AS compute_capability, max(d.sm_count) AS sm_count
    FROM (SELECT DISTINCT device_id, gpu FROM timeline_kernels) AS k
    CROSS JOIN (SELECT CAST(? AS VARCHAR) AS assumed, CAST(? AS BOOLEAN) AS force) AS a
    LEFT JOIN devices AS d USING (device_id)
    GROUP BY ALL
), sheets AS (
    SELECT *, (SELECT datasheet FROM _datasheet(product := gpus.product)) AS sheet FROM gpus
), fitted AS (
    SELECT s.*, CASE WHEN s.gpu IS NULL AND NOT s.force THEN (SELECT misfit FROM _datasheet_misfit(
        sheet := s.sheet, product := s.product, measured_cc := s.compute_capability, measured_sms := s.sm_count)) END AS misfit
    FROM sheets AS s
)
SELECT f.device_id, f.gpu, f.sheet, f.misfit, p.peak_key, p.flop_per_s, p.dram_bytes_per_s, p.sm_count AS whole_sm_count,
    CASE WHEN NOT (f.force AND f.is_assumed) THEN f.sm_count END AS sm_count
FROM fitted AS f LEFT JOIN _gpu_peak AS p ON p.name = f.sheet AND f.misfit IS NULL
ORDER BY f.device_id, f.gpu NULLS LAST, p.peak_key"""


class Work(NamedTuple):
    """What a launch does: (peak key, operations) of each unit that works at once, bytes of DRAM, and where that is from."""

    flop: tuple[tuple[str | None, float | None], ...]
    bytes: float | None
    source: str


class Peak(NamedTuple):
    """Peaks of a device, per second; bytes None where they are unknown (a slice of a GPU)."""

    flop: dict[str, float | None]
    bytes: float | None


class Roof(NamedTuple):
    """Time of a launch at its roof (ns; None: unknown, for the reason given), and which roof is the lower: memory or compute."""

    ns: int | None
    bound: str | None = None
    source: str | None = None
    reason: str | None = None


class Roofs:
    """The roof of each launch of the timeline."""

    def __init__(self, ask: Ask, assume_gpu: str | None, force_gpu: bool) -> None:
        if assume_gpu is not None and ask(_DATASHEET, [assume_gpu]).num_rows == 0:
            names = ask("SELECT name FROM gpu_peaks ORDER BY name", [])["name"].to_pylist()
            raise UsageError(f"no datasheet for {assume_gpu!r}; there are: {', '.join(names)}")
        peaks = ask(_PEAKS, [assume_gpu, force_gpu]).to_pylist()
        self._peaks = _peaks(peaks)
        self._why = {row["device_id"]: no_peaks(row["gpu"], row["sheet"], row["misfit"]) for row in peaks}
        known = ask(_WITH_COUNTERS, []).to_pylist()
        self._configuration = {row["kernel_id"]: (row["configuration_id"], row["grade"] == "launch") for row in known}
        self._counted = _counted(ask(_COUNTED, [])) if known else {}
        uneven = ask(_UNEVEN, []).to_pylist() if known else []
        self._uneven = {(row["run"], row["process_id"], row["configuration"]) for row in uneven}
        works = shape_work.analyse(ask)
        self._shapes, self._reasons = _by_launch(works)
        self._calls, self._call_of = _by_call(works)
        self._alike = _by_configuration(ask(_KINETO, []), self._shapes)
        self._roofs: dict[tuple[Work, str | None, bool], Roof] = {}

    def of(
        self, kernel_id: int, run: str, process_id: str | None, device_id: str | None, configuration: str, family: str,
        kineto_kernel_id: int | None,
    ) -> Roof:
        """Return the roof of a launch. kineto_kernel_id: the same launch in Kineto, where one is certain."""
        place, is_same_launch = self._configuration.get(kernel_id, (None, False))
        # Launches of very different times may differ in work: there the counters count only for the launches they are of.
        is_doubtful = place is not None and not is_same_launch and (run, process_id, configuration) in self._uneven
        counted = None if is_doubtful else self._counted.get(place)
        works = [] if counted is None else [counted]
        shaped = self._shapes.get(kernel_id) or self._shapes.get(kineto_kernel_id or -1) or self._alike.get((run, configuration))
        works += [shaped] if shaped is not None else []
        reason = self._reasons.get(kernel_id) or self._reasons.get(kineto_kernel_id or -1) or "neither counters nor shapes"
        if is_doubtful:
            reason = "its launches take different times, and which of them ncu counted is unknown"
        found = Roof(None, reason=reason)
        for work in works:
            key = (work, device_id, family in CONTRACTIONS)
            if key not in self._roofs:
                self._roofs[key] = roof(work, self._peaks.get(device_id), family in CONTRACTIONS, self._why[device_id])
            found = self._roofs[key]
            if found.ns is not None:
                break
        return found

    def call_of(self, kernel_id: int, kineto_kernel_id: int | None) -> tuple[int, int] | None:
        """Return the operator's call that a launch is of, and how many launches it has; None where it is not known."""
        return self._call_of.get(kernel_id) or self._call_of.get(kineto_kernel_id or -1)

    def of_call(self, call: int, device_id: str | None) -> Roof:
        """Return the roof of a whole call of an operator, by its shapes."""
        work, is_contraction = self._calls[call]
        return roof(work, self._peaks.get(device_id), is_contraction, self._why[device_id])


def no_peaks(gpu: str | None, sheet: str | None = None, misfit: str | None = None) -> str:
    """Return why a GPU of this name (None: unknown) has no roof. misfit: why it cannot be that of the assumed datasheet."""
    if misfit is not None:
        return f"{sheet} not used: {misfit}; force_gpu=true takes it all the same"
    if gpu:
        return f"no datasheet peaks of {gpu}: assume_gpu with force_gpu=true takes those of another, by its name in gpu_peaks"
    return "the GPU is not named in the capture, so its peaks are unknown: assume_gpu gives its name in gpu_peaks"


def roof(work: Work, peak: Peak | None, is_contraction: bool, why: str = "its peaks are unknown") -> Roof:
    """Return the roof of some work on a device: the longest of its units' times at their peaks and of its bytes' time.

    why: the reason where there are no peaks.
    """
    if peak is None:
        return Roof(None, reason=why)
    if work.bytes is None:
        return Roof(None, reason="bytes are unknown")
    if peak.bytes is None:
        return Roof(None, reason="a slice of a GPU: the bandwidth that it has is unknown")
    times = [1e9 * flop / (peak.flop.get(key or "") or 0) if peak.flop.get(key or "") else None if flop else 0.0
             for key, flop in work.flop if flop is not None]
    if is_contraction and (not times or None in times or None in (flop for _, flop in work.flop)):
        return Roof(None, reason="operations, or the peak for their precision, are unknown")
    compute, memory = max((time for time in times if time is not None), default=0.0), 1e9 * work.bytes / peak.bytes
    return Roof(round(max(compute, memory)), "compute" if compute > memory else "memory", work.source)


def _peaks(rows: Sequence[dict[str, Any]]) -> dict[str | None, Peak]:
    """Return the peaks of each device: of a part of a GPU its share, of one with more SMs than the datasheet none."""
    found: dict[str | None, Peak] = {}
    for row in rows:
        whole, own = row["whole_sm_count"], row["sm_count"]
        if row["peak_key"] is None or (own and whole and own > whole):
            continue
        share = own / whole if own and whole else 1
        peak = found.setdefault(row["device_id"], Peak({}, row["dram_bytes_per_s"] if share == 1 else None))
        peak.flop[row["peak_key"]] = None if row["flop_per_s"] is None else row["flop_per_s"] * share
    return found


def _counted(table: pa.Table) -> dict[str | None, Work]:
    """Return per configuration of ncu what it counted."""
    rows: dict[str, list[dict[str, object]]] = defaultdict(list)
    for row in table.to_pylist():
        rows[row["configuration_id"]].append(row)
    return {place: Work(_units(many), _number(many[0]["traffic_bytes"]), "counters") for place, many in rows.items()}


def _units(rows: Sequence[dict[str, object]]) -> tuple[tuple[str | None, float | None], ...]:
    """Return the operations of each precision; those that were not counted stay unknown only where they are the main ones."""
    counted = [(row["peak_key"], row["work_flop"]) for row in rows if row["work_flop"] is not None]
    if any(row["precision"] == "tensor" for row in rows) or not counted:
        return ((None, None),)
    return tuple((None if key is None else str(key), _number(flop)) for key, flop in counted)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _by_launch(table: pa.Table) -> tuple[dict[int, Work], dict[int, str]]:
    """Return the work of each launch by its shapes, and for the others the reason why it is unknown."""
    works: dict[int, Work] = {}
    reasons: dict[int, str] = {}
    same: dict[Work, Work] = {}
    columns = (table[name].to_pylist() for name in ("kernel_id", "work_flop", "minimal_bytes", "peak_key", "reason"))
    for kernel_id, flop, size, key, reason in zip(*columns, strict=True):
        if size is None:
            reasons[kernel_id] = reason
        else:
            work = Work(((key, flop),), size, "shapes")
            works[kernel_id] = same.setdefault(work, work)
    return works, reasons


def _by_call(table: pa.Table) -> tuple[dict[int, tuple[Work, bool]], dict[int, tuple[int, int]]]:
    """Return the work of calls with several launches by their shapes, whether they are products, and the call of each launch."""
    calls: dict[int, tuple[Work, bool]] = {}
    call_of: dict[int, tuple[int, int]] = {}
    keys: dict[int, set[str]] = defaultdict(set)
    names = ("kernel_id", "op_range_id", "op", "call_flop", "call_bytes", "call_launches", "peak_key")
    for kernel_id, call, op, flop, size, launches, key in zip(*(table[name].to_pylist() for name in names), strict=True):
        if launches is None or launches == 1 or size is None:
            continue
        keys[call] |= {key} - {None}
        peak_key = next(iter(keys[call])) if len(keys[call]) == 1 else None
        calls[call] = Work(((peak_key, flop),), size, "shapes"), op in op_cost.CONTRACTIONS
        call_of[kernel_id] = call, launches
    return calls, call_of


def _by_configuration(launches: pa.Table, works: dict[int, Work]) -> dict[tuple[str, str], Work]:
    """Return the work of kernels and configurations by their shapes, where all Kineto launches of one agree."""
    found: dict[tuple[str, str], Work | None] = {}
    columns = (launches[name].to_pylist() for name in ("kernel_id", "run", "configuration"))
    for kernel_id, run, configuration in zip(*columns, strict=True):
        work = works.get(kernel_id)
        if found.setdefault((run, configuration), work) != work:
            found[run, configuration] = None
    return {key: work for key, work in found.items() if work is not None}
