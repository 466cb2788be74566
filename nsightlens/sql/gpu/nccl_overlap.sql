-- How much of each kernel's time overlapped with other kernels of the same process and GPU: communication (NCCL) and
-- compute, as in `nsys recipe nccl_gpu_overlap_trace`, summed by kernel name. Exact to the ns: unions of intervals.
-- A kernel that communicates with communication_overlap_pct = 0 and compute_overlap_pct = 100 is fully hidden.
-- The recipe identifies NCCL kernels by NVTX ranges; here by family, or by a pattern of names: '^nccl'.
-- Kernels without a start or a duration above 0 are left out, as there. ncu has no timeline, so no rows.
-- @scope profile
-- @needs communication
-- @alias nccl_gpu_overlap_trace
-- @requires _overlap_by_name
-- @assumes A kernel's name says whether it communicates: by its family, `collective`, or by communication_pattern.
-- @assumes Kernels that a tool hid in CUDA graphs are unknown: they overlap with nothing.
-- @param  communication_pattern      Regex of the kernel names that communicate; NULL: family `collective`.
-- @column run                        Run (one workload in one configuration).
-- @column tool                       nsys or kineto. Never add them up: they saw the same launches.
-- @column rank                       Rank of the process; NULL where unknown.
-- @column profile_id                 Profile; key of `profiles`.
-- @column window_index               Capture window of the process, from 0.
-- @column process_id                 OS process.
-- @column device_id                  The physical GPU.
-- @column class                      communication or compute: what the kernel is.
-- @column instances                  Kernels.
-- @column total_ns                   Sum of their durations.
-- @column communication_overlap_ns   Time in which another kernel that communicates ran, summed over the kernels.
-- @column compute_overlap_ns         Time in which another kernel that computes ran, as above.
-- @column communication_overlap_pct  communication_overlap_ns as a share of total_ns, to one decimal.
-- @column compute_overlap_pct        compute_overlap_ns as a share of total_ns, to one decimal.
-- @column name                       Kernel name as the tool prints it.
-- @names kernel name
CREATE MACRO nccl_overlap(communication_pattern := NULL) AS TABLE
SELECT
    run, tool, rank, profile_id, window_index, process_id, device_id,
    CASE WHEN communicates THEN 'communication' ELSE 'compute' END AS class, lasting AS instances, total_ns,
    beside_communication AS communication_overlap_ns, beside_compute AS compute_overlap_ns,
    round(100.0 * beside_communication / total_ns, 1) AS communication_overlap_pct,
    round(100.0 * beside_compute / total_ns, 1) AS compute_overlap_pct,
    name
FROM _overlap_by_name(communication_pattern := communication_pattern)
WHERE lasting > 0
ORDER BY run, tool, rank, profile_id, window_index, process_id, device_id, class, total_ns DESC, name;
