-- Host functions that streams ran in order, per run: later work in the stream waits until the function returns. idle_causes
-- shows how long GPUs idled for them (cause host_function).
-- @scope run
-- @needs host_functions
-- @requires host_functions, api_calls
-- @assumes No real report with such rows was available: they are read by the schema that nsys 2026.4 documents.
-- @assumes Streams run them in parallel: the totals are not wall time.
-- @first kind, name, total_ns, instances, median_ns, max_ns
-- @column run        Run (one workload in one configuration).
-- @column tool       nsys.
-- @column time_pct   Share of the summed time of all host functions of this run, to one decimal.
-- @column total_ns   Sum of duration_ns.
-- @column instances  Number of functions that ran.
-- @column avg_ns     Mean duration, to one decimal.
-- @column median_ns  Median duration: the mean of the middle two for an even number.
-- @column min_ns     Shortest duration.
-- @column max_ns     Longest duration.
-- @column stddev_ns  Sample standard deviation (n - 1), to one decimal; 0 for a single one.
-- @column streams    Distinct streams among them, per process and context.
-- @column kind       launch (cudaLaunchHostFunc) or graph_node.
-- @column name       The API function that launched it, or its graph; NULL where the call was not recorded.
CREATE VIEW host_function_summary AS
WITH grouped AS (
    SELECT
        f.run, f.tool, f.kind, c.name,
        TRY_CAST(sum(f.duration_ns) AS BIGINT) AS total_ns,
        count(*) AS instances,
        count(f.duration_ns) AS timed,
        avg(f.duration_ns) AS mean,
        quantile_cont(f.duration_ns, 0.5) AS median_ns,
        min(f.duration_ns) AS min_ns,
        max(f.duration_ns) AS max_ns,
        stddev_samp(f.duration_ns) AS deviation,
        count(DISTINCT (f.process_id, f.context, f.stream)) FILTER (f.stream IS NOT NULL) AS streams
    FROM host_functions AS f
    LEFT JOIN api_calls AS c ON f.profile_id = c.profile_id AND f.launch_id = c.launch_id
    GROUP BY f.run, f.tool, f.kind, c.name
)
SELECT
    run, tool,
    round(100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY run, tool), 0), 1) AS time_pct,
    total_ns, instances,
    round(mean, 1) AS avg_ns,
    median_ns, min_ns, max_ns,
    CASE timed WHEN 1 THEN 0.0 ELSE round(deviation, 1) END AS stddev_ns,
    streams, kind, name
FROM grouped
ORDER BY run, tool, total_ns DESC NULLS LAST, kind, name;
