-- One row per launch that ncu measured, with the configuration it belongs to; ncu --print-summary gives one row per report.
-- @scope rows
-- @column configuration_id    Hash of everything that distinguishes configurations.
-- @column kernel_id           The launch; key of `kernels`; NULL for summaries.
-- @column run                 Run.
-- @column rank                Rank of the process; NULL where unknown.
-- @column gpu                 Product name of the GPU; NULL where the report lacks it.
-- @column compute_capability  Compute capability, such as '9.0'.
-- @column sm_count            Streaming multiprocessors, where known.
-- @column name                Kernel name as ncu prints it.
-- @column short_name          Base name of the kernel; NULL for summaries.
-- @column kernel_key          Canonical name.
-- @column family              Family of the kernel; NULL for summaries.
-- @column tensor_cores        Whether it runs on tensor cores, by its name; NULL where the name does not show it.
-- @column grid_x              Grid size, x.
-- @column grid_y              Grid size, y.
-- @column grid_z              Grid size, z.
-- @column block_x             Block size, x.
-- @column block_y             Block size, y.
-- @column block_z             Block size, z.
-- @column clock_control       ncu --clock-control, where known.
-- @column cache_control       ncu --cache-control, where known.
-- @column summarised          Whether the row is an average that ncu --print-summary printed.
-- @column launches            Launches the row stands for.
-- @column duration_ns         Duration; NULL for summaries.
-- @column simulated           Whether the capture is marked as simulated.
-- @column metrics             Counters (averages for summaries).
-- @column minimum             Counters, least over the launches.
-- @column maximum             Counters, greatest over the launches.
CREATE VIEW _ncu_launch AS
WITH gpus AS (
    SELECT profile_id, process_id, device, max(name) AS gpu, max(compute_capability) AS compute_capability,
        max(sm_count) AS sm_count
    FROM devices WHERE tool = 'ncu' GROUP BY profile_id, process_id, device
), summary_metrics AS (
    SELECT profile_id, process_id, device, run, rank, name, kernel_key, tensor_cores,
        grid_x, grid_y, grid_z, block_x, block_y, block_z,
        metric, max(invocations) AS launches, median(average) AS value, min(minimum) AS minimum, max(maximum) AS maximum
    FROM metric_summaries GROUP BY ALL
), summaries AS (
    SELECT profile_id, process_id, device, run, rank, name, kernel_key, tensor_cores,
        grid_x, grid_y, grid_z, block_x, block_y, block_z, max(launches) AS launches,
        map(list(metric ORDER BY metric), list(value ORDER BY metric)) AS metrics,
        map(list(metric ORDER BY metric), list(minimum ORDER BY metric)) AS minimum,
        map(list(metric ORDER BY metric), list(maximum ORDER BY metric)) AS maximum
    FROM summary_metrics WHERE metric IS NOT NULL GROUP BY ALL
), rows_of_both AS (
    SELECT kernel_id, run, rank, profile_id, process_id, device, gpu AS gpu_of_kernel, name, short_name, kernel_key, family,
        tensor_cores, grid_x, grid_y, grid_z, block_x, block_y, block_z, clock_control, cache_control,
        false AS summarised, 1 AS launches, duration_ns, metrics, metrics AS minimum, metrics AS maximum
    FROM kernels WHERE tool = 'ncu' AND replay_mode IS DISTINCT FROM 'range'  -- a result of several launches is none
    UNION ALL BY NAME
    SELECT *, true AS summarised FROM summaries
)
SELECT lower(to_hex(hash(r.run, r.rank, coalesce(r.kernel_key, r.name), r.grid_x, r.grid_y, r.grid_z,
        r.block_x, r.block_y, r.block_z, r.clock_control, r.cache_control, coalesce(r.gpu_of_kernel, g.gpu), g.compute_capability, r.summarised))
    ) AS configuration_id,
    r.kernel_id, r.run, r.rank, coalesce(r.gpu_of_kernel, g.gpu) AS gpu, g.compute_capability, g.sm_count, r.name, r.short_name,
    coalesce(r.kernel_key, r.name) AS kernel_key, r.family, r.tensor_cores,
    r.grid_x, r.grid_y, r.grid_z, r.block_x, r.block_y, r.block_z,
    r.clock_control, r.cache_control, r.summarised, r.launches, r.duration_ns, coalesce(p.simulated, false) AS simulated,
    r.metrics, r.minimum, r.maximum
FROM rows_of_both AS r
LEFT JOIN gpus AS g USING (profile_id, process_id, device)
LEFT JOIN (SELECT profile_id, max(simulated) AS simulated FROM profiles GROUP BY profile_id) AS p USING (profile_id);
