-- How long each device (or process) was in each state, per capture window: which kinds of work were running, and
-- idle. The durations of a window sum to its span. A sweep over the starts and ends of all work: running sums of +1 and -1
-- hold, in 31 bits for each kind, how many pieces of that kind run after each edge: no profile has as many pieces.
-- busy_time, comm_compute_overlap, kernel_type_breakdown and temporal_breakdown have their rows from here.
-- @scope profile
-- @requires _gpu_work
-- @param  per                    'device' or 'process': what the intervals are united over.
-- @param  communication_pattern  Regex of the kernel names that communicate; NULL: family `collective`.
-- @column run            Run.
-- @column tool           nsys or kineto.
-- @column profile_id     Profile.
-- @column window_index   Capture window.
-- @column process_id     OS process; NULL where several share the device.
-- @column device_id      The physical GPU; NULL where the process used several.
-- @column compute        A kernel that does not communicate was running.
-- @column communication  A kernel or copy that communicates was running.
-- @column memory         Another memory operation was running.
-- @column graph          A CUDA graph whose kernels are unknown was running.
-- @column total_ns       Time in that state.
CREATE MACRO _gpu_states(per := 'device', communication_pattern := NULL) AS TABLE
WITH tracks AS MATERIALIZED (
    -- in a stated order: where DuckDB evaluates a CTE twice (1.2 does), the numbers must come out the same
    SELECT *, row_number() OVER (ORDER BY profile_id, window_index, owner)::INTEGER AS track
    FROM (
        SELECT
            profile_id, window_index, min(run) AS run, min(tool) AS tool,
            CASE per WHEN 'device' THEN device_id WHEN 'process' THEN process_id
                ELSE error('per is device or process') END AS owner,
            CASE WHEN min(process_id) = max(process_id) THEN min(process_id) END AS process_id,
            CASE WHEN min(device_id) = max(device_id) THEN min(device_id) END AS device_id
        FROM _gpu_work
        GROUP BY profile_id, window_index, owner
    )
), work AS NOT MATERIALIZED (
    SELECT t.track, w.start_ns, w.end_ns, CASE
            WHEN communication_pattern IS NULL AND w.family = 'collective' THEN 2
            WHEN w.kind = 'memory' THEN 3
            WHEN w.kind = 'graph' THEN 4
            WHEN regexp_matches(w.name, communication_pattern) THEN 2
            ELSE 1
        END::TINYINT AS kind
    FROM _gpu_work AS w
    JOIN tracks AS t
        ON w.profile_id IS NOT DISTINCT FROM t.profile_id
        AND w.window_index IS NOT DISTINCT FROM t.window_index
        AND CASE per WHEN 'device' THEN w.device_id ELSE w.process_id END IS NOT DISTINCT FROM t.owner
), edges AS NOT MATERIALIZED (
    SELECT track, unnest([start_ns, end_ns]) AS at_ns, unnest([kind, -kind]) AS change FROM work ORDER BY track, at_ns
), sweep AS NOT MATERIALIZED (
    -- over sorted rows, without partitions: DuckDB streams such a window, and at the end of a track all sums are 0 again;
    -- of the edges of one instant only the last has a length, and the sums after all of them
    SELECT track, CASE WHEN lead(track) OVER () = track THEN lead(at_ns) OVER () - at_ns ELSE 0 END AS length_ns,
        sum(CASE change WHEN 1 THEN 1 WHEN -1 THEN -1 WHEN 2 THEN 2147483648 WHEN -2 THEN -2147483648 ELSE 0 END)
            OVER (ROWS UNBOUNDED PRECEDING) AS kernels,
        sum(CASE change WHEN 3 THEN 1 WHEN -3 THEN -1 WHEN 4 THEN 2147483648 WHEN -4 THEN -2147483648 ELSE 0 END)
            OVER (ROWS UNBOUNDED PRECEDING) AS others
    FROM edges
), states AS (
    SELECT track, kernels & 2147483647 > 0 AS compute, kernels >= 2147483648 AS communication,
        others & 2147483647 > 0 AS memory, others >= 2147483648 AS graph, TRY_CAST(sum(length_ns) AS BIGINT) AS total_ns
    FROM sweep
    WHERE length_ns > 0
    GROUP BY ALL
)
SELECT run, tool, profile_id, window_index, process_id, device_id, coalesce(compute, false) AS compute,
    coalesce(communication, false) AS communication, coalesce(memory, false) AS memory, coalesce(graph, false) AS graph,
    coalesce(total_ns, 0) AS total_ns
FROM tracks LEFT JOIN states USING (track)
ORDER BY track, compute, communication, memory, graph;
