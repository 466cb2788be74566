-- How much of each stretch of time a GPU works for a process, and how much the process spends in MPI: the figures of nsys's
-- recipes
-- cuda_gpu_time_util_map and mpi_gpu_time_util_map. The time from the first to the last work of a process on a device is cut into
-- equal bins. Work that runs at once counts once, and so do MPI calls of several threads.
-- @scope profile
-- @needs gpu_work
-- @alias cuda_gpu_time_util_map
-- @alias mpi_gpu_time_util_map
-- @requires _gpu_bins, mpi_calls, processes
-- @param  bins           Bins that the time of each process and device is cut into, from 1 to 1000.
-- @assumes An MPI call without a recorded end counts no time: a process that hangs in one shows none.
-- @assumes All work of the window was recorded; a CUDA graph of unknown kernels works from its start to its end.
-- @assumes No public capture with MPI tables was found: synthetic files test mpi_ns and mpi_pct.
-- @column run            Run (one workload in one configuration).
-- @column tool           nsys or kineto. Never add them up: they saw the same work.
-- @column rank           Rank of the process; NULL where unknown.
-- @column profile_id     Profile; starts are comparable only within one.
-- @column process_id     OS process.
-- @column window_index   Capture window of the process.
-- @column device_id      The physical GPU.
-- @column bin            Number of the bin, from 0.
-- @column start_ns       Start of the bin, relative to the profile's origin.
-- @column duration_ns    Length of the bin; the last may be shorter.
-- @column work_ns        Union of the work in it.
-- @column work_pct       work_ns as a share of duration_ns, to one decimal.
-- @column mpi_ns         Union of the MPI calls of the process in it; NULL where the profile has none.
-- @column mpi_pct        mpi_ns as a share of duration_ns, to one decimal.
-- @first bin, work_pct, mpi_pct, start_ns, mpi_ns, work_ns
CREATE MACRO gpu_use_over_time(bins := 40) AS TABLE
WITH cut AS MATERIALIZED (
    FROM _gpu_bins(bins := bins)
), spans AS (
    SELECT profile_id, process_id, min(start_ns) AS first_ns, max(start_ns + duration_ns) AS last_ns FROM cut GROUP BY ALL
), calls AS ( -- what each call adds to the union of those before it, within the time of any GPU of its process
    SELECT m.profile_id, m.process_id, least(m.end_ns, s.last_ns) AS end_ns, greatest(m.start_ns, s.first_ns) AS start_ns
    FROM (
        SELECT profile_id, process_id, start_ns + duration_ns AS end_ns, greatest(start_ns, coalesce(max(start_ns + duration_ns) OVER (
            PARTITION BY profile_id, process_id ORDER BY start_ns, start_ns + duration_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns)) AS start_ns
        FROM mpi_calls
        WHERE duration_ns IS NOT NULL AND start_ns IS NOT NULL
    ) AS m
    JOIN spans AS s ON s.profile_id = m.profile_id AND s.process_id IS NOT DISTINCT FROM m.process_id
), in_mpi AS (
    SELECT c.profile_id, c.process_id, c.window_index, c.device_id, c.bin,
        sum(least(m.end_ns, c.start_ns + c.duration_ns) - greatest(m.start_ns, c.start_ns)) AS mpi_ns
    FROM cut AS c
    JOIN calls AS m ON m.profile_id = c.profile_id AND m.process_id IS NOT DISTINCT FROM c.process_id
        AND m.start_ns < c.start_ns + c.duration_ns AND m.end_ns > c.start_ns
    WHERE m.end_ns > m.start_ns
    GROUP BY ALL
), used AS (
    SELECT c.*, CASE WHEN c.profile_id IN (SELECT profile_id FROM mpi_calls)
        THEN TRY_CAST(coalesce(m.mpi_ns, 0) AS BIGINT) END AS mpi_ns
    FROM cut AS c
    LEFT JOIN in_mpi AS m ON m.profile_id = c.profile_id AND m.process_id IS NOT DISTINCT FROM c.process_id
        AND m.window_index IS NOT DISTINCT FROM c.window_index AND m.device_id IS NOT DISTINCT FROM c.device_id AND m.bin = c.bin
)
SELECT u.run, u.tool, p.rank, u.profile_id, u.process_id, u.window_index, u.device_id, u.bin, u.start_ns, u.duration_ns, u.work_ns,
    round(100.0 * u.work_ns / u.duration_ns, 1) AS work_pct, u.mpi_ns, round(100.0 * u.mpi_ns / u.duration_ns, 1) AS mpi_pct
FROM used AS u
LEFT JOIN processes AS p ON u.profile_id = p.profile_id AND u.process_id = p.process_id
ORDER BY u.run, u.tool, p.rank, u.profile_id, u.process_id, u.window_index, u.device_id, u.bin;
