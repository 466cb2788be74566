-- How long each device (or process) was in each state, per capture window: which kinds of work were running, and
-- idle. The durations of a window sum to its span. A sweep over the starts and ends of all work: a running sum of
-- +1 and -1 holds, in 31 bits for each kind, how many pieces of that kind run after each edge.
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
-- @column communication  A kernel that communicates was running.
-- @column memory         A memory operation was running.
-- @column graph          A CUDA graph whose kernels are unknown was running.
-- @column total_ns       Time in that state.
CREATE MACRO _gpu_states(per := 'device', communication_pattern := NULL) AS TABLE
WITH tracks AS MATERIALIZED (
    -- in a stated order: where DuckDB evaluates a CTE twice (1.2 does), the numbers must come out the same
    SELECT *, row_number() OVER (ORDER BY profile_id, window_index, owner) AS track
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
), work AS MATERIALIZED (
    SELECT
        t.track, w.start_ns, w.end_ns,
        CASE
            WHEN w.end_ns = w.start_ns THEN 0::HUGEINT  -- widens the span and nothing else
            WHEN w.kind = 'memory' THEN 1::HUGEINT << 62
            WHEN w.kind = 'graph' THEN 1::HUGEINT << 93
            WHEN CASE WHEN communication_pattern IS NULL THEN w.family = 'collective'
                ELSE regexp_matches(w.name, communication_pattern) END THEN 1::HUGEINT << 31
            ELSE 1::HUGEINT
        END AS weight
    FROM _gpu_work AS w
    JOIN tracks AS t
        ON w.profile_id IS NOT DISTINCT FROM t.profile_id
        AND w.window_index IS NOT DISTINCT FROM t.window_index
        AND CASE per WHEN 'device' THEN w.device_id ELSE w.process_id END IS NOT DISTINCT FROM t.owner
), sweep AS (
    -- RANGE: all edges of one instant see the same sum, whichever of them holds the length up to the next
    SELECT track, sum(weight) OVER edges AS running, lead(at_ns) OVER edges - at_ns AS length_ns
    FROM (SELECT track, start_ns AS at_ns, weight FROM work UNION ALL SELECT track, end_ns, -weight FROM work)
    WINDOW edges AS (PARTITION BY track ORDER BY at_ns RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
), states AS (
    SELECT
        track,
        running & (2147483647::HUGEINT) <> 0 AS compute,
        running & (2147483647::HUGEINT << 31) <> 0 AS communication,
        running & (2147483647::HUGEINT << 62) <> 0 AS memory,
        running >= (1::HUGEINT << 93) AS graph,
        TRY_CAST(sum(length_ns) AS BIGINT) AS total_ns
    FROM sweep
    WHERE length_ns IS NOT NULL
    GROUP BY ALL
)
SELECT run, tool, profile_id, window_index, process_id, device_id, compute, communication, memory, graph, total_ns
FROM states JOIN tracks USING (track)
ORDER BY track, compute, communication, memory, graph;
