-- What each tool says of a kernel key, grid and block on a rank: launches, duration, resources, occupancy, clocks. Where a tool's
-- ranks are unknown, all ranks of the run are one (rank NULL). ncu: the clock and cache settings with the most launches.
-- @scope run
-- @requires kernels, api_calls, _sampled_clock
-- @column run                      Run.
-- @column tool                     nsys, kineto or ncu.
-- @column rank                     Rank; NULL where not every tool knows its ranks.
-- @column kernel_key               Canonical name.
-- @column configuration            Struct of grid and block.
-- @column clock_control            ncu --clock-control, where known.
-- @column cache_control            ncu --cache-control, where known.
-- @column short_name               Base name.
-- @column family                   Kernel family.
-- @column launches                 Launches.
-- @column common_launches          Launches in steps that nsys and Kineto both recorded; NULL where there are none.
-- @column early_launches           Launches in steps before these.
-- @column in_graph                 Launches by a CUDA graph.
-- @column quantiles                Duration: 5th percentile, median, 95th percentile.
-- @column whole_us                 Whether each duration is a whole number of microseconds.
-- @column registers                Registers per thread, where all launches agree.
-- @column shared_bytes             Shared memory per block, where all launches agree.
-- @column estimated_occupancy_pct  Median occupancy as Kineto estimates it.
-- @column limit_occupancy_pct      Median theoretical occupancy (ncu).
-- @column achieved_occupancy_pct   Median achieved occupancy (ncu).
-- @column clock_hz                 Median clock during the launches (ncu: of the GPC, else of the SM).
-- @column sm_clock_hz              Median clock of the SM during the launches (ncu).
-- @column sampled                  Struct: launches of known sampled clock, their median_hz, min_hz, max_hz, and clock_domain (SM or
--                                  GPC); NULL where there are none, or of both.
CREATE VIEW _tool_configurations AS
WITH ranked AS (
    SELECT run, bool_and(rank IS NOT NULL) AS by_rank FROM kernels GROUP BY run
), graph_calls AS (
    SELECT launch_id FROM api_calls WHERE name ILIKE '%graphlaunch%' AND launch_id IS NOT NULL
), launched AS NOT MATERIALIZED (
    SELECT k.* EXCLUDE (rank), CASE WHEN r.by_rank THEN k.rank END AS rank,
        struct_pack(grid_x, grid_y, grid_z, block_x, block_y, block_z) AS configuration,
        graph_node_id IS NOT NULL OR coalesce(launch_id IN (FROM graph_calls), false) AS in_graph,
        s.clock_domain, s.clock_hz AS sampled_hz
    FROM kernels AS k
    JOIN ranked AS r ON k.run = r.run
    LEFT JOIN _sampled_clock AS s ON k.kernel_id = s.kernel_id AND k.tool = s.tool
    WHERE kernel_key IS NOT NULL
), common AS (
    SELECT run, rank, step, min(step) OVER (PARTITION BY run, rank) AS first_step
    FROM launched
    WHERE tool IN ('nsys', 'kineto') AND step IS NOT NULL
    GROUP BY run, rank, step
    HAVING count(DISTINCT tool) = 2
), placed AS (
    SELECT l.*, c.step IS NOT NULL AS is_common, l.step < f.first_step AS is_early
    FROM launched AS l
    LEFT JOIN common AS c ON l.run = c.run AND l.rank IS NOT DISTINCT FROM c.rank AND l.step = c.step
    LEFT JOIN (SELECT DISTINCT run, rank, first_step FROM common) AS f ON l.run = f.run AND l.rank IS NOT DISTINCT FROM f.rank
), summed AS (
    SELECT run, tool, rank, kernel_key, configuration, clock_control, cache_control, min(short_name) AS short_name,
        min(family) AS family, count(*) AS launches,
        count(*) FILTER (is_common) AS common_launches, count(*) FILTER (is_early) AS early_launches,
        count(*) FILTER (in_graph) AS in_graph,
        quantile_cont(duration_ns, [0.05, 0.5, 0.95]) FILTER (coalesce(overrun_ns, 0) = 0) AS quantiles, bool_and(duration_ns % 1000 = 0) AS whole_us,
        CASE WHEN min(registers_per_thread) = max(registers_per_thread) THEN min(registers_per_thread) END AS registers,
        CASE WHEN min(shared_bytes) = max(shared_bytes) THEN min(shared_bytes) END AS shared_bytes,
        median(estimated_occupancy_pct) AS estimated_occupancy_pct,
        median(metrics['sm__maximum_warps_per_active_cycle_pct']) AS limit_occupancy_pct,
        median(metrics['sm__warps_active.avg.pct_of_peak_sustained_active']) AS achieved_occupancy_pct,
        median(coalesce(metrics['gpc__cycles_elapsed.avg.per_second'], metrics['sm__cycles_elapsed.avg.per_second'],
            metrics['smsp__cycles_elapsed.avg.per_second'])) AS clock_hz,
        median(coalesce(metrics['smsp__cycles_elapsed.avg.per_second'], metrics['sm__cycles_elapsed.avg.per_second'])) AS sm_clock_hz,
        CASE WHEN min(clock_domain) = max(clock_domain) THEN struct_pack(launches := count(sampled_hz), median_hz := median(sampled_hz),
            min_hz := min(sampled_hz), max_hz := max(sampled_hz), clock_domain := min(clock_domain)) END AS sampled
    FROM placed
    GROUP BY ALL
)
FROM summed
SELECT * REPLACE (CASE WHEN max(common_launches) OVER (PARTITION BY run, rank) > 0 THEN common_launches END AS common_launches)
QUALIFY row_number() OVER (PARTITION BY run, tool, rank, kernel_key, configuration
    ORDER BY launches DESC, clock_control, cache_control) = 1;
