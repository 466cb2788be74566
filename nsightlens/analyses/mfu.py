"""How much of a GPU's peak the model uses (MFU): the operations of its products, convolutions and attention in the judged window.

Operations come from the shapes of operators (shape_work): Kineto with record_shapes, nsys with emit_nvtx(record_shapes=True).
A call whose kernels share its work counts once. They are divided by the whole window of time_tree, idle time and
communication included, and by the datasheet's dense peak for the type of the operands: TF32 where FP32 products ran on tensor
cores. A row is a type of operands on a GPU; the mfu_pct of its rows add up. Other operators count as nothing, as usual.
@scope run
@topic roofline
@needs shapes
@requires _bounded_kernels, _collective_kernels, _datasheet, _datasheet_misfit, _gpu_peak, _gpu_work, _profile_executions
@requires _serving_names, api_calls, devices, gpu_peaks, kernels, memory_ops, timeline_kernels
@requires _process_groups, advice, diagnostics, synchronizations, _ncu_by_config, _tensor_core_counters, speed_of_light
@requires _device_links, collective_summary, cpu_samples, frames, sampled_frames
@requires mpi_calls, os_calls, overheads, page_faults, processes, profiles, range_projections, ranges
@assumes The GPU ran at its boost clock, as the datasheet's dense peaks assume.
@assumes What ran in the window and was recorded with shapes is the model: work without a known formula is missing (covered_pct).
@param  assume_gpu    Product name for the peaks, where the capture lacks it and its compute capability and SMs fit.
@param  force_gpu     Whether assume_gpu is taken for every GPU, unchecked.
@first rank, gpu, peak_key, mfu_pct, flop_per_step, achieved_flop_per_s, covered_pct
@note   mfu_pct is a lower bound where covered_pct is below 100: work of unknown shapes counts as none.
@column run                  Run (one workload in one configuration).
@column tool                 nsys or kineto. Never add them up: they saw the same work.
@column rank                 Rank of the process whose window it is; NULL where unknown.
@column profile_id           Profile; key of `profiles`.
@column process_id           OS process whose window it is.
@column window_index         Capture window of the process, from 0.
@column device_id            The physical GPU.
@column gpu                  Product name of the GPU; NULL where unknown.
@column peak_key             Peak that the operands' type has, in the words of roofline: tensor_bf16, fp32, ...; NULL if unknown.
@column mfu_pct              achieved_flop_per_s as a share of peak_flop_per_s; NULL where the peak is unknown.
@column flop_per_step        work_flop by the steady steps of the window; NULL where it has none.
@column achieved_flop_per_s  work_flop by the time of the window.
@column peak_flop_per_s      Dense peak by the datasheet; NULL where unknown.
@column work_flop            Operations in the window: a multiply-add is two.
@column calls                Calls of operators whose operations are known.
@column kernel_ns            Time of their kernels.
@column covered_pct          Of the time of all kernels that compute products, convolutions or attention, the share in all rows.
@column window_ns            Length of the window.
@column steps                Steady steps of the window; NULL without.
@column reason               Why the peak is unknown.
"""

from __future__ import annotations

import pyarrow as pa

from nsightlens.analyses import Ask, shape_work
from nsightlens.analyses._peaks import peaks
from nsightlens.analyses._run_judgements import judgements
from nsightlens.views.connection import connect

_KERNELS = f"""
SELECT kernel_id, profile_id, device_id, window_index, gpu, start_ns, duration_ns FROM kernels
WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns >= 0 AND family IN {tuple(shape_work.FAMILIES)}"""
_WINDOWS = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("rank", pa.int32()), ("profile_id", pa.string()), ("process_id", pa.string()),
    ("window_index", pa.int32()), ("device_id", pa.string()), ("begin_ns", pa.int64()), ("window_ns", pa.int64()),
    ("steps", pa.int64())])
_PEAKS = pa.schema([("device_id", pa.string()), ("peak_key", pa.string()), ("peak_flop_per_s", pa.float64())])
_WHY = pa.schema([("device_id", pa.string()), ("why", pa.string())])
_ROWS = """
WITH ran AS (
    SELECT w.*, k.gpu, k.duration_ns, s.op_range_id, s.precision, s.peak_key, s.work_flop, s.call_flop
    FROM windows AS w
    JOIN launched AS k ON w.profile_id = k.profile_id AND w.device_id = k.device_id AND w.window_index = k.window_index
        AND k.start_ns >= w.begin_ns AND k.start_ns < w.begin_ns + w.window_ns
    LEFT JOIN work AS s ON k.kernel_id = s.kernel_id
), calls AS (
    SELECT run, tool, rank, profile_id, process_id, window_index, device_id, window_ns, steps, any_value(gpu) AS gpu,
        max(peak_key) AS peak_key, sum(duration_ns) AS kernel_ns,
        CASE WHEN bool_or(precision IS NOT NULL AND work_flop IS NULL) THEN coalesce(max(call_flop), sum(work_flop))
            ELSE sum(work_flop) END AS work_flop
    FROM ran GROUP BY run, tool, rank, profile_id, process_id, window_index, device_id, window_ns, steps, op_range_id
), sums AS (
    SELECT * EXCLUDE (kernel_ns, work_flop), TRY_CAST(sum(work_flop) AS BIGINT) AS work_flop, count(work_flop) AS calls,
        CAST(sum(kernel_ns) FILTER (work_flop IS NOT NULL) AS BIGINT) AS kernel_ns, sum(kernel_ns) AS every_ns
    FROM calls GROUP BY ALL
), shares AS (
    SELECT *, 100.0 * sum(kernel_ns) OVER tree / sum(every_ns) OVER tree AS covered_pct FROM sums
    WINDOW tree AS (PARTITION BY run, tool, profile_id, window_index, device_id)
)
SELECT run, tool, rank, profile_id, process_id, window_index, device_id, gpu, peak_key,
    1e11 * work_flop / window_ns / peak_flop_per_s AS mfu_pct, CAST(work_flop // steps AS BIGINT) AS flop_per_step,
    1e9 * work_flop / window_ns AS achieved_flop_per_s, peak_flop_per_s, work_flop, calls, kernel_ns, covered_pct, window_ns,
    steps, CASE WHEN peak_flop_per_s IS NULL THEN CASE WHEN peak_key IS NULL THEN 'the type of the operands was not recorded'
        ELSE coalesce(why, 'the datasheet has no peak for this type') END END AS reason
FROM shares LEFT JOIN peaks USING (device_id, peak_key) LEFT JOIN reasons USING (device_id)
WHERE calls > 0
ORDER BY run, tool, rank NULLS LAST, profile_id, window_index, device_id, work_flop DESC, peak_key"""


def analyse(ask: Ask, *, assume_gpu: str | None = None, force_gpu: bool = False) -> pa.Table:
    """Return the utilization of each GPU by type of operands, the most operations first."""
    windows = [{
        "run": tree.run, "tool": tree.tool, "rank": tree.rank, "profile_id": tree.profile_id, "process_id": tree.process_id,
        "window_index": tree.window_index, "device_id": tree.device_id, "begin_ns": tree.window.start,
        "window_ns": tree.window.length, "steps": tree.window.steps or None} for found in judgements(ask) for tree in found.trees]
    known, why = peaks(ask, assume_gpu, force_gpu)
    of_devices = [{"device_id": device, "peak_key": key, "peak_flop_per_s": flop}
                  for device, peak in known.items() for key, flop in peak.flop.items()]
    reasons = [{"device_id": device, "why": text} for device, text in why.items() if device not in known]
    with connect() as connection:
        for name, table in (
            ("windows", pa.Table.from_pylist(windows, _WINDOWS)), ("launched", ask(_KERNELS, [])),
            ("work", shape_work.analyse(ask)), ("peaks", pa.Table.from_pylist(of_devices, _PEAKS)),
            ("reasons", pa.Table.from_pylist(reasons, _WHY)),
        ):
            connection.register(name, table)
        return connection.sql(_ROWS).to_arrow_table()
