-- Kernel time by name and launch configuration, per run and tool (`nsys stats cuda_gpu_kern_gb_sum`).
-- All ranks, devices and processes of a run are pooled. Launches without a duration count as instances only.
-- @scope run
-- @alias cuda_gpu_kern_gb_sum
-- @assumes One name with one grid and block is one configuration: registers, shared memory and sizes of tensors are not compared.
-- @assumes Ranks and devices of a run are alike enough to be pooled: see kernel_by_rank.
-- @column run        Run (one workload in one configuration).
-- @column tool       Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
-- @column time_pct   Share of the clipped kernel time of this run and tool, to one decimal.
-- @column total_ns   Sum of duration_ns.
-- @column clipped_ns The same, with kernels whose end cannot be true (kernel_overruns) ended where the next one begins.
-- @column instances  Kernel launches.
-- @column avg_ns     Mean duration, to one decimal.
-- @column median_ns  Median duration: the mean of the middle two for an even number of launches.
-- @column min_ns     Shortest duration.
-- @column max_ns     Longest duration.
-- @column stddev_ns  Sample standard deviation (n - 1), to one decimal; 0 for a single launch.
-- @column grid_x     Grid size, x.
-- @column grid_y     Grid size, y.
-- @column grid_z     Grid size, z.
-- @column block_x    Block size, x.
-- @column block_y    Block size, y.
-- @column block_z    Block size, z.
-- @column family     Kernel family (gemm, collective, ...).
-- @column name       Kernel name as the tool prints it.
-- @names kernel name
CREATE VIEW kernel_by_config AS
WITH grouped AS (
    SELECT
        run, tool, name, grid_x, grid_y, grid_z, block_x, block_y, block_z,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
        TRY_CAST(sum(duration_ns - coalesce(overrun_ns, 0)) AS BIGINT) AS clipped_ns,
        count(*) AS instances,
        count(duration_ns) AS timed,
        avg(duration_ns) AS mean,
        quantile_cont(duration_ns, 0.5) AS median_ns,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        stddev_samp(duration_ns) AS deviation,
        min(family) AS family
    FROM kernels
    GROUP BY run, tool, name, grid_x, grid_y, grid_z, block_x, block_y, block_z
)
SELECT
    run, tool,
    round(100.0 * clipped_ns / nullif(sum(clipped_ns) OVER (PARTITION BY run, tool), 0), 1) AS time_pct,
    total_ns, clipped_ns, instances,
    round(mean, 1) AS avg_ns,
    median_ns, min_ns, max_ns,
    CASE timed WHEN 1 THEN 0.0 ELSE round(deviation, 1) END AS stddev_ns,
    grid_x, grid_y, grid_z, block_x, block_y, block_z, family, name
FROM grouped
ORDER BY run, tool, clipped_ns DESC NULLS LAST, name, grid_x, grid_y, grid_z, block_x, block_y, block_z;
