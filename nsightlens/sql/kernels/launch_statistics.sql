-- The cost of launches, per process: three rows, for the duration of the launch calls, that of the work they launched, and the
-- delay from the end of the call to the start of the work (0 if it began earlier). HTA's launch statistics: calls longer than
-- the cutoff, work shorter than its own call, long delays. A graph launch is one launch. Calls that launched nothing that was
-- recorded are left out. ncu has no timeline, so no rows.
-- @scope profile
-- @alias get_cuda_kernel_launch_stats
-- @needs gpu_work
-- @requires _gpu_work, api_calls, processes
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
WITH launched AS NOT MATERIALIZED (
    -- a graph launch owns many kernels: it is one launch, as is a copy
    SELECT profile_id, launch_id, min(start_ns) AS start_ns, TRY_CAST(sum(end_ns - start_ns) AS BIGINT) AS gpu_ns
    FROM _gpu_work WHERE launch_id IS NOT NULL GROUP BY profile_id, launch_id
), launches AS NOT MATERIALIZED (
    SELECT c.run, c.tool, c.profile_id, c.process_id, c.duration_ns AS call_ns, w.gpu_ns,
        greatest(w.start_ns - (c.start_ns + c.duration_ns), 0) AS delay_ns
    FROM launched AS w JOIN api_calls AS c ON c.profile_id = w.profile_id AND c.launch_id = w.launch_id
    WHERE c.start_ns IS NOT NULL AND c.duration_ns IS NOT NULL
), summed AS (
    SELECT run, tool, profile_id, process_id, count(*) AS launches,
        [avg(call_ns), avg(gpu_ns), avg(delay_ns)] AS means,
        -- whole numbers: the deviation is the same whatever the order; of squares beyond 52 days it is unknown
        [count(call_ns), count(gpu_ns), count(delay_ns)] AS known, [sum(call_ns), sum(gpu_ns), sum(delay_ns)] AS totals,
        [sum(CASE WHEN call_ns BETWEEN -(1::BIGINT << 52) AND 1::BIGINT << 52 THEN call_ns::HUGEINT * call_ns END),
            sum(CASE WHEN gpu_ns BETWEEN -(1::BIGINT << 52) AND 1::BIGINT << 52 THEN gpu_ns::HUGEINT * gpu_ns END),
            sum(CASE WHEN delay_ns BETWEEN -(1::BIGINT << 52) AND 1::BIGINT << 52 THEN delay_ns::HUGEINT * delay_ns END)] AS squares,
        [min(call_ns), min(gpu_ns), min(delay_ns)] AS lowest,
        [quantile_cont(call_ns, [0.25, 0.5, 0.75]), quantile_cont(gpu_ns, [0.25, 0.5, 0.75]),
            quantile_cont(delay_ns, [0.25, 0.5, 0.75])] AS quartiles,
        [max(call_ns), max(gpu_ns), max(delay_ns)] AS highest,
        [count(*) FILTER (call_ns > long_call_ns), count(*) FILTER (gpu_ns < call_ns), count(*) FILTER (delay_ns > long_delay_ns)] AS outliers
    FROM launches
    GROUP BY run, tool, profile_id, process_id
), placed AS (
    SELECT *, known[place] AS n, squares[place] AS square_sum, totals[place] AS total_ns, lowest[place] AS min_ns, highest[place] AS max_ns
    FROM summed CROSS JOIN (SELECT unnest([1, 2, 3]) AS place)
)
SELECT
    s.run, s.tool, p.rank, s.profile_id, s.process_id, ['call_duration', 'gpu_duration', 'launch_delay'][place] AS quantity,
    launches, round(means[place], 1) AS avg_ns,
    CASE WHEN min_ns > -(1::BIGINT << 52) AND max_ns < 1::BIGINT << 52 AND n > 1 AND n * square_sum::DOUBLE < 1.7e38
        THEN sqrt((n * square_sum - total_ns * total_ns)::DOUBLE / n / (n - 1)) END AS stddev_ns, min_ns,
    quartiles[place][1] AS p25_ns, quartiles[place][2] AS median_ns, quartiles[place][3] AS p75_ns, max_ns,
    outliers[place] AS outliers, round(100.0 * outliers[place] / launches, 1) AS outliers_pct
FROM placed AS s
LEFT JOIN processes AS p ON s.process_id = p.process_id AND s.profile_id = p.profile_id
ORDER BY s.run, s.tool, p.rank, s.profile_id, s.process_id, quantity;
