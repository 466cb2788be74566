-- ncu's GPU Speed Of Light, per kernel and launch configuration: how much of what the SMs and the memory system can do at most it
-- used, and what holds it back, by the limits of ncu's own rule (SOLBottleneck). Those that took the most time under
-- ncu come first: replay and locked clocks change times, so they rank kernels and are no shares of a job.
-- @scope run
-- @needs counters
-- @requires ncu_by_config, _ncu_launch, advice
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
CREATE VIEW speed_of_light AS
WITH configuration AS MATERIALIZED (
    SELECT * FROM ncu_by_config
), counted AS (
    SELECT configuration_id, unnest(map_keys(metrics)) AS metric, unnest(map_values(metrics)) AS value FROM configuration
), part AS (
    SELECT configuration_id, value, metric LIKE 'sm\_\_%' ESCAPE '\' AS is_sm, regexp_extract(metric, '^(.*)[.]avg[.]', 1) AS counter,
        regexp_extract(metric, '^sm__(?:inst_executed_)?pipe_([a-z]+[0-9]*)', 1) AS pipe
    FROM counted
    WHERE regexp_matches(metric, '^(sm|l1tex|lts|dram|gpu)__[a-z0-9_]+[.]avg[.]pct_of_peak_sustained_elapsed$')
        AND NOT starts_with(metric, 'l1tex__throughput')  -- its parts are of L1/TEX or of LSU
), named AS (
    SELECT configuration_id, value, is_sm, CASE
        WHEN counter IN ('gpu__dram_throughput', 'dram__throughput', 'dram__cycles_active') THEN 'DRAM'
        WHEN starts_with(counter, 'lts__') THEN 'L2'
        WHEN pipe = 'lsu' OR counter = 'l1tex__lsuin_requests' THEN 'LSU'
        WHEN starts_with(counter, 'l1tex__') THEN 'L1/TEX'
        WHEN pipe IN ('tensor', 'tc') THEN 'tensor'
        WHEN pipe IN ('fma', 'fmaheavy', 'fmalite') THEN 'FMA'
        WHEN pipe IN ('alu', 'aluheavy', 'alulite') THEN 'ALU'
        WHEN pipe NOT IN ('', 'shared') THEN upper(pipe)
        WHEN counter IN ('sm__issue_active', 'sm__inst_issued', 'sm__inst_executed') THEN 'instruction issue' END AS unit
    FROM part
), busiest AS (
    SELECT configuration_id, arg_max(unit, value) FILTER (is_sm) AS sm_unit, max(value) FILTER (is_sm) AS sm_unit_pct,
        arg_max(unit, value) FILTER (NOT is_sm) AS memory_unit, max(value) FILTER (NOT is_sm) AS memory_unit_pct,
        max(value) FILTER (unit = 'tensor') AS tensor_pct
    FROM named WHERE unit IS NOT NULL GROUP BY configuration_id
), stalled AS (
    SELECT configuration_id, value, starts_with(metric, 'smsp__pcsamp') AS is_sampled, regexp_extract(metric,
        '^smsp__(?:pcsamp|average)_warps_issue_stalled_([a-z_]+?)(?:_per_issue_active)?(?:[.]ratio)?$', 1) AS reason
    FROM counted WHERE contains(metric, 'warps_issue_stalled') AND NOT contains(metric, 'not_issued')
), waiting AS (
    SELECT configuration_id, arg_max(reason, value) FILTER (reason NOT IN ('selected', 'not_selected')) AS stall,
        100 * max(value) FILTER (reason NOT IN ('selected', 'not_selected')) / nullif(sum(value), 0) AS stall_pct, is_sampled
    FROM stalled WHERE reason <> '' GROUP BY configuration_id, is_sampled
), told AS (
    SELECT l.configuration_id,
        min(TRY_CAST(regexp_extract(a.message, 'resulting in only ([0-9.]+) full waves', 1) AS DOUBLE)) AS waves
    FROM advice AS a JOIN _ncu_launch AS l ON a.kernel_id = l.kernel_id
    WHERE a.rule = 'SOLBottleneck' GROUP BY l.configuration_id
), measured AS (
    SELECT c.* EXCLUDE (metrics, metrics_min, metrics_max), u.sm_unit, u.sm_unit_pct, u.memory_unit, u.memory_unit_pct, u.tensor_pct,
        w.stall, w.stall_pct,
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
        metrics['launch__occupancy_limit_registers'] AS of_registers, metrics['launch__occupancy_limit_shared_mem'] AS of_shared,
        metrics['launch__occupancy_limit_blocks'] AS of_blocks, metrics['launch__occupancy_limit_barriers'] AS of_barriers,
        metrics['launch__occupancy_limit_warps'] AS of_warps,
        coalesce(metrics['sm__maximum_warps_per_active_cycle_pct'],
            100 * least(of_warps, of_registers, of_shared, of_blocks, of_barriers) / nullif(of_warps, 0)) AS max_occupancy_pct,
        grid_x::BIGINT * grid_y * grid_z AS blocks, block_x::BIGINT * block_y * block_z AS threads,
        coalesce(metrics['launch__waves_per_multiprocessor'], blocks::DOUBLE / nullif(sm_count * least(
            of_blocks, of_registers, of_shared, of_warps, of_barriers), 0), t.waves) AS waves,
        -- Parts whose memory is the host's: what moved between the two is in no counter, so that it may be the limit.
        coalesce(compute_capability IN ('8.7', '11.0', '12.1') AND dram_pct IS NULL, false) AS has_no_dram,
        coalesce(greatest(sm_pct, memory_pct, dram_pct, sm_unit_pct, memory_unit_pct) >= 60, false) AS is_busy
    FROM configuration AS c LEFT JOIN busiest AS u USING (configuration_id) LEFT JOIN told AS t USING (configuration_id)
    LEFT JOIN (SELECT * FROM waiting QUALIFY row_number() OVER (PARTITION BY configuration_id ORDER BY is_sampled) = 1) AS w
        USING (configuration_id)
), judged AS (
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
    FROM measured
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
    CASE WHEN least(of_registers, of_shared, of_blocks, of_barriers) < of_warps THEN
        CASE least(of_registers, of_shared, of_blocks, of_barriers)
            WHEN of_registers THEN 'registers' WHEN of_shared THEN 'shared memory' WHEN of_blocks THEN 'blocks' ELSE 'barriers' END
        END AS occupancy_limit,
    stall, round(stall_pct, 1) AS stall_pct, round(waves, 2) AS waves,
    launches, duration_ns, total_ns,
    concat_ws('x', grid_x, grid_y, grid_z) AS grid, concat_ws('x', block_x, block_y, block_z) AS block, configuration_id
FROM judged
WHERE coalesce(unit, limited_by) IS NOT NULL OR dram_bytes_per_s IS NOT NULL
ORDER BY run, total_ns DESC NULLS LAST, rank, name, configuration_id;
