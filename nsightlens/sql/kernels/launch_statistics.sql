-- The cost of launches, per process: three rows, for the duration of the launch calls, that of the work they launched, and the
-- delay from the end of the call to the start of the work (0 if it began earlier). HTA's launch statistics: calls longer than
-- the cutoff, work shorter than its own call, long delays. A graph launch is one launch. Calls that launched nothing that was
-- recorded are left out. ncu has no timeline, so no rows.
-- @scope profile
-- @alias get_cuda_kernel_launch_stats
-- @needs gpu_work
-- @requires _gpu_work, _stream_work, processes
-- @assumes The launching call is the one with the same correlation id in the process, and the tool put host and GPU on one clock.
-- @assumes The tool's overhead is part of every figure: without a profiler, calls are shorter.
-- @param  long_call_ns   A call longer than this, in ns, is an outlier.
-- @param  long_delay_ns  A delay longer than this, in ns, is an outlier.
-- @first  quantity, median_ns, p25_ns, p75_ns, launches, max_ns, rank
-- @column run            Run (one workload in one configuration).
-- @column tool           nsys or kineto. Never add them up: they saw the same launches.
-- @column rank           Rank of the process; NULL where unknown.
-- @column profile_id     Profile; key of `profiles`.
-- @column process_id     OS process.
-- @column quantity       call_duration, gpu_duration or launch_delay.
-- @column launches       Launch calls.
-- @column avg_ns         Mean, to one decimal.
-- @column stddev_ns      Sample standard deviation; NULL for a single launch.
-- @column min_ns         Minimum.
-- @column p25_ns         First quartile.
-- @column median_ns      Median.
-- @column p75_ns         Third quartile.
-- @column max_ns         Maximum.
-- @column outliers       Long calls; work shorter than its call; long delays.
-- @column outliers_pct   outliers as a share of launches, to one decimal.
CREATE MACRO launch_statistics(long_call_ns := 50000, long_delay_ns := 100000) AS TABLE
WITH callers AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY run, tool, profile_id, process_id) AS caller
    FROM (SELECT DISTINCT run, tool, profile_id, process_id FROM _gpu_work)
), launches AS NOT MATERIALIZED (
    -- a graph launch owns many kernels: it is one launch, as is a copy
    SELECT c.caller, w.launch_id, max(w.call_end_ns) - max(w.call_start_ns) AS call_ns,
        TRY_CAST(sum(w.end_ns - w.start_ns) AS BIGINT) AS gpu_ns, greatest(min(w.start_ns) - max(w.call_end_ns), 0) AS delay_ns
    FROM _stream_work AS w
    JOIN callers AS c ON c.run = w.run AND c.tool = w.tool AND c.profile_id = w.profile_id
        AND c.process_id IS NOT DISTINCT FROM w.process_id
    WHERE w.call_end_ns IS NOT NULL
    GROUP BY c.caller, w.launch_id
), quantities AS NOT MATERIALIZED (
    SELECT caller, unnest([1, 2, 3]) AS place, unnest([call_ns, gpu_ns, delay_ns]) AS value_ns,
        unnest([call_ns > long_call_ns, gpu_ns < call_ns, delay_ns > long_delay_ns]) AS is_outlier
    FROM launches
), summed AS (
    SELECT
        caller, place,
        count(*) AS launches,
        round(avg(value_ns), 1) AS avg_ns,
        stddev_samp(value_ns ORDER BY value_ns) AS stddev_ns,
        min(value_ns) AS min_ns,
        quantile_cont(value_ns, [0.25, 0.5, 0.75]) AS quartiles,
        max(value_ns) AS max_ns,
        count(*) FILTER (is_outlier) AS outliers
    FROM quantities
    GROUP BY caller, place
)
SELECT
    c.run, c.tool, p.rank, c.profile_id, c.process_id, ['call_duration', 'gpu_duration', 'launch_delay'][place] AS quantity,
    launches, avg_ns, stddev_ns, min_ns, quartiles[1] AS p25_ns, quartiles[2] AS median_ns, quartiles[3] AS p75_ns, max_ns,
    outliers, round(100.0 * outliers / launches, 1) AS outliers_pct
FROM summed AS s
JOIN callers AS c USING (caller)
LEFT JOIN processes AS p ON c.process_id = p.process_id AND c.profile_id = p.profile_id
ORDER BY c.run, c.tool, p.rank, c.profile_id, c.process_id, quantity;
