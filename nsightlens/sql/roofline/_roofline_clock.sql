-- The clocks that ncu measured while it counted, and the cycles that its per-cycle rates refer to, one row per configuration.
-- @scope run
-- @requires _ncu_by_config _ncu_metric
-- @column configuration_id    Configuration; key of ncu_by_config.
-- @column compute_capability  Compute capability as a number (8.9 < 9.0 < 10.0).
-- @column seconds             Duration in s, for rates.
-- @column smsp_hz             Clock behind rates of the SM sub-partitions (smsp__).
-- @column sm_hz               Clock behind rates of the SMs (sm__).
-- @column smsp_cycles         Elapsed cycles that smsp__ rates are per.
-- @column sm_cycles           Elapsed cycles that sm__ rates are per.
-- @column dram_hz             DRAM clock.
-- @column l2_hz               L2 clock.
-- @column l1_hz               L1/TEX clock.
CREATE VIEW _roofline_clock AS
WITH printed AS (
    SELECT configuration_id,
        max(value) FILTER (metric = 'smsp__cycles_elapsed.avg.per_second') AS smsp_hz,
        max(value) FILTER (metric = 'sm__cycles_elapsed.avg.per_second') AS sm_hz,
        max(value) FILTER (metric = 'smsp__cycles_elapsed.avg') AS smsp_cycles,
        max(value) FILTER (metric = 'sm__cycles_elapsed.avg') AS sm_cycles,
        max(value) FILTER (metric = 'dram__cycles_elapsed.avg.per_second') AS dram_hz,
        max(value) FILTER (metric = 'lts__cycles_elapsed.avg.per_second') AS l2_hz,
        max(value) FILTER (metric = 'l1tex__cycles_elapsed.avg.per_second') AS l1_hz
    FROM _ncu_metric
    WHERE metric IN ('smsp__cycles_elapsed.avg.per_second', 'sm__cycles_elapsed.avg.per_second', 'smsp__cycles_elapsed.avg',
        'sm__cycles_elapsed.avg', 'dram__cycles_elapsed.avg.per_second', 'lts__cycles_elapsed.avg.per_second',
        'l1tex__cycles_elapsed.avg.per_second')
    GROUP BY configuration_id
), timed AS (
    SELECT configuration_id, TRY_CAST(compute_capability AS DECIMAL(4, 1)) AS compute_capability, duration_ns / 1e9 AS seconds,
        printed.* EXCLUDE (configuration_id)
    FROM _ncu_by_config LEFT JOIN printed USING (configuration_id)
)
-- The SM and its sub-partitions share one clock, so that one stands in for the other. gpc__cycles_elapsed is another clock.
SELECT configuration_id, compute_capability, seconds, coalesce(smsp_hz, sm_hz) AS smsp_hz, coalesce(sm_hz, smsp_hz) AS sm_hz,
    coalesce(smsp_cycles, smsp_hz * seconds, sm_cycles, sm_hz * seconds) AS smsp_cycles,
    coalesce(sm_cycles, sm_hz * seconds, smsp_cycles, smsp_hz * seconds) AS sm_cycles, dram_hz, l2_hz, l1_hz
FROM timed;
