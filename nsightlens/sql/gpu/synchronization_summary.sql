-- Waits for the GPU by what each was for and by the waiting call, per run. The time of a wait is part of the time of its call.
-- In a stream_wait_event the stream waits, not the host, and how long it waits is not recorded.
-- @scope run
-- @needs waits
-- @assumes CUPTI recorded the waits, and each belongs to the call with its correlation id; without one the function is NULL.
-- @assumes Threads wait in parallel: the totals are not wall time.
-- @column run        Run (one workload in one configuration).
-- @column tool       nsys, or kineto, if it recorded them (enable_cuda_sync_events).
-- @column time_pct   Share of the summed time of all waits of this run, to one decimal.
-- @column total_ns   Sum of duration_ns.
-- @column waits      Number of waits.
-- @column avg_ns     Mean duration, to one decimal.
-- @column median_ns  Median duration: the mean of the middle two for an even number.
-- @column min_ns     Shortest duration.
-- @column max_ns     Longest duration.
-- @column stddev_ns  Sample standard deviation (n - 1), to one decimal; 0 for a single one.
-- @column streams    Distinct streams among them, per process and context; 0 where none is named.
-- @column kind       event, stream, context or stream_wait_event; see `synchronizations`.
-- @column name       The API function that waited; NULL where the call was not recorded.
CREATE VIEW synchronization_summary AS
WITH waits AS (
    SELECT s.run, s.tool, s.process_id, s.context, s.stream, s.kind, s.duration_ns, c.name
    FROM synchronizations AS s
    LEFT JOIN api_calls AS c ON s.launch_id = c.launch_id
), grouped AS (
    SELECT
        run, tool, kind, name,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
        count(*) AS waits,
        count(duration_ns) AS timed,
        avg(duration_ns) AS mean,
        quantile_cont(duration_ns, 0.5) AS median_ns,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        stddev_samp(duration_ns) AS deviation,
        count(DISTINCT (process_id, context, stream)) FILTER (stream IS NOT NULL) AS streams
    FROM waits
    GROUP BY run, tool, kind, name
)
SELECT
    run, tool,
    round(100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY run, tool), 0), 1) AS time_pct,
    total_ns, waits,
    round(mean, 1) AS avg_ns,
    median_ns, min_ns, max_ns,
    CASE timed WHEN 1 THEN 0.0 ELSE round(deviation, 1) END AS stddev_ns,
    streams, kind, name
FROM grouped
ORDER BY run, tool, total_ns DESC NULLS LAST, kind, name;
