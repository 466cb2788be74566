-- What ncu measured of each launch configuration, from whichever counters were collected: what speed_of_light judges.
-- @scope run
-- @requires ncu_by_config, _ncu_launch, _ncu_units, advice
-- @column configuration_id   Configuration; key of ncu_by_config.
-- @column run                Run.
-- @column rank               Rank; NULL where unknown.
-- @column name               Kernel name as ncu prints it.
-- @column launches           Launches measured, over all reports.
-- @column duration_ns        Median duration under ncu.
-- @column total_ns           Sum of the durations.
-- @column sm_count           Streaming multiprocessors, where known.
-- @column grid               Grid size.
-- @column block              Block size.
-- @column blocks             Blocks of the grid.
-- @column threads            Threads of a block.
-- @column sm_unit            Busiest unit of the SMs.
-- @column sm_unit_pct        What it used, in % of its peak.
-- @column memory_unit        Busiest unit of the memory system.
-- @column memory_unit_pct    What it used, in % of its peak.
-- @column tensor_pct         Busiest tensor pipe, in % of its peak.
-- @column stall              For what warps waited most.
-- @column stall_pct          Its share of all cycles of warps.
-- @column sm_pct             Throughput of the SMs, in % of the peak.
-- @column memory_pct         Throughput of the memory system, in % of the peak.
-- @column dram_pct           DRAM throughput, in % of the peak.
-- @column l2_pct             L2 throughput, in % of the peak.
-- @column l1_pct             L1/TEX throughput, in % of the peak, of the time in which it was active.
-- @column occupancy_pct      Achieved occupancy.
-- @column dram_bytes_per_s   What DRAM moved.
-- @column max_occupancy_pct  Theoretical occupancy.
-- @column occupancy_limit    What keeps that below 100 %.
-- @column waves              Waves of blocks per SM.
-- @column has_no_dram        Whether the memory is the host's: what moved between the two is in no counter.
-- @column is_busy            Whether some unit is at 60 % of its peak.
CREATE VIEW _ncu_measured AS
WITH limited AS (
    SELECT *, metrics['launch__occupancy_limit_registers'] AS of_registers,
        metrics['launch__occupancy_limit_shared_mem'] AS of_shared, metrics['launch__occupancy_limit_blocks'] AS of_blocks,
        metrics['launch__occupancy_limit_barriers'] AS of_barriers, metrics['launch__occupancy_limit_warps'] AS of_warps
    FROM ncu_by_config
), told AS (
    SELECT l.configuration_id,
        min(TRY_CAST(regexp_extract(a.message, 'resulting in only ([0-9.]+) full waves', 1) AS DOUBLE)) AS waves
    FROM advice AS a JOIN _ncu_launch AS l ON a.kernel_id = l.kernel_id
    WHERE a.rule = 'SOLBottleneck' GROUP BY l.configuration_id
)
SELECT c.configuration_id, run, rank, name, launches, duration_ns, total_ns, sm_count,
    concat_ws('x', grid_x, grid_y, grid_z) AS grid, concat_ws('x', block_x, block_y, block_z) AS block,
    grid_x::BIGINT * grid_y * grid_z AS blocks, block_x::BIGINT * block_y * block_z AS threads,
    u.* EXCLUDE (configuration_id),
    metrics['sm__throughput.avg.pct_of_peak_sustained_elapsed'] AS sm_pct,
    metrics['gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed'] AS memory_pct,
    coalesce(metrics['gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed'],
        metrics['dram__throughput.avg.pct_of_peak_sustained_elapsed'],
        100 * metrics['dram__bytes.sum.per_second'] / nullif(metrics['dram__bytes.sum.peak_sustained']
            * metrics['dram__cycles_elapsed.avg.per_second'], 0)) AS dram_pct,
    metrics['lts__throughput.avg.pct_of_peak_sustained_elapsed'] AS l2_pct,
    metrics['l1tex__throughput.avg.pct_of_peak_sustained_active'] AS l1_pct,
    metrics['sm__warps_active.avg.pct_of_peak_sustained_active'] AS occupancy_pct,
    coalesce(metrics['dram__bytes.sum.per_second'], 1e9 * coalesce(metrics['dram__bytes.sum'],
        metrics['dram__bytes_read.sum'] + metrics['dram__bytes_write.sum'],
        metrics['dram__bytes_op_read.sum'] + metrics['dram__bytes_op_write.sum']) / nullif(duration_ns, 0)) AS dram_bytes_per_s,
    coalesce(metrics['sm__maximum_warps_per_active_cycle_pct'],
        100 * least(of_warps, of_registers, of_shared, of_blocks, of_barriers) / nullif(of_warps, 0)) AS max_occupancy_pct,
    CASE WHEN least(of_registers, of_shared, of_blocks, of_barriers) < of_warps THEN
        CASE least(of_registers, of_shared, of_blocks, of_barriers)
            WHEN of_registers THEN 'registers' WHEN of_shared THEN 'shared memory' WHEN of_blocks THEN 'blocks' ELSE 'barriers' END
        END AS occupancy_limit,
    coalesce(metrics['launch__waves_per_multiprocessor'], blocks::DOUBLE / nullif(sm_count * least(
        of_blocks, of_registers, of_shared, of_warps, of_barriers), 0), t.waves) AS waves,
    -- parts that share the host's memory: it may be the limit
    coalesce(compute_capability IN ('8.7', '11.0', '12.1') AND dram_pct IS NULL, false) AS has_no_dram,
    coalesce(greatest(sm_pct, memory_pct, dram_pct, sm_unit_pct, memory_unit_pct) >= 60, false) AS is_busy
FROM limited AS c LEFT JOIN _ncu_units AS u USING (configuration_id) LEFT JOIN told AS t USING (configuration_id);
