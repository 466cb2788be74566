-- The kernels that take the most time, per run and tool.
-- @scope run
-- @requires kernel_summary
-- @assumes A name is a kernel as its tool prints it; shares are of the summed kernel time, clipped, not of wall time.
-- @param  how_many    Kernels to return for each run and tool; NULL for all.
-- @first time_pct, total_ns, instances, avg_ns, name
-- @column run         Run (one workload in one configuration).
-- @column tool        Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
-- @column position    1 for the kernel with the largest clipped total.
-- @column time_pct    Share of the clipped kernel time of this run and tool, to one decimal.
-- @column total_ns    Sum of duration_ns.
-- @column clipped_ns  The same, with kernels whose end cannot be true (kernel_overruns) ended where the next one begins.
-- @column instances   Kernel launches.
-- @column avg_ns      Mean duration, to one decimal.
-- @column median_ns   Median duration.
-- @column family      Kernel family (gemm, collective, ...).
-- @column name        Kernel name as the tool prints it.
CREATE MACRO top_kernels(how_many := 20) AS TABLE
WITH placed AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY run, tool ORDER BY clipped_ns DESC NULLS LAST, name) AS position
    FROM kernel_summary
)
SELECT run, tool, position, time_pct, total_ns, clipped_ns, instances, avg_ns, median_ns, family, name
FROM placed
WHERE how_many IS NULL OR position <= how_many
ORDER BY run, tool, position;
