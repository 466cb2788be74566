-- What ncu measured of each kernel and launch configuration, joined over passes and reports:
-- the median of every counter, with its spread.
-- @scope run
-- @needs counters
-- @requires _ncu_by_config _ncu_metric
-- @assumes Launches of one kernel_key, grid and block do the same work: counters of several launches and reports may be joined.
-- @assumes Clock and cache settings are kept apart where a report has them; where none does, they are assumed equal.
-- @first short_name, duration_ns, launches, grid_x, block_x
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
-- @column metrics              Median of each counter over the launches that hold it.
-- @column metrics_min          Least value of each counter.
-- @column metrics_max          Greatest value of each counter.
-- @names kernel name, kernel_key
CREATE VIEW ncu_by_config AS
SELECT c.*, metrics, metrics_min, metrics_max
FROM _ncu_by_config AS c
LEFT JOIN (
    SELECT configuration_id, map(list(metric ORDER BY metric), list(value ORDER BY metric)) AS metrics,
        map(list(metric ORDER BY metric), list(minimum ORDER BY metric)) AS metrics_min,
        map(list(metric ORDER BY metric), list(maximum ORDER BY metric)) AS metrics_max
    FROM _ncu_metric GROUP BY configuration_id
) AS m USING (configuration_id)
ORDER BY run, rank, name, grid_x, grid_y, grid_z, block_x, block_y, block_z, configuration_id;
