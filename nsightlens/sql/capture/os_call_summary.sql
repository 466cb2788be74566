-- Calls of operating-system libraries by function, per run: the numbers of `nsys stats osrt_sum`, plus who made them.
-- All ranks, processes and threads of a run are pooled. Threads wait in parallel: the totals are not wall time.
-- @scope run
-- @needs os_calls
-- @alias osrt_sum
-- @assumes nsys recorded them (--trace=osrt), and calls below its threshold of 1 µs are negligible: no capture has them.
-- @column run        Run (one workload in one configuration).
-- @column tool       nsys: no other tool records them.
-- @column time_pct   Share of the summed time of all calls of this run, to one decimal.
-- @column total_ns   Sum of duration_ns.
-- @column calls      Number of calls.
-- @column avg_ns     Mean duration, to one decimal.
-- @column median_ns  Median duration: the mean of the middle two for an even number.
-- @column min_ns     Shortest duration.
-- @column max_ns     Longest duration.
-- @column stddev_ns  Sample standard deviation (n - 1), to one decimal; 0 for a single one.
-- @column threads    Threads that made them.
-- @column name       Function.
-- @names function name
CREATE VIEW os_call_summary AS
WITH chosen AS (
    SELECT * FROM os_calls WHERE kind = 'call'
), grouped AS (
    SELECT
        run, tool, name,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
        count(*) AS calls,
        count(duration_ns) AS timed,
        avg(duration_ns) AS mean,
        quantile_cont(duration_ns, 0.5) AS median_ns,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        stddev_samp(duration_ns) AS deviation,
        count(DISTINCT (process_id, thread)) AS threads
    FROM chosen
    GROUP BY run, tool, name
)
SELECT
    run, tool,
    round(100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY run, tool), 0), 1) AS time_pct,
    total_ns, calls,
    round(mean, 1) AS avg_ns,
    median_ns, min_ns, max_ns,
    CASE timed WHEN 1 THEN 0.0 ELSE round(deviation, 1) END AS stddev_ns,
    threads, name
FROM grouped
ORDER BY run, tool, total_ns DESC NULLS LAST, name;
