-- Kernel time by name, per run and tool: the numbers of `nsys stats cuda_gpu_kern_sum`, plus percentiles.
-- All ranks, devices and processes of a run are pooled. Launches without a duration count as instances only.
-- @scope run
-- @alias cuda_gpu_kern_sum
-- @assumes A name is a kernel as its tool prints it: the tools spell one kernel differently, kernel_key does not.
-- @assumes Durations are the tool's own: ncu's are of replays at its clock and cache settings, of the launches that it measured.
-- @first name, time_pct, total_ns, instances, avg_ns
-- @column run        Run (one workload in one configuration).
-- @column tool       Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
-- @column time_pct   Share of the clipped kernel time of this run and tool (not of wall time), to one decimal.
-- @column total_ns   Sum of duration_ns.
-- @column clipped_ns The same, with kernels whose end cannot be true (kernel_overruns) ended where the next one begins.
-- @column instances  Kernel launches.
-- @column avg_ns     Mean duration, to one decimal.
-- @column median_ns  Median duration: the mean of the middle two for an even number of launches.
-- @column min_ns     Shortest duration.
-- @column max_ns     Longest duration.
-- @column stddev_ns  Sample standard deviation (n - 1), to one decimal; 0 for a single launch.
-- @column p5_ns      5th percentile, interpolated linearly between the two nearest launches.
-- @column p95_ns     95th percentile, interpolated the same way.
-- @column family     Kernel family (gemm, collective, ...).
-- @column name       Kernel name as the tool prints it.
-- @names kernel name
CREATE VIEW kernel_summary AS
WITH grouped AS (
    SELECT
        run, tool, name,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
        TRY_CAST(sum(duration_ns - coalesce(overrun_ns, 0)) AS BIGINT) AS clipped_ns,
        count(*) AS instances,
        count(duration_ns) AS timed,
        avg(duration_ns) AS mean,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        stddev_samp(duration_ns) AS deviation,
        quantile_cont(duration_ns, [0.05, 0.5, 0.95]) AS quantiles,
        min(family) AS family
    FROM kernels
    GROUP BY run, tool, name
)
SELECT
    run, tool,
    round(100.0 * clipped_ns / nullif(sum(clipped_ns) OVER (PARTITION BY run, tool), 0), 1) AS time_pct,
    total_ns, clipped_ns, instances,
    round(mean, 1) AS avg_ns,
    quantiles[2] AS median_ns,
    min_ns, max_ns,
    CASE timed WHEN 1 THEN 0.0 ELSE round(deviation, 1) END AS stddev_ns,
    round(quantiles[1], 1) AS p5_ns,
    round(quantiles[3], 1) AS p95_ns,
    family, name
FROM grouped
ORDER BY run, tool, clipped_ns DESC NULLS LAST, name;
