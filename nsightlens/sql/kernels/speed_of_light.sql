-- ncu's GPU Speed Of Light, per kernel and launch configuration: how much of what the SMs and the memory system can do at most it
-- used, and what holds it back, by the limits of ncu's own rule (SOLBottleneck). Those that took the most time under
-- ncu come first: replay and locked clocks change times, so they rank kernels and are no shares of a job.
-- @scope run
-- @needs counters
-- @requires _ncu_measured
-- @assumes Launches of one kernel_key, grid and block do the same work: counters are medians over launches and reports.
-- @assumes The limits of ncu's rule hold: below 60 % of both a kernel waits, and 10 points tell which of the two limits it.
-- @note   Of what the hardware can do at most, under ncu's replay: roofline has FLOP/s and bytes, headroom what the job could gain.
-- @first name, limited_by, unit, unit_pct, duration_ns, launches
-- @column run               Run.
-- @column rank              Rank; NULL where unknown.
-- @column name              Kernel name as ncu prints it.
-- @column limited_by        small grid: fewer blocks than half of the SMs, or less than a wave, and no unit at 60 %; small blocks:
--     of fewer threads than a warp; latency: below 60 % of both; memory or compute: 10 points more of that (of DRAM, where the
--     memory system is not known; L1/TEX at 60 % while active is memory, SMs at 80 % are compute where memory is not known);
--     memory and compute: as much of both; NULL: not known.
-- @column unit              Busiest unit of those collected: DRAM, L2, L1/TEX, LSU (loads and stores), instruction issue, a pipe (FMA,
--     FP64, ALU, tensor, ...); SM or memory where ncu does not say which of its parts.
-- @column unit_pct          What it used, in % of its peak.
-- @column sm_pct            Throughput of the SMs, in % of the peak (ncu: Compute (SM) Throughput); NULL where not collected.
-- @column memory_pct        Throughput of the memory system, caches included, in % of the peak (ncu: Memory Throughput).
-- @column dram_pct          DRAM throughput, in % of the peak.
-- @column l2_pct            L2 throughput, in % of the peak.
-- @column l1_pct            L1/TEX throughput, in % of the peak, of the time in which it was active.
-- @column tensor_pct        Busiest tensor pipe, in % of its peak; NULL where not collected.
-- @column dram_bytes_per_s  What DRAM moved.
-- @column occupancy_pct     Achieved occupancy: warps, in % of what the SMs hold, of the time in which they were active.
-- @column max_occupancy_pct  Theoretical occupancy: what the launch allows.
-- @column occupancy_limit   What keeps that below 100 %: registers, shared memory, blocks or barriers; NULL where nothing does.
-- @column stall             For what warps waited most, as ncu names it (barrier, long_scoreboard, ...), by samples or cycles.
-- @column stall_pct         Its share of all cycles of warps.
-- @column waves             Waves of blocks per SM: below 1 the grid does not fill the GPU. From ncu, else from the limits of occupancy,
--     else from the text of ncu's rule; NULL where none of these is known.
-- @column launches          Launches measured, over all reports.
-- @column duration_ns       Median duration under ncu, rounded to 1 ns.
-- @column total_ns          Sum of the durations; duration_ns times launches where not every launch has one.
-- @column grid              Grid size.
-- @column block             Block size.
-- @column configuration_id  Configuration; key of ncu_by_config.
-- @names kernel name
CREATE VIEW speed_of_light AS
WITH judged AS (
    SELECT *, CASE
            WHEN blocks > 0 AND 2 * blocks < sm_count OR NOT is_busy AND waves < 1 THEN 'small grid'
            WHEN threads < 32 AND coalesce(memory_pct, dram_pct, 0) < 60 THEN 'small blocks'
            WHEN sm_pct < 60 AND memory_pct < 60 AND l1_pct >= 60 AND waves >= 1 THEN 'memory'
            WHEN sm_pct < 60 AND memory_pct < 60 THEN CASE WHEN NOT has_no_dram THEN 'latency' END
            WHEN coalesce(memory_pct, CASE WHEN dram_pct >= 60 THEN dram_pct END) - sm_pct >= 10 THEN 'memory'
            WHEN has_no_dram THEN NULL
            WHEN sm_pct - coalesce(memory_pct, dram_pct, 0) >= 10 AND (memory_pct IS NOT NULL OR sm_pct >= 80) THEN 'compute'
            WHEN sm_pct + memory_pct IS NOT NULL THEN 'memory and compute' END AS limited_by,
        -- A unit that is not as busy as the whole that it is a part of is not the one that makes it busy.
        CASE WHEN sm_unit_pct >= coalesce(sm_pct, 0) - 1 THEN sm_unit WHEN sm_pct IS NOT NULL THEN 'SM' END AS of_sm,
        CASE WHEN memory_unit_pct >= coalesce(memory_pct, 0) - 1 THEN memory_unit WHEN memory_pct IS NOT NULL THEN 'memory'
            WHEN dram_pct IS NOT NULL THEN 'DRAM' END AS of_memory,
        greatest(sm_pct, sm_unit_pct) AS of_sm_pct, coalesce(greatest(memory_pct, memory_unit_pct), dram_pct) AS of_memory_pct
    FROM _ncu_measured
)
SELECT run, rank, name, limited_by,
    CASE WHEN limited_by = 'memory' AND sm_pct < 60 AND memory_pct < 60 THEN 'L1/TEX'
        WHEN of_memory_pct > coalesce(of_sm_pct, -1) OR of_memory_pct = of_sm_pct AND limited_by = 'memory' THEN of_memory
        ELSE of_sm END AS unit,
    round(CASE WHEN unit = 'L1/TEX' AND limited_by = 'memory' AND memory_pct < 60 THEN l1_pct
        ELSE greatest(of_sm_pct, of_memory_pct) END, 2) AS unit_pct,
    round(sm_pct, 2) AS sm_pct, round(memory_pct, 2) AS memory_pct, round(dram_pct, 2) AS dram_pct,
    round(l2_pct, 2) AS l2_pct, round(l1_pct, 2) AS l1_pct, round(tensor_pct, 2) AS tensor_pct, dram_bytes_per_s,
    round(occupancy_pct, 2) AS occupancy_pct, round(max_occupancy_pct, 2) AS max_occupancy_pct,
    occupancy_limit, stall, round(stall_pct, 1) AS stall_pct, round(waves, 2) AS waves,
    launches, duration_ns, total_ns,
    grid, block, configuration_id
FROM judged
WHERE coalesce(unit, limited_by) IS NOT NULL OR dram_bytes_per_s IS NOT NULL
ORDER BY run, total_ns DESC NULLS LAST, rank, name, configuration_id;
