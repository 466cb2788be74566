-- Periods in which a GPU works less than a limit, idlest first: the rule `nsys analyze -r gpu_time_util`. The time from the first
-- to the last work of a process on a device is cut into equal chunks; neighbours below the limit are one row. Work that runs at
-- once is added up, as nsys does, so that a chunk may be above 100 %; busy_time has the union.
-- @scope profile
-- @needs gpu_work
-- @requires _gpu_work, processes
-- @param  chunks     Chunks that the time of each process and device is cut into, from 1 to 1000.
-- @param  below_pct  Chunks that work less than this, in %, are listed.
-- @assumes All work of the window was recorded; a CUDA graph of unknown kernels works from its start to its end.
-- @assumes A kernel that outlasts its stream's next one ends where that begins. The profiler's own time does not count as work;
--     nsys counts it.
-- @column run             Run (one workload in one configuration).
-- @column tool            nsys or kineto. Never add them up: they saw the same work.
-- @column rank            Rank of the process; NULL where unknown.
-- @column profile_id      Profile; starts are comparable only within one.
-- @column process_id      OS process.
-- @column window_index    Capture window of the process.
-- @column device_id       The physical GPU.
-- @column start_ns        Start of the stretch, relative to the profile's origin.
-- @column duration_ns     Length of the stretch.
-- @column in_use_pct      Time of the work in it over its length, to one decimal.
CREATE MACRO gpu_time_util(chunks := 30, below_pct := 50.0) AS TABLE
WITH whole AS (
    SELECT run, tool, profile_id, window_index, process_id, device_id, min(start_ns) AS first_ns, max(end_ns) AS last_ns
    FROM _gpu_work
    GROUP BY run, tool, profile_id, window_index, process_id, device_id
), span AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY run, tool, profile_id, window_index, process_id, device_id)::INTEGER AS track,
        (last_ns - first_ns + chunks - 1) // CASE WHEN chunks BETWEEN 1 AND 1000 THEN chunks
        ELSE error('chunks is from 1 to 1000') END AS chunk_ns
    FROM whole
    WHERE last_ns > first_ns
), chunk AS (
    SELECT *, first_ns + number * chunk_ns AS start_ns, least(first_ns + (number + 1) * chunk_ns, last_ns) AS end_ns
    FROM (SELECT *, unnest(range(chunks)) AS number FROM span)
    WHERE first_ns + number * chunk_ns < last_ns
), touched AS ( -- the chunks that work is in
    SELECT s.track, s.first_ns, s.last_ns, s.chunk_ns, w.start_ns, w.end_ns,
        unnest(range((w.start_ns - s.first_ns) // s.chunk_ns, (w.end_ns - s.first_ns - 1) // s.chunk_ns + 1)) AS number
    FROM _gpu_work AS w
    JOIN span AS s USING (profile_id, window_index, process_id, device_id)
    WHERE w.end_ns > w.start_ns
), worked AS (
    SELECT track, number, sum(least(end_ns, first_ns + (number + 1) * chunk_ns, last_ns)
        - greatest(start_ns, first_ns + number * chunk_ns)) AS work_ns
    FROM touched GROUP BY track, number
), used AS (
    SELECT c.run, c.tool, c.profile_id, c.window_index, c.process_id, c.device_id, c.number, c.start_ns, c.end_ns,
        coalesce(w.work_ns, 0) AS work_ns
    FROM chunk AS c
    LEFT JOIN worked AS w USING (track, number)
), low AS (
    SELECT *, number - row_number() OVER (PARTITION BY profile_id, window_index, process_id, device_id ORDER BY number) AS stretch
    FROM used
    WHERE 100.0 * work_ns / (end_ns - start_ns) < below_pct
)
SELECT l.run, l.tool, p.rank, l.profile_id, l.process_id, l.window_index, l.device_id, min(l.start_ns) AS start_ns,
    max(l.end_ns) - min(l.start_ns) AS duration_ns,
    round(100.0 * sum(l.work_ns) / sum(l.end_ns - l.start_ns), 1) AS in_use_pct
FROM low AS l
LEFT JOIN processes AS p ON l.profile_id = p.profile_id AND l.process_id = p.process_id
GROUP BY l.run, l.tool, p.rank, l.profile_id, l.process_id, l.window_index, l.device_id, l.stretch
ORDER BY l.run, l.tool, in_use_pct, duration_ns, l.profile_id, l.process_id, l.window_index, l.device_id, start_ns;
