-- The kernels that take the most time, per run and tool.
-- @scope run
-- @requires kernel_by_rank, kernels
-- @assumes A name is a kernel as its tool prints it; shares are of the summed kernel time, clipped, not of wall time.
-- @param  how_many    Kernels to return for each run and tool; NULL for all.
-- @first name, time_pct, total_ns, instances, avg_ns
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
-- @names kernel name
CREATE MACRO top_kernels(how_many := 20) AS TABLE
WITH totals AS (
    -- A sum of 63 bits at most is known of each process, or it has none: then the name is placed last.
    SELECT run, tool, name,
        CASE WHEN count(min_ns) = count(clipped_ns) THEN TRY_CAST(sum(clipped_ns) AS BIGINT) END AS clipped_ns
    FROM kernel_by_rank
    GROUP BY run, tool, name
), placed AS (
    SELECT
        run, tool, name,
        round(100.0 * clipped_ns / nullif(sum(clipped_ns) OVER (PARTITION BY run, tool), 0), 1) AS time_pct,
        row_number() OVER (PARTITION BY run, tool ORDER BY clipped_ns DESC NULLS LAST, name) AS position
    FROM totals
), launched AS (
    SELECT
        k.run, k.tool, k.name,
        TRY_CAST(sum(k.duration_ns) AS BIGINT) AS total_ns,
        TRY_CAST(sum(k.duration_ns - coalesce(k.overrun_ns, 0)) AS BIGINT) AS clipped_ns,
        count(*) AS instances,
        avg(k.duration_ns) AS mean,
        quantile_cont(k.duration_ns, 0.5) AS median_ns,
        min(k.family) AS family
    FROM kernels AS k
    SEMI JOIN placed AS p ON p.run = k.run AND p.tool = k.tool AND p.name = k.name AND (how_many IS NULL OR p.position <= how_many)
    GROUP BY k.run, k.tool, k.name
)
SELECT run, tool, p.position, p.time_pct, l.total_ns, l.clipped_ns, l.instances, round(l.mean, 1) AS avg_ns, l.median_ns, l.family,
    name
FROM launched AS l
JOIN placed AS p USING (run, tool, name)
ORDER BY run, tool, position;
