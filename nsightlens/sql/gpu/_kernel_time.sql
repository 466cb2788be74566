-- Time of the kernels of each GPU of a process, by what says whether they ran on tensor cores: their key, their name's answer,
-- and whether their operator is known. Occupancy is weighted with the time within the steps (_steps). gpu_summary has its rows
-- from here, with ncu's counters of the run.
-- @scope profile
-- @requires _bounded_kernels, _steps
-- @column run           Run.
-- @column profile_id    Profile.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process.
-- @column device_id     The physical GPU.
-- @column kernel_key    Canonical name of the kernels.
-- @column tensor_cores  What the name says.
-- @column of_operator   Whether an operator is known that launched them.
-- @column device        The least of the tool's ordinals of the GPU.
-- @column gpu           Product name, the first by name.
-- @column kernels       Kernels.
-- @column total_ns      Sum of their durations.
-- @column occupied_ns   Their time within the steps, as far as their occupancy is known; NULL where it is of none.
-- @column occupancy_ns  That time weighted with the occupancy in percent.
CREATE VIEW _kernel_time AS
WITH bounds AS (
    SELECT profile_id, process_id, window_index, min(start_ns) AS first_ns, max(end_ns) AS last_ns
    FROM _steps GROUP BY profile_id, process_id, window_index
), cut AS (
    SELECT k.run, k.profile_id, k.process_id, k.window_index, k.device_id, k.kernel_key, k.tensor_cores,
        k.op_range_id IS NOT NULL AS of_operator, k.device, k.gpu, k.duration_ns, k.estimated_occupancy_pct AS occupancy,
        CASE WHEN k.estimated_occupancy_pct IS NOT NULL
            THEN greatest(least(k.start_ns + k.duration_ns, b.last_ns) - greatest(k.start_ns, b.first_ns), 0) END AS inside_ns
    FROM _bounded_kernels AS k JOIN bounds AS b ON b.profile_id = k.profile_id
        AND b.process_id IS NOT DISTINCT FROM k.process_id AND b.window_index IS NOT DISTINCT FROM k.window_index
    WHERE k.tool <> 'ncu' AND k.start_ns IS NOT NULL AND k.duration_ns >= 0
)
SELECT run, profile_id, process_id, window_index, device_id, kernel_key, tensor_cores, of_operator, min(device) AS device,
    min(gpu) AS gpu, count(*) AS kernels, TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
    TRY_CAST(sum(inside_ns) AS BIGINT) AS occupied_ns,
    fsum(occupancy * inside_ns) AS occupancy_ns
FROM cut
GROUP BY run, profile_id, process_id, window_index, device_id, kernel_key, tensor_cores, of_operator;
