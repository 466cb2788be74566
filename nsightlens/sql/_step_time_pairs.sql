-- Step time of the executions under a profiler against those under none, per stretch of steps with the same name, over all ranks.
-- @requires step_times
-- @column run             Run.
-- @column recorded_under  Profiler: nsys, ncu or kineto.
-- @column window_name     The workload's name for the stretch, such as measure.
-- @column steps           Steps under the profiler.
-- @column tool_ns         Mean length of a step under it: the stretch over its steps.
-- @column plain_ns        The same under no profiler.
-- @column host_ratio      Median time in which the host issued a step, under the profiler over under none.
CREATE VIEW _step_time_pairs AS
WITH stretches AS (
    SELECT run, recorded_under, window_name, CAST(sum(steps) AS BIGINT) AS steps, sum(window_ns) / sum(steps) AS mean_ns
    FROM (
        SELECT run, recorded_under, window_name, process_id, window_number, count(*) AS steps, max(window_duration_ns) AS window_ns
        FROM step_times
        GROUP BY ALL
    )
    GROUP BY ALL
), measured AS (
    SELECT s.*, h.middle_ns
    FROM stretches AS s
    JOIN (
        SELECT run, recorded_under, window_name, median(duration_ns) AS middle_ns FROM step_times GROUP BY ALL
    ) AS h ON h.run = s.run AND h.recorded_under = s.recorded_under AND h.window_name IS NOT DISTINCT FROM s.window_name
)
SELECT s.run, s.recorded_under, s.window_name, s.steps, s.mean_ns AS tool_ns, n.mean_ns AS plain_ns,
    s.middle_ns / nullif(n.middle_ns, 0) AS host_ratio
FROM measured AS s
JOIN measured AS n ON n.run = s.run AND n.window_name IS NOT DISTINCT FROM s.window_name AND n.recorded_under = 'none'
WHERE s.recorded_under <> 'none';
