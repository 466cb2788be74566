-- Idle, compute and non-compute time of each GPU (or process), per capture window: HTA's temporal breakdown, exact to the
-- ns. Compute is the union of the kernels that do not communicate; non-compute is what communication and memory operations
-- add to it where no kernel computes. ncu has no timeline, so no rows.
-- @scope profile
-- @alias get_temporal_breakdown
-- @needs gpu_work
-- @requires _gpu_states
-- @assumes All work in the window was recorded: work that the tool dropped, or that another report of the GPU holds, counts as idle.
-- @assumes A kernel's name says whether it communicates: by its family, `collective`, or by communication_pattern.
-- @param  per                    'device' or 'process': what the intervals are united over.
-- @param  communication_pattern  Regex of the kernel names that communicate; NULL: family `collective`. HTA takes '^nccl.*Kernel'.
-- @column run                    Run (one workload in one configuration).
-- @column tool                   nsys or kineto. Never add them up: they saw the same work.
-- @column rank                   Rank of the process; NULL where unknown or where processes share the device.
-- @column profile_id             Profile; key of `profiles`.
-- @column window_index           Capture window of the process, from 0.
-- @column process_id             OS process; NULL where several share the device.
-- @column device_id              The physical GPU; NULL where the process used several.
-- @column span_ns                First start to last end of kernels, memory operations and graph executions.
-- @column idle_ns                Nothing was running.
-- @column compute_ns             A kernel that computes was running.
-- @column non_compute_ns         Communication or memory operations were running, and no kernel that computes.
-- @column unknown_ns             Only CUDA graphs were running whose kernels the tool did not record.
-- @column idle_pct               idle_ns as a share of span_ns, to two decimals.
-- @column compute_pct            compute_ns as a share of span_ns, to two decimals.
-- @column non_compute_pct        non_compute_ns as a share of span_ns, to two decimals.
-- @balance span_ns = idle_ns + compute_ns + non_compute_ns + unknown_ns
CREATE MACRO temporal_breakdown(per := 'device', communication_pattern := NULL) AS TABLE
WITH parted AS (
    SELECT
        run, tool, profile_id, window_index, process_id, device_id,
        TRY_CAST(sum(total_ns) AS BIGINT) AS span_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (NOT (compute OR communication OR memory OR graph)), 0) AS BIGINT) AS idle_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (compute), 0) AS BIGINT) AS compute_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (NOT compute AND (communication OR memory)), 0) AS BIGINT) AS non_compute_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (graph AND NOT (compute OR communication OR memory)), 0) AS BIGINT) AS unknown_ns
    FROM _gpu_states(per := per, communication_pattern := communication_pattern)
    GROUP BY ALL
)
SELECT
    s.run, s.tool, p.rank, s.profile_id, s.window_index, s.process_id, s.device_id,
    span_ns, idle_ns, compute_ns, non_compute_ns, unknown_ns,
    round(100.0 * idle_ns / nullif(span_ns, 0), 2) AS idle_pct,
    round(100.0 * compute_ns / nullif(span_ns, 0), 2) AS compute_pct,
    round(100.0 * non_compute_ns / nullif(span_ns, 0), 2) AS non_compute_pct
FROM parted AS s
LEFT JOIN processes AS p ON s.process_id = p.process_id AND s.profile_id = p.profile_id
ORDER BY s.run, s.tool, p.rank, s.profile_id, s.window_index, s.process_id, s.device_id;
