-- The GPU Summary of the TensorBoard plugin, per GPU of a process and capture window: what it is and how well it was used from
-- the first step's start to the last step's end, or without steps over the whole capture of the process. As in the plugin,
-- utilization counts kernels (also collectives) but not memory operations; busy_pct includes them. Estimated SM efficiency
-- sums the blocks per SM of concurrent kernels, at most 1, over all time, including idle time. Occupancy is the mean over
-- kernel time within the steps. Tensor cores have two shares: of all kernels, and of those with a known operator, as in the
-- plugin (whose table of names ends with Ampere). Figures that the tool did not record are NULL. busy_time
-- combines the processes of a GPU, and its span is from the first to the last work.
-- @scope run
-- @needs gpu_work
-- @requires _bounded_kernels, _gpu_load, _kernel_time, _tensor_core_counters, devices, graph_executions, processes
-- @assumes A step is a ProfilerStep of Kineto, or an NVTX range named like one (docs/attribution.md): one sequence per process.
-- @assumes Blocks per SM say how many SMs work: as recorded, else grid / SMs of the GPU; no counter measured it.
-- @assumes Occupancy is what Kineto estimates from the launch; nsys records none.
-- @assumes Tensor cores: by ncu's counters of the same kernel_key in the run, else by the kernel's name where the name shows it.
-- @first rank, utilization_pct, sm_efficiency_pct, tensor_core_pct, occupancy_pct, device
-- @column run                       Run (one workload in one configuration).
-- @column tool                      nsys or kineto. Never add them up: they saw the same work.
-- @column rank                      Rank of the process; NULL where unknown.
-- @column profile_id                Profile; key of `profiles`.
-- @column process_id                OS process.
-- @column window_index              Capture window of the process, from 0.
-- @column device_id                 The physical GPU; key of `devices`.
-- @column device                    The tool's ordinal of it.
-- @column gpu                       Product name.
-- @column memory_bytes              Device memory.
-- @column compute_capability        Such as '9.0'.
-- @column span_ns                   First step's start to last step's end; without steps the whole capture.
-- @column utilization_pct           Union of its kernels as a share of span_ns, to two decimals.
-- @column busy_pct                  Union of its kernels and memory operations, as above.
-- @column sm_efficiency_pct         Estimated SM efficiency, to two decimals; NULL where over 5 % of kernel time has no grid, as in graphs
--     that were recorded whole.
-- @column occupancy_pct             Estimated occupancy, to two decimals (Kineto).
-- @column tensor_core_pct           Share on tensor cores of the kernel time that is known to use them or not, to two decimals; NULL
--     where that is less than half of it.
-- @column tensor_core_unknown_pct   Share of kernel time for which that is unknown.
-- @column operator_tensor_core_pct  tensor_core_pct of the kernels whose operator is known.
CREATE VIEW gpu_summary AS
WITH used AS (
    SELECT profile_id, process_id, window_index, device_id, min(device) AS device, min(gpu) AS gpu,
        round(fsum(occupancy_ns) / nullif(sum(occupied_ns), 0), 2) AS occupancy_pct, sum(total_ns) AS all_ns,
        sum(total_ns) FILTER (tensor_used IS NOT NULL) AS known_ns, coalesce(sum(total_ns) FILTER (tensor_used), 0) AS tensor_ns,
        sum(total_ns) FILTER (of_operator) AS op_ns,
        sum(total_ns) FILTER (of_operator AND tensor_used IS NOT NULL) AS op_known_ns,
        coalesce(sum(total_ns) FILTER (of_operator AND tensor_used), 0) AS op_tensor_ns
    FROM (
        SELECT k.*, coalesce(c.tensor_cores, k.tensor_cores) AS tensor_used
        FROM _kernel_time AS k LEFT JOIN _tensor_core_counters AS c ON c.run = k.run AND c.kernel_key = k.kernel_key
    ) GROUP BY profile_id, process_id, window_index, device_id
), sized AS (
    SELECT profile_id, process_id, window_index, device_id, 100.0 * sum(duration_ns) FILTER (NOT known) / nullif(sum(duration_ns), 0) AS unknown_pct
    FROM (
        SELECT profile_id, process_id, window_index, device_id, duration_ns, grid_x IS NOT NULL OR blocks_per_sm IS NOT NULL AS known
        FROM _bounded_kernels WHERE tool <> 'ncu'
        UNION ALL SELECT profile_id, process_id, window_index, device_id, duration_ns, false FROM graph_executions
    ) GROUP BY profile_id, process_id, window_index, device_id
), gpus AS (
    SELECT profile_id, process_id, device_id, min(device) AS device, min(name) AS name, max(memory_bytes) AS memory_bytes,
        min(compute_capability) AS compute_capability
    FROM devices GROUP BY profile_id, process_id, device_id
)
SELECT l.run, l.tool, p.rank, l.profile_id, l.process_id, l.window_index, l.device_id, coalesce(u.device, g.device) AS device,
    coalesce(u.gpu, g.name) AS gpu, g.memory_bytes, g.compute_capability, l.span_ns,
    round(100.0 * l.kernel_ns / nullif(l.span_ns, 0), 2) AS utilization_pct,
    round(100.0 * l.busy_ns / nullif(l.span_ns, 0), 2) AS busy_pct,
    -- of kernels without a grid nothing is known: shares of next to nothing are none
    CASE WHEN coalesce(s.unknown_pct, 0) <= 5 THEN round(100.0 * l.sm_ns / nullif(l.span_ns, 0), 2) END AS sm_efficiency_pct, u.occupancy_pct,
    CASE WHEN 2 * known_ns >= all_ns THEN round(100.0 * tensor_ns / nullif(known_ns, 0), 2) END AS tensor_core_pct,
    round(100.0 * (all_ns - coalesce(known_ns, 0)) / nullif(all_ns, 0), 2) AS tensor_core_unknown_pct,
    CASE WHEN 2 * op_known_ns >= op_ns THEN round(100.0 * op_tensor_ns / nullif(op_known_ns, 0), 2) END AS operator_tensor_core_pct
FROM _gpu_load AS l
LEFT JOIN used AS u ON u.profile_id = l.profile_id AND u.process_id IS NOT DISTINCT FROM l.process_id
    AND u.window_index IS NOT DISTINCT FROM l.window_index AND u.device_id IS NOT DISTINCT FROM l.device_id
LEFT JOIN sized AS s ON s.profile_id = l.profile_id AND s.process_id IS NOT DISTINCT FROM l.process_id
    AND s.window_index IS NOT DISTINCT FROM l.window_index AND s.device_id IS NOT DISTINCT FROM l.device_id
LEFT JOIN gpus AS g ON g.profile_id = l.profile_id AND g.process_id = l.process_id AND g.device_id = l.device_id
LEFT JOIN processes AS p ON p.process_id = l.process_id AND p.profile_id = l.profile_id
ORDER BY l.run, l.tool, p.rank, l.profile_id, l.process_id, l.window_index, l.device_id;
