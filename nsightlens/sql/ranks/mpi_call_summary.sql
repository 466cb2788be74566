-- MPI events by function, per run: the numbers of `nsys stats mpi_event_sum`. A call that ends several requests is an event
-- for each.
-- @scope run
-- @needs mpi
-- @alias mpi_event_sum
-- @alias mpi_sum
-- @assumes nsys traced MPI (--trace=mpi). No public capture has these tables: synthetic files test this view.
-- @assumes Ranks run in parallel: the totals are not wall time. All ranks of the run are pooled.
-- @column run        Run (one workload in one configuration).
-- @column tool       nsys: no other tool records MPI.
-- @column time_pct   Share of the summed time of all MPI events of this run, to one decimal.
-- @column total_ns   Sum of duration_ns.
-- @column instances  Number of events.
-- @column avg_ns     Mean duration, to one decimal.
-- @column median_ns  Median duration: the mean of the middle two for an even number.
-- @column min_ns     Shortest duration.
-- @column max_ns     Longest duration.
-- @column stddev_ns  Sample standard deviation (n - 1), to one decimal; 0 for a single one.
-- @column ranks      Distinct processes.
-- @column kind       p2p, collective, start_wait or other.
-- @column name       Function; NULL where the report does not say.
-- @names function name
CREATE VIEW mpi_call_summary AS
WITH grouped AS (
    SELECT
        run, tool, kind, name,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
        count(*) AS instances,
        count(duration_ns) AS timed,
        avg(duration_ns) AS mean,
        quantile_cont(duration_ns, 0.5) AS median_ns,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        stddev_samp(duration_ns) AS deviation,
        count(DISTINCT process_id) AS ranks
    FROM mpi_calls
    GROUP BY run, tool, kind, name
)
SELECT
    run, tool,
    round(100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY run, tool), 0), 1) AS time_pct,
    total_ns, instances,
    round(mean, 1) AS avg_ns,
    median_ns, min_ns, max_ns,
    CASE timed WHEN 1 THEN 0.0 ELSE round(deviation, 1) END AS stddev_ns,
    ranks, kind, name
FROM grouped
ORDER BY run, tool, total_ns DESC NULLS LAST, kind, name;
