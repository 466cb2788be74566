-- ncu's GPU Speed Of Light, per kernel and launch configuration: how much of what the SMs and the memory system can do at most it
-- used, and what holds it back, by the limits of ncu's own rule (SOLBottleneck). Those that took the most time under
-- ncu come first: replay and locked clocks change times, so they rank kernels and are no shares of a job.
-- @scope run
-- @needs counters
-- @requires ncu_by_config
-- @assumes Launches of one kernel_key, grid and block do the same work: counters are medians over launches and reports.
-- @assumes The limits of ncu's rule hold: below 60 % of both a kernel waits, and 10 points tell which of the two limits it.
-- @note   Of what the hardware can do at most, under ncu's replay: roofline has FLOP/s and bytes, headroom what the job could gain.
-- @first name, limited_by, sm_pct, memory_pct, duration_ns, launches
-- @column run               Run.
-- @column rank              Rank; NULL where unknown.
-- @column name              Kernel name as ncu prints it.
-- @column limited_by        latency: below 60 % of both; small grid: likewise, of less than a wave of blocks; memory or compute: 10
--     points more of that (of DRAM, where the memory system is not known); balanced: as much of both; NULL: not known.
-- @column sm_pct            Throughput of the SMs, in % of the peak (ncu: Compute (SM) Throughput); NULL where not collected.
-- @column memory_pct        Throughput of the memory system, caches included, in % of the peak (ncu: Memory Throughput).
-- @column dram_pct          DRAM throughput, in % of the peak.
-- @column l2_pct            L2 throughput, in % of the peak.
-- @column l1_pct            L1/TEX throughput, in % of the peak, of the time in which it was active.
-- @column occupancy_pct     Achieved occupancy: warps, in % of what the SMs hold, of the time in which they were active.
-- @column waves             Waves of blocks per SM: below 1 the grid does not fill the GPU. From ncu, else from the limits of occupancy;
--     NULL where neither these nor the number of SMs are known.
-- @column launches          Launches measured, over all reports.
-- @column duration_ns       Median duration under ncu, rounded to 1 ns.
-- @column total_ns          duration_ns times launches.
-- @column grid              Grid size.
-- @column block             Block size.
-- @column configuration_id  Configuration; key of ncu_by_config.
CREATE VIEW speed_of_light AS
WITH measured AS (
    SELECT *, metrics['sm__throughput.avg.pct_of_peak_sustained_elapsed'] AS sm_pct,
        metrics['gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed'] AS memory_pct,
        coalesce(metrics['gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed'],
            metrics['dram__throughput.avg.pct_of_peak_sustained_elapsed']) AS dram_pct,
        coalesce(metrics['launch__waves_per_multiprocessor'], grid_x::DOUBLE * grid_y * grid_z / nullif(sm_count * least(
            metrics['launch__occupancy_limit_blocks'], metrics['launch__occupancy_limit_registers'],
            metrics['launch__occupancy_limit_shared_mem'], metrics['launch__occupancy_limit_warps'],
            metrics['launch__occupancy_limit_barriers']), 0)) AS waves,
        -- Parts whose memory is the host's: what moved between the two is in no counter, so that it may be the limit.
        coalesce(compute_capability IN ('8.7', '11.0', '12.1') AND dram_pct IS NULL, false) AS has_no_dram
    FROM ncu_by_config
)
SELECT run, rank, name,
    CASE WHEN sm_pct < 60 AND memory_pct < 60 THEN CASE WHEN waves < 1 THEN 'small grid' WHEN NOT has_no_dram THEN 'latency' END
        WHEN coalesce(memory_pct, CASE WHEN dram_pct >= 60 THEN dram_pct END) - sm_pct >= 10 THEN 'memory'
        WHEN has_no_dram THEN NULL WHEN sm_pct - memory_pct >= 10 THEN 'compute' WHEN sm_pct + memory_pct IS NOT NULL THEN 'balanced'
        END AS limited_by,
    round(sm_pct, 2) AS sm_pct, round(memory_pct, 2) AS memory_pct, round(dram_pct, 2) AS dram_pct,
    round(metrics['lts__throughput.avg.pct_of_peak_sustained_elapsed'], 2) AS l2_pct,
    round(metrics['l1tex__throughput.avg.pct_of_peak_sustained_active'], 2) AS l1_pct,
    round(metrics['sm__warps_active.avg.pct_of_peak_sustained_active'], 2) AS occupancy_pct,
    round(waves, 2) AS waves,
    launches, duration_ns, TRY_CAST(duration_ns::HUGEINT * launches AS BIGINT) AS total_ns,
    concat_ws('x', grid_x, grid_y, grid_z) AS grid, concat_ws('x', block_x, block_y, block_z) AS block, configuration_id
FROM measured
WHERE sm_pct IS NOT NULL OR memory_pct IS NOT NULL OR dram_pct IS NOT NULL
ORDER BY run, total_ns DESC NULLS LAST, rank, name, configuration_id;
