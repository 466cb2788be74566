-- Time that the profiler took from threads, and that CUDA took for loading, compiling and waiting for space, per run.
-- api_calls has no row for it; it lengthens the call during which it occurred.
-- @scope run
-- @needs overheads
-- @assumes The tool recorded its overhead: an old report may hold only a part of it, a PyTorch trace has what CUPTI reports.
-- @assumes Threads are delayed in parallel: the totals are not wall time.
-- @column run        Run (one workload in one configuration).
-- @column tool       nsys or kineto.
-- @column time_pct   Share of the summed time of all overhead of this run, to one decimal.
-- @column total_ns   Sum of duration_ns.
-- @column instances  Number of stretches.
-- @column avg_ns     Mean duration, to one decimal.
-- @column median_ns  Median duration: the mean of the middle two for an even number.
-- @column min_ns     Shortest duration.
-- @column max_ns     Longest duration.
-- @column stddev_ns  Sample standard deviation (n - 1), to one decimal; 0 for a single one.
-- @column threads    Threads that were held up; 1 per process of a PyTorch trace, which does not name them.
-- @column source     profiler or cuda; NULL where the report does not say.
-- @column kind       Such as buffer_flush, own or command_buffer_full; see `overheads`.
-- @column name       What the profiler calls it.
CREATE VIEW overhead_summary AS
WITH grouped AS (
    SELECT
        run, tool, source, kind, name,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
        count(*) AS instances,
        count(duration_ns) AS timed,
        avg(duration_ns) AS mean,
        quantile_cont(duration_ns, 0.5) AS median_ns,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        stddev_samp(duration_ns) AS deviation,
        count(DISTINCT (process_id, thread)) AS threads
    FROM overheads
    GROUP BY run, tool, source, kind, name
)
SELECT
    run, tool,
    round(100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY run, tool), 0), 1) AS time_pct,
    total_ns, instances,
    round(mean, 1) AS avg_ns,
    median_ns, min_ns, max_ns,
    CASE timed WHEN 1 THEN 0.0 ELSE round(deviation, 1) END AS stddev_ns,
    threads, source, kind, name
FROM grouped
ORDER BY run, tool, total_ns DESC NULLS LAST, source, kind, name;
