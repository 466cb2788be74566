-- Durations of one kernel under two tools: the same launch (grade launch), or the medians of a kernel key, grid and block over
-- all ranks of the run (grade configuration). ncu stands for itself once per clock setting, since that decides the ratio. It is
-- not compared where the launches of a configuration differ in work (95th percentile above 1.5 times the 5th): ncu measured few.
-- @scope rows
-- @requires matches
-- @column run            Run.
-- @column tool           The tool that perturbs more: kineto or ncu.
-- @column other_tool     The one it is compared with: nsys or kineto.
-- @column clock_control  ncu --clock-control, where known.
-- @column grade          launch or configuration.
-- @column family         Kernel family.
-- @column launches       Launches of other_tool that the row stands for (grade launch: 1).
-- @column tool_ns        Duration in `tool`.
-- @column other_ns       Duration in `other_tool`.
CREATE VIEW _duration_pairs AS
WITH medians AS (
    SELECT run, tool, clock_control, kernel_key, struct_pack(grid_x, grid_y, grid_z, block_x, block_y, block_z) AS configuration,
        min(family) AS family, count(*) AS launches, median(duration_ns) AS middle_ns,
        quantile_cont(duration_ns, 0.95) <= 1.5 * quantile_cont(duration_ns, 0.05) AS is_even
    FROM kernels
    WHERE kernel_key IS NOT NULL AND duration_ns IS NOT NULL AND coalesce(overrun_ns, 0) = 0
    GROUP BY ALL
)
SELECT m.run, m.other_tool AS tool, m.tool AS other_tool, o.clock_control, 'launch' AS grade, k.family, 1 AS launches,
    CAST(o.duration_ns AS DOUBLE) AS tool_ns, CAST(k.duration_ns AS DOUBLE) AS other_ns
FROM matches AS m
JOIN kernels AS k ON m.kernel_id = k.kernel_id
JOIN kernels AS o ON m.other_kernel_id = o.kernel_id
WHERE k.duration_ns IS NOT NULL AND o.duration_ns IS NOT NULL AND coalesce(k.overrun_ns, 0) = 0 AND coalesce(o.overrun_ns, 0) = 0
UNION ALL
SELECT a.run, a.tool, b.tool, a.clock_control, 'configuration', b.family, b.launches, a.middle_ns, b.middle_ns
FROM medians AS a
JOIN medians AS b
    ON a.run = b.run AND a.kernel_key = b.kernel_key AND a.configuration = b.configuration
    AND ((a.tool = 'ncu' AND b.tool IN ('nsys', 'kineto') AND b.is_even) OR (a.tool = 'kineto' AND b.tool = 'nsys'));
