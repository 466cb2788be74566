-- How long a step takes, as the workload measured it itself (rank0003.steps.json), without a profiler and under each.
-- A row is a segment of steps (warmup, measure) of one process. Under a profiler it shows the profiling overhead.
-- @scope run
-- @needs step_times
-- @assumes The workload waited for the device at both ends of a segment, as ours do: only step_ns is then the device's time too.
-- @assumes The workload's clock ran evenly: adjustments of the system clock during a segment are in its length.
-- @column run             Run (one workload in one configuration).
-- @column profiler        Profiler that the execution ran under: none, nsys, ncu or kineto.
-- @column rank            Rank of the process; NULL where unknown.
-- @column process_id      OS process; key of `processes`.
-- @column workload        What the workload calls itself.
-- @column segment_number  Position of the segment in its file, from 0.
-- @column segment_name    The workload's name for the segment.
-- @column steps           Steps in it.
-- @column step_ns         Length of the segment over its steps, to one decimal: the true time of a step. Under torch.profiler it
--                         holds what the profiler does between steps (writing its trace), too.
-- @column median_ns       Median time in which the host issued a step: the mean of the middle two for an even number.
-- @column p5_ns           5th percentile of that, interpolated linearly between the two nearest steps, to one decimal.
-- @column p95_ns          95th percentile, interpolated the same way.
-- @column min_ns          Shortest.
-- @column max_ns          Longest.
CREATE VIEW step_time_summary AS
WITH segment AS (
    SELECT
        run, profiler, rank, process_id, workload, segment_number, segment_name,
        count(*) AS steps,
        max(segment_duration_ns) AS window_ns,
        quantile_cont(duration_ns, [0.05, 0.5, 0.95]) AS quantiles,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns
    FROM step_times
    GROUP BY run, profiler, rank, process_id, workload, segment_number, segment_name
)
SELECT
    run, profiler, rank, process_id, workload, segment_number, segment_name, steps,
    round(window_ns / steps, 1) AS step_ns,
    quantiles[2] AS median_ns,
    round(quantiles[1], 1) AS p5_ns,
    round(quantiles[3], 1) AS p95_ns,
    min_ns, max_ns
FROM segment
ORDER BY run, profiler <> 'none', profiler, rank, process_id, segment_number;
