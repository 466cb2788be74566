-- How much of each stretch of time a GPU works for a process, and how much the process spends in MPI: the figures of nsys's recipes
-- cuda_gpu_time_util_map and mpi_gpu_time_util_map. The time from the first to the last work of a process on a device is cut into
-- equal bins. Work that runs at once counts once, and so do MPI calls of several threads.
-- @scope profile
-- @needs gpu_work
-- @alias cuda_gpu_time_util_map
-- @alias mpi_gpu_time_util_map
-- @requires _gpu_work, mpi_calls, processes
-- @param  bins           Bins that the time of each process and device is cut into, from 1 to 1000.
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
CREATE MACRO gpu_use_over_time(bins := 240) AS TABLE
WITH span AS (
    SELECT *, (last_ns - first_ns + bins - 1) // CASE WHEN bins BETWEEN 1 AND 1000 THEN bins
        ELSE error('bins is from 1 to 1000') END AS bin_ns
    FROM (
        SELECT run, tool, profile_id, window_index, process_id, device_id, min(start_ns) AS first_ns, max(end_ns) AS last_ns
        FROM _gpu_work
        GROUP BY run, tool, profile_id, window_index, process_id, device_id
    )
    WHERE last_ns > first_ns
), busy AS ( -- what each piece of work adds to the union of those before it
    SELECT 'work' AS kind, profile_id, window_index, process_id, device_id, end_ns, greatest(start_ns, coalesce(max(end_ns) OVER (
        PARTITION BY profile_id, window_index, process_id, device_id ORDER BY start_ns, end_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns)) AS start_ns
    FROM _gpu_work
    UNION ALL
    SELECT 'mpi', s.profile_id, s.window_index, s.process_id, s.device_id, least(m.end_ns, s.last_ns), greatest(m.start_ns, s.first_ns)
    FROM (
        SELECT profile_id, process_id, start_ns + duration_ns AS end_ns, greatest(start_ns, coalesce(max(start_ns + duration_ns) OVER (
            PARTITION BY profile_id, process_id ORDER BY start_ns, start_ns + duration_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns)) AS start_ns
        FROM mpi_calls
        WHERE duration_ns IS NOT NULL
    ) AS m
    JOIN span AS s USING (profile_id, process_id)
), pieces AS ( -- of each bin
    SELECT b.kind, b.profile_id, b.window_index, b.process_id, b.device_id, b.start_ns, b.end_ns,
        unnest(range((b.start_ns - s.first_ns) // s.bin_ns, (b.end_ns - s.first_ns - 1) // s.bin_ns + 1)) AS bin
    FROM busy AS b
    JOIN span AS s USING (profile_id, window_index, process_id, device_id)
    WHERE b.end_ns > b.start_ns
), cut AS (
    SELECT *, first_ns + bin * bin_ns AS start_ns, least(first_ns + (bin + 1) * bin_ns, last_ns) AS end_ns
    FROM (SELECT *, unnest(range(bins)) AS bin FROM span)
    WHERE first_ns + bin * bin_ns < last_ns
), used AS (
    SELECT c.run, c.tool, c.profile_id, c.process_id, c.window_index, c.device_id, c.bin, c.start_ns, c.end_ns - c.start_ns AS duration_ns,
        TRY_CAST(coalesce(sum(least(p.end_ns, c.end_ns) - greatest(p.start_ns, c.start_ns)) FILTER (p.kind = 'work'), 0) AS BIGINT) AS work_ns,
        TRY_CAST(coalesce(sum(least(p.end_ns, c.end_ns) - greatest(p.start_ns, c.start_ns)) FILTER (p.kind = 'mpi'), 0) AS BIGINT) AS any_mpi_ns
    FROM cut AS c
    LEFT JOIN pieces AS p USING (profile_id, window_index, process_id, device_id, bin)
    GROUP BY ALL
), told AS (
    SELECT *, CASE WHEN profile_id IN (SELECT profile_id FROM mpi_calls) THEN any_mpi_ns END AS mpi_ns FROM used
)
SELECT u.run, u.tool, p.rank, u.profile_id, u.process_id, u.window_index, u.device_id, u.bin, u.start_ns, u.duration_ns, u.work_ns,
    round(100.0 * u.work_ns / u.duration_ns, 1) AS work_pct, u.mpi_ns, round(100.0 * u.mpi_ns / u.duration_ns, 1) AS mpi_pct
FROM told AS u
LEFT JOIN processes AS p ON u.profile_id = p.profile_id AND u.process_id = p.process_id
ORDER BY u.run, u.tool, p.rank, u.profile_id, u.process_id, u.window_index, u.device_id, u.bin;
