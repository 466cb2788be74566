-- How long the launches of each kernel that ncu measured took in the undisturbed tools, by each grade of likeness: per rank, over
-- all ranks (is_pooled), and of the very launches that ncu counted (grade launch).
-- Launches whose end cannot be true (kernel_overruns) carry no information, and are left out.
-- @scope run
-- @requires _ncu_by_config, _ncu_launch, _sampled_clock, matches
-- @column run               Run.
-- @column tool              nsys or kineto.
-- @column rank              Rank; NULL where unknown, and over all ranks.
-- @column is_pooled         Whether the row is over all ranks.
-- @column grade             launch, configuration (kernel key, grid and block), key or short_name: what the launches share.
-- @column configuration_id  Configuration of ncu, for launch.
-- @column kernel_key        Canonical name, for configuration and key.
-- @column configuration     Struct of grid and block, for configuration.
-- @column short_name        Base name, for short_name.
-- @column gpu               Product name of the GPU, where all launches agree.
-- @column counted           Launches under ncu that are matched, for launch.
-- @column took              Struct: launches, min_ns, p5_ns, median_ns, p95_ns, max_ns; quantiles interpolated linearly, to 1 ns;
--                           of launches whose clock was sampled: clocked, min_hz, median_hz, max_hz and clock_domain (NULL: of both).
CREATE VIEW _true_roofline_times AS
WITH launched AS (
    SELECT run, k.tool, rank, kernel_key, short_name, gpu, duration_ns, s.clock_domain, s.clock_hz,
        struct_pack(grid_x, grid_y, grid_z, block_x, block_y, block_z) AS configuration
    FROM kernels AS k
    LEFT JOIN _sampled_clock AS s ON k.kernel_id = s.kernel_id AND k.tool = s.tool
    WHERE k.tool IN ('nsys', 'kineto') AND duration_ns > 0 AND coalesce(overrun_ns, 0) = 0 AND kernel_key IS NOT NULL AND (
        (run, kernel_key) IN (SELECT (run, kernel_key) FROM _ncu_by_config)
        OR (run, short_name) IN (SELECT (run, short_name) FROM _ncu_by_config WHERE short_name IS NOT NULL))
), partners AS (
    SELECT c.configuration_id, k.run, k.tool, k.kernel_id, k.gpu, k.duration_ns, s.clock_domain, s.clock_hz, list(m.other_kernel_id) AS counted
    FROM matches AS m
    JOIN _ncu_launch AS c ON m.other_kernel_id = c.kernel_id
    JOIN kernels AS k ON m.kernel_id = k.kernel_id AND m.tool = k.tool
    LEFT JOIN _sampled_clock AS s ON k.kernel_id = s.kernel_id AND k.tool = s.tool
    WHERE m.other_tool = 'ncu' AND k.duration_ns > 0 AND coalesce(k.overrun_ns, 0) = 0
    GROUP BY ALL
), summed AS (
    SELECT
        run, tool, rank, grouping(rank) = 1 AS is_pooled,
        CASE WHEN grouping(configuration) = 0 THEN 'configuration' WHEN grouping(kernel_key) = 0 THEN 'key' ELSE 'short_name'
            END AS grade,
        kernel_key, configuration, short_name, CASE WHEN min(gpu) = max(gpu) THEN min(gpu) END AS gpu, count(*) AS launches,
        min(duration_ns) AS least, quantile_cont(duration_ns, [0.05, 0.5, 0.95]) AS quantiles, max(duration_ns) AS greatest,
        count(clock_hz) AS clocked, min(clock_hz) AS least_hz, median(clock_hz) AS median_hz, max(clock_hz) AS greatest_hz,
        CASE WHEN min(clock_domain) = max(clock_domain) THEN min(clock_domain) END AS clock_domain
    FROM launched
    GROUP BY GROUPING SETS (
        (run, tool, rank, kernel_key, configuration), (run, tool, kernel_key, configuration),
        (run, tool, rank, kernel_key), (run, tool, kernel_key), (run, tool, rank, short_name), (run, tool, short_name))
    UNION ALL BY NAME
    SELECT run, tool, true AS is_pooled, 'launch' AS grade, configuration_id,
        CASE WHEN min(gpu) = max(gpu) THEN min(gpu) END AS gpu,
        len(list_distinct(flatten(list(counted)))) AS counted, count(*) AS launches,
        min(duration_ns) AS least, quantile_cont(duration_ns, [0.05, 0.5, 0.95]) AS quantiles, max(duration_ns) AS greatest,
        count(clock_hz) AS clocked, min(clock_hz) AS least_hz, median(clock_hz) AS median_hz, max(clock_hz) AS greatest_hz,
        CASE WHEN min(clock_domain) = max(clock_domain) THEN min(clock_domain) END AS clock_domain
    FROM partners
    GROUP BY run, tool, configuration_id
)
SELECT
    run, tool, rank, is_pooled, grade, configuration_id, kernel_key, configuration, short_name, gpu, counted,
    struct_pack(
        launches := launches, min_ns := least, p5_ns := CAST(round(quantiles[1]) AS BIGINT),
        median_ns := CAST(round(quantiles[2]) AS BIGINT), p95_ns := CAST(round(quantiles[3]) AS BIGINT), max_ns := greatest,
        clocked := clocked, min_hz := least_hz, median_hz := median_hz, max_hz := greatest_hz, clock_domain := clock_domain
    ) AS took
FROM summed;
