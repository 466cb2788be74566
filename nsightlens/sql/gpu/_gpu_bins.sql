-- How long each GPU works for a process in each of equal bins of its time. gpu_use_over_time has its rows from here. Work that
-- runs at once counts once. The time of a process on a device goes from the start of its first work to the end of its last.
-- @scope profile
-- @requires _gpu_work
-- @param  bins           Bins that the time of each process and device is cut into, from 1 to 1000.
-- @column run            Run.
-- @column tool           nsys or kineto.
-- @column profile_id     Profile.
-- @column process_id     OS process.
-- @column window_index   Capture window of the process.
-- @column device_id      The physical GPU.
-- @column bin            Number of the bin, from 0.
-- @column start_ns       Start of the bin, relative to the profile's origin.
-- @column duration_ns    Length of the bin; the last may be shorter.
-- @column work_ns        Union of the work in it.
CREATE MACRO _gpu_bins(bins := 40) AS TABLE
WITH tracks AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY profile_id, process_id, window_index, device_id)::INTEGER AS track,
        (last_ns - first_ns + coalesce(bins, 0) - 1) // CASE WHEN coalesce(bins, 0) BETWEEN 1 AND 1000 THEN coalesce(bins, 0)
            ELSE error('bins is from 1 to 1000') END AS bin_ns
    FROM (
        SELECT run, tool, profile_id, process_id, window_index, device_id, min(start_ns) AS first_ns, max(end_ns) AS last_ns
        FROM _gpu_work
        GROUP BY run, tool, profile_id, process_id, window_index, device_id
    )
    WHERE last_ns > first_ns
), work AS NOT MATERIALIZED (
    SELECT t.track, w.start_ns, w.end_ns
    FROM _gpu_work AS w
    JOIN tracks AS t ON t.profile_id = w.profile_id AND t.process_id IS NOT DISTINCT FROM w.process_id
        AND t.window_index IS NOT DISTINCT FROM w.window_index AND t.device_id IS NOT DISTINCT FROM w.device_id
    ORDER BY track, start_ns, end_ns
), busy AS NOT MATERIALIZED ( -- what each piece of work adds to the union of those before it
    SELECT track, end_ns, greatest(start_ns, coalesce(max(end_ns) OVER (
        PARTITION BY track ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns)) AS start_ns
    FROM work
), pieces AS NOT MATERIALIZED ( -- in each bin
    SELECT b.track, p.bin, sum(least(b.end_ns, t.first_ns + (p.bin + 1) * t.bin_ns)
        - greatest(b.start_ns, t.first_ns + p.bin * t.bin_ns)) AS work_ns
    FROM busy AS b
    JOIN tracks AS t USING (track),
        LATERAL (SELECT unnest(range((b.start_ns - t.first_ns) // t.bin_ns, (b.end_ns - t.first_ns - 1) // t.bin_ns + 1)) AS bin) AS p
    WHERE b.end_ns > b.start_ns
    GROUP BY b.track, p.bin
), cut AS (
    SELECT *, first_ns + bin * bin_ns AS start_ns, least(first_ns + (bin + 1) * bin_ns, last_ns) AS end_ns
    FROM (SELECT *, unnest(range(coalesce(bins, 0))) AS bin FROM tracks)
    WHERE first_ns + bin * bin_ns < last_ns
)
SELECT c.run, c.tool, c.profile_id, c.process_id, c.window_index, c.device_id, c.bin, c.start_ns, c.end_ns - c.start_ns AS duration_ns,
    TRY_CAST(coalesce(p.work_ns, 0) AS BIGINT) AS work_ns
FROM cut AS c
LEFT JOIN pieces AS p ON p.track = c.track AND p.bin = c.bin;
