-- CUDA and HIP API calls by function, per run and tool: the numbers of `nsys stats cuda_api_sum`, plus percentiles.
-- All ranks, processes and threads of a run are pooled. Calls nest (a runtime call makes driver calls) and threads
-- run side by side: the totals are not wall time. Calls without a duration count as calls only.
-- @scope run
-- @requires _api_durations
-- @needs api_calls
-- @alias cuda_api_sum
-- @assumes The tool recorded the calls: nsys those of its --trace, Kineto a subset. Their counts are not comparable.
-- @assumes A call's time includes what it waits for (cudaStreamSynchronize, a full launch queue) and what the tool adds to it.
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
-- @column p95_ns     95th percentile, interpolated the same way.
-- @column failed     Calls that returned an error; NULL where the tool recorded no return value.
-- @column name       Function name without the API version suffix.
-- @names function name
CREATE VIEW cuda_api_summary AS
WITH counted AS (
    SELECT run, tool, name, duration_ns, sum(calls)::BIGINT AS calls, sum(known)::BIGINT AS known, sum(failed)::BIGINT AS failed
    FROM _api_durations
    GROUP BY run, tool, name, duration_ns
), placed AS (
    SELECT *, CASE WHEN duration_ns IS NOT NULL THEN calls ELSE 0 END AS timed_calls,
        sum(timed_calls) OVER (PARTITION BY run, tool, name ORDER BY duration_ns NULLS LAST) AS upto,
        sum(timed_calls) OVER (PARTITION BY run, tool, name) - 1 AS last_place,
        sum(duration_ns::HUGEINT * timed_calls) OVER (PARTITION BY run, tool, name) / (last_place + 1) AS mean
    FROM counted
), grouped AS (
    SELECT
        run, tool, name,
        sum(duration_ns::HUGEINT * calls) AS exact_ns,
        sum(calls)::BIGINT AS calls,
        sum(timed_calls)::HUGEINT AS timed,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        any_value(mean) AS mean,
        fsum(calls * (duration_ns - mean) * (duration_ns - mean) ORDER BY duration_ns) AS squares,
        any_value(last_place)::DOUBLE AS last,
        -- the two durations around each quantile, in the order of the calls counted from 0
        [min(duration_ns) FILTER (upto > floor(0.05 * last_place)), min(duration_ns) FILTER (upto > floor(0.5 * last_place)),
            min(duration_ns) FILTER (upto > floor(0.95 * last_place))] AS low,
        [min(duration_ns) FILTER (upto > ceil(0.05 * last_place)), min(duration_ns) FILTER (upto > ceil(0.5 * last_place)),
            min(duration_ns) FILTER (upto > ceil(0.95 * last_place))] AS high,
        CASE WHEN sum(known) > 0 THEN sum(failed)::BIGINT END AS failed
    FROM placed
    GROUP BY run, tool, name
), summed AS (
    SELECT *, TRY_CAST(exact_ns AS BIGINT) AS total_ns,
        [low[i] + (high[i] - low[i]) * ([0.05, 0.5, 0.95][i] * last - floor([0.05, 0.5, 0.95][i] * last)) FOR i IN [1, 2, 3]] AS quantiles
    FROM grouped
)
SELECT
    run, tool,
    round(100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY run, tool), 0), 1) AS time_pct,
    total_ns, calls,
    round(mean, 1) AS avg_ns,
    quantiles[2] AS median_ns,
    min_ns, max_ns,
    CASE timed WHEN 1 THEN 0.0 ELSE round(sqrt(squares / nullif(timed - 1, 0)), 1) END AS stddev_ns,
    round(quantiles[1], 1) AS p5_ns,
    round(quantiles[3], 1) AS p95_ns,
    failed, name
FROM summed
ORDER BY run, tool, total_ns DESC NULLS LAST, name;
