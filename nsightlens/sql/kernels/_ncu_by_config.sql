-- The columns of ncu_by_config that are cheap to have: all but the counters.
-- @scope run
-- @requires _ncu_launch _ncu_metric
-- @column configuration_id     Configuration: run, rank, kernel_key, grid, block, clock and cache settings, GPU.
-- @column run                  Run.
-- @column rank                 Rank; NULL where unknown.
-- @column gpu                  Product name of the GPU; NULL where no report has it.
-- @column compute_capability   Compute capability, such as '9.0'.
-- @column sm_count             Streaming multiprocessors, where known.
-- @column name                 Kernel name as ncu prints it.
-- @column short_name           Base name of the kernel.
-- @column kernel_key           Canonical name, the same in the three tools.
-- @column family               Family of the kernel.
-- @column grid_x               Grid size, x.
-- @column grid_y               Grid size, y.
-- @column grid_z               Grid size, z.
-- @column block_x              Block size, x.
-- @column block_y              Block size, y.
-- @column block_z              Block size, z.
-- @column clock_control        ncu --clock-control, where known.
-- @column cache_control        ncu --cache-control, where known.
-- @column summarised           True where ncu --print-summary printed averages: single launches are not known then.
-- @column simulated            True where a capture behind it is marked as simulated.
-- @column launches             Launches measured, over all reports.
-- @column duration_ns          Median duration under ncu, rounded to 1 ns.
-- @column min_duration_ns      Shortest.
-- @column max_duration_ns      Longest.
-- @column total_ns             Sum of the durations; duration_ns times launches where not every launch has one.
-- @column duration_definition  The counter behind duration_ns.
CREATE VIEW _ncu_by_config AS
WITH launch AS (
    SELECT configuration_id, run, rank, gpu, compute_capability, max(sm_count) AS sm_count, min(name) AS name,
        min(short_name) AS short_name, kernel_key, min(family) AS family, grid_x, grid_y, grid_z, block_x, block_y, block_z,
        clock_control, cache_control, summarised, max(simulated) AS simulated, CAST(sum(launches) AS BIGINT) AS launches,
        CASE WHEN count(duration_ns) = count(*) THEN sum(duration_ns) END AS sum_ns, median(duration_ns) AS median_ns, min(duration_ns) AS least_ns, max(duration_ns) AS greatest_ns
    FROM _ncu_launch
    GROUP BY configuration_id, run, rank, gpu, compute_capability, kernel_key, grid_x, grid_y, grid_z, block_x, block_y, block_z,
        clock_control, cache_control, summarised
), counted AS (
    SELECT configuration_id, max(value) FILTER (metric = 'gpu__time_duration.sum') AS time_ns,
        max(minimum) FILTER (metric = 'gpu__time_duration.sum') AS time_min_ns,
        max(maximum) FILTER (metric = 'gpu__time_duration.sum') AS time_max_ns,
        max(value) FILTER (metric = 'gpu__time_active.avg') AS active_ns,
        max(minimum) FILTER (metric = 'gpu__time_active.avg') AS active_min_ns,
        max(maximum) FILTER (metric = 'gpu__time_active.avg') AS active_max_ns,
        1e9 * max(value) FILTER (metric = 'sm__cycles_elapsed.avg')
            / nullif(max(value) FILTER (metric = 'sm__cycles_elapsed.avg.per_second'), 0) AS cycles_ns
    FROM _ncu_metric
    WHERE metric IN ('gpu__time_duration.sum', 'gpu__time_active.avg', 'sm__cycles_elapsed.avg',
        'sm__cycles_elapsed.avg.per_second')
    GROUP BY configuration_id
)
SELECT configuration_id, run, rank, gpu, compute_capability, sm_count, name, short_name, kernel_key, family,
    grid_x, grid_y, grid_z, block_x, block_y, block_z, clock_control, cache_control, summarised, simulated, launches,
    CAST(round(coalesce(median_ns, time_ns, active_ns, cycles_ns)) AS BIGINT) AS duration_ns,
    CAST(round(coalesce(least_ns, time_min_ns, active_min_ns)) AS BIGINT) AS min_duration_ns,
    CAST(round(coalesce(greatest_ns, time_max_ns, active_max_ns)) AS BIGINT) AS max_duration_ns,
    TRY_CAST(coalesce(sum_ns, duration_ns::HUGEINT * launches) AS BIGINT) AS total_ns,
    CASE WHEN coalesce(median_ns, time_ns) IS NOT NULL THEN 'gpu__time_duration.sum'
        WHEN active_ns IS NOT NULL THEN 'gpu__time_active.avg'
        WHEN cycles_ns IS NOT NULL THEN 'sm__cycles_elapsed.avg / sm__cycles_elapsed.avg.per_second' END AS duration_definition
FROM launch LEFT JOIN counted USING (configuration_id);
