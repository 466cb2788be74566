-- Kernel time by family (gemm, collective, ...), per run and tool.
-- @scope run
-- @assumes The name says what a kernel does: family follows from it alone, and unclassified_kernels lists what no rule knows.
-- @assumes Sums are over what was captured, ncu's over the launches that it was set to measure: do not compare shares of two
--     tools.
-- @column run        Run (one workload in one configuration).
-- @column tool       Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
-- @column family     Kernel family; `other` is what no rule recognised (see unclassified_kernels).
-- @column time_pct   Share of the clipped kernel time of this run and tool, to one decimal.
-- @column total_ns   Sum of duration_ns.
-- @column clipped_ns The same, with kernels whose end cannot be true (kernel_overruns) ended where the next one begins.
-- @column instances  Kernel launches.
-- @column avg_ns     Mean duration, to one decimal.
-- @column names      Distinct kernel names.
-- @column processes  Distinct processes that launched one.
CREATE VIEW family_summary AS
WITH grouped AS (
    SELECT
        run, tool, family,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
        TRY_CAST(sum(duration_ns - coalesce(overrun_ns, 0)) AS BIGINT) AS clipped_ns,
        count(*) AS instances,
        avg(duration_ns) AS mean,
        count(DISTINCT name) AS names,
        count(DISTINCT process_id) AS processes
    FROM kernels
    GROUP BY run, tool, family
)
SELECT
    run, tool, family,
    round(100.0 * clipped_ns / nullif(sum(clipped_ns) OVER (PARTITION BY run, tool), 0), 1) AS time_pct,
    total_ns, clipped_ns, instances,
    round(mean, 1) AS avg_ns,
    names, processes
FROM grouped
ORDER BY run, tool, clipped_ns DESC NULLS LAST, family;
