-- Step time of the executions under a profiler against those under none, per segment of steps with the same name, over all ranks.
-- @scope run
-- @requires step_times
-- @column run           Run.
-- @column profiler      Profiler: nsys, ncu or kineto.
-- @column segment_name  The workload's name for the segment, such as measure.
-- @column steps         Steps under the profiler.
-- @column tool_ns       Mean length of a step under it: the segment over its steps.
-- @column plain_ns      The same under no profiler.
-- @column host_ratio    Median time in which the host issued a step, under the profiler over under none.
CREATE VIEW _step_time_pairs AS
WITH segments AS (
    SELECT run, profiler, segment_name, CAST(sum(steps) AS BIGINT) AS steps, sum(window_ns) / sum(steps) AS mean_ns
    FROM (
        SELECT run, profiler, segment_name, process_id, segment_number, count(*) AS steps, max(segment_duration_ns) AS window_ns
        FROM step_times
        GROUP BY ALL
    )
    GROUP BY ALL
), measured AS (
    SELECT s.*, h.middle_ns
    FROM segments AS s
    JOIN (
        SELECT run, profiler, segment_name, median(duration_ns) AS middle_ns FROM step_times GROUP BY ALL
    ) AS h ON h.run = s.run AND h.profiler = s.profiler AND h.segment_name IS NOT DISTINCT FROM s.segment_name
)
SELECT s.run, s.profiler, s.segment_name, s.steps, s.mean_ns AS tool_ns, n.mean_ns AS plain_ns,
    s.middle_ns / nullif(n.middle_ns, 0) AS host_ratio
FROM measured AS s
JOIN measured AS n ON n.run = s.run AND n.segment_name IS NOT DISTINCT FROM s.segment_name AND n.profiler = 'none'
WHERE s.profiler <> 'none';
