-- What launches cost, per process: three rows, for the duration of the launch calls, the duration of the work they launched,
-- and the delay from the end of the call to the start of the work (0 where it began earlier). HTA's launch statistics: calls
-- longer than the cutoff, work shorter than its own call, long delays. A graph launch is one launch. Calls that launched
-- nothing that was recorded are left out. ncu has no timeline and no row.
-- @scope profile
-- @requires _launches
-- @assumes The launching call is the one with the same correlation id in the process, and the tool put host and GPU on one clock.
-- @assumes Calls last as long under the profiler as without it: they do not, and the overhead of the tool is in every figure.
-- @param  long_call_ns   A call longer than this, in ns, is an outlier.
-- @param  long_delay_ns  A delay longer than this, in ns, is an outlier.
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
WITH quantities AS (
    SELECT *, 1 AS place, 'call_duration' AS quantity, call_duration_ns AS value_ns, call_duration_ns > long_call_ns AS is_outlier
    FROM _launches
    UNION ALL
    SELECT *, 2, 'gpu_duration', gpu_duration_ns, gpu_duration_ns < call_duration_ns FROM _launches
    UNION ALL
    SELECT *, 3, 'launch_delay', launch_delay_ns, launch_delay_ns > long_delay_ns FROM _launches
)
SELECT
    q.run, q.tool, p.rank, q.profile_id, q.process_id, q.quantity,
    count(*) AS launches,
    round(avg(value_ns), 1) AS avg_ns,
    stddev_samp(value_ns ORDER BY value_ns) AS stddev_ns,
    min(value_ns) AS min_ns,
    quantile_cont(value_ns, 0.25) AS p25_ns,
    quantile_cont(value_ns, 0.5) AS median_ns,
    quantile_cont(value_ns, 0.75) AS p75_ns,
    max(value_ns) AS max_ns,
    count(*) FILTER (is_outlier) AS outliers,
    round(100.0 * count(*) FILTER (is_outlier) / count(*), 1) AS outliers_pct
FROM quantities AS q
LEFT JOIN processes AS p ON q.process_id = p.process_id AND q.profile_id = p.profile_id
GROUP BY q.run, q.tool, p.rank, q.profile_id, q.process_id, q.place, q.quantity
ORDER BY q.run, q.tool, p.rank, q.profile_id, q.process_id, q.quantity;
