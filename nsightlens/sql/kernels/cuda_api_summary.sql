-- CUDA and HIP API calls by function, per run and tool: the numbers of `nsys stats cuda_api_sum`, plus percentiles.
-- All ranks, processes and threads of a run are pooled. Calls nest (a runtime call makes driver calls) and threads
-- run side by side: the totals are not wall time. Calls without a duration count as calls only.
-- @scope run
-- @needs api_calls
-- @alias cuda_api_sum
-- @assumes The tool recorded the calls: nsys those of its --trace, Kineto a subset. The counts of the two do not compare.
-- @assumes A call's time holds what it waits for (cudaStreamSynchronize, a full launch queue) and what the tool adds to it.
-- @column run        Run (one workload in one configuration).
-- @column tool       Profiler: nsys or kineto. Never add them up: they saw the same calls.
-- @column time_pct   Share of the summed time of all calls of this run and tool, to one decimal.
-- @column total_ns   Sum of duration_ns.
-- @column calls      Number of calls.
-- @column avg_ns     Mean duration, to one decimal.
-- @column median_ns  Median duration: the mean of the middle two for an even number of calls.
-- @column min_ns     Shortest duration.
-- @column max_ns     Longest duration.
-- @column stddev_ns  Sample standard deviation (n - 1), to one decimal; 0 for a single call.
-- @column p5_ns      5th percentile, interpolated linearly between the two nearest calls.
-- @column p95_ns     95th percentile, interpolated likewise.
-- @column failed     Calls that returned an error; NULL where the tool recorded no return value.
-- @column name       Function name without the API version suffix.
CREATE VIEW cuda_api_summary AS
WITH grouped AS (
    SELECT
        run, tool, name,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
        count(*) AS calls,
        count(duration_ns) AS timed,
        avg(duration_ns) AS mean,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        stddev_samp(duration_ns) AS deviation,
        quantile_cont(duration_ns, [0.05, 0.5, 0.95]) AS quantiles,
        CASE WHEN count(return_value) > 0 THEN count(*) FILTER (return_value <> 0) END AS failed
    FROM api_calls
    GROUP BY run, tool, name
)
SELECT
    run, tool,
    round(100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY run, tool), 0), 1) AS time_pct,
    total_ns, calls,
    round(mean, 1) AS avg_ns,
    quantiles[2] AS median_ns,
    min_ns, max_ns,
    CASE timed WHEN 1 THEN 0.0 ELSE round(deviation, 1) END AS stddev_ns,
    round(quantiles[1], 1) AS p5_ns,
    round(quantiles[3], 1) AS p95_ns,
    failed, name
FROM grouped
ORDER BY run, tool, total_ns DESC NULLS LAST, name;
