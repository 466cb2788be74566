-- Kernel time by process and name, per run and tool: where one rank spends more than the others.
-- A row is a process (labelled by its rank) and a kernel name. Launches without a duration count as instances only.
-- @scope profile
-- @assumes The ranks were captured over the same part of the work; otherwise their totals differ for that reason alone.
-- @assumes A collective's time includes waiting for the others: the rank with the least of it may be the late one.
-- @column run         Run (one workload in one configuration).
-- @column tool        Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
-- @column rank        Rank of the process; NULL where unknown.
-- @column profile_id  Profile, one recording of one tool.
-- @column process_id  OS process; key of `processes`.
-- @column time_pct    Share of the clipped kernel time of this process, to one decimal.
-- @column total_ns    Sum of duration_ns.
-- @column clipped_ns  The same, with kernels whose end cannot be true (kernel_overruns) ended where the next one begins.
-- @column instances   Kernel launches.
-- @column avg_ns      Mean duration, to one decimal.
-- @column median_ns   Median duration: the mean of the middle two for an even number of launches.
-- @column min_ns      Shortest duration.
-- @column max_ns      Longest duration.
-- @column stddev_ns   Sample standard deviation (n - 1), to one decimal; 0 for a single launch.
-- @column family      Kernel family (gemm, collective, ...).
-- @column name        Kernel name as the tool prints it.
-- @names kernel name
CREATE VIEW kernel_by_rank AS
WITH grouped AS (
    SELECT
        any_value(run) AS run, any_value(tool) AS tool, any_value(rank) AS rank, profile_id, process_id, name,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
        TRY_CAST(sum(duration_ns - coalesce(overrun_ns, 0)) AS BIGINT) AS clipped_ns,
        count(*) AS instances,
        count(duration_ns) AS timed,
        avg(duration_ns) AS mean,
        quantile_cont(duration_ns, 0.5) AS median_ns,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        stddev_samp(duration_ns) AS deviation,
        any_value(family) AS family
    FROM kernels
    GROUP BY profile_id, process_id, name  -- all else follows from these
)
SELECT
    run, tool, rank, profile_id, process_id,
    round(100.0 * clipped_ns / nullif(sum(clipped_ns) OVER (PARTITION BY run, tool, profile_id, process_id), 0), 1) AS time_pct,
    total_ns, clipped_ns, instances,
    round(mean, 1) AS avg_ns,
    median_ns, min_ns, max_ns,
    CASE timed WHEN 1 THEN 0.0 ELSE round(deviation, 1) END AS stddev_ns,
    family, name
FROM grouped
ORDER BY run, tool, rank, profile_id, process_id, clipped_ns DESC NULLS LAST, name;
