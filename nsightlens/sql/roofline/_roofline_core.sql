-- Floating-point operations of the CUDA cores (not the tensor cores), per configuration and precision.
-- @scope run
-- @requires _ncu_metric _roofline_clock _roofline_core_term
-- @column configuration_id      Configuration; key of ncu_by_config.
-- @column precision             fp64, fp32 or fp16.
-- @column work_flop             Operations of one launch; NULL where one of add, mul, fma is unknown.
-- @column work_definition       How the operations were counted.
-- @column rate_flop_per_s       Operations per second where rates alone give them, whatever the duration; NULL where one is a count.
-- @column least_flop_per_s      The same of the least rates over the launches; NULL also where counts give the work.
-- @column greatest_flop_per_s   The same of the greatest rates.
-- @column missing               Instructions whose counter is missing.
-- @column ncu_chart_flop_per_s  Operations per cycle times ncu_chart_clock_hz: the height of NVIDIA's own chart.
-- @column ncu_chart_clock_hz    Clock of that chart.
-- @column peak_flop_per_s       Roof at the clock that ncu measured.
-- @column clock_hz              That clock.
CREATE VIEW _roofline_core AS
WITH counted AS (
    SELECT configuration_id, precision, op, weight, basis, form, value * factor AS instructions, smsp_hz, sm_hz,
        ends_with(metric, 'hfma_pred_on_x2') AS is_old_build,
        value * factor * CASE basis WHEN 'launch' THEN 1 WHEN 'smsp cycle' THEN smsp_cycles WHEN 'sm cycle' THEN sm_cycles
            WHEN 'second' THEN seconds END AS in_launch,
        factor * CASE basis WHEN 'smsp cycle' THEN smsp_hz WHEN 'sm cycle' THEN sm_hz WHEN 'second' THEN 1 END AS per_second,
        value * per_second AS in_second, minimum * per_second AS least, maximum * per_second AS greatest
    FROM _ncu_metric JOIN _roofline_core_term USING (metric) JOIN _roofline_clock USING (configuration_id)
), per_op AS (
    SELECT configuration_id, precision, op, weight, max(smsp_hz) AS smsp_hz, max(sm_hz) AS sm_hz,
        arg_min(in_launch, form) FILTER (basis <> 'peak' AND in_launch IS NOT NULL) AS in_launch,
        arg_min(in_second, form) FILTER (basis <> 'peak' AND in_second IS NOT NULL) AS in_second,
        arg_min(least, form) FILTER (basis <> 'peak' AND in_second IS NOT NULL) AS least,
        arg_min(greatest, form) FILTER (basis <> 'peak' AND in_second IS NOT NULL) AS greatest,
        arg_min(basis, form) FILTER (basis <> 'peak' AND in_launch IS NOT NULL) AS basis,
        arg_min(basis, form) FILTER (basis <> 'peak' AND in_second IS NOT NULL) AS rate_basis,
        arg_min(instructions, form) FILTER (basis IN ('smsp cycle', 'sm cycle')) AS per_cycle,
        arg_min(instructions, form) FILTER (basis = 'peak') AS peak_per_cycle,
        max(is_old_build) AS is_old_build
    FROM counted GROUP BY configuration_id, precision, op, weight
)
SELECT configuration_id, precision,
    CASE WHEN count(in_launch) = 3 THEN sum(weight * in_launch ORDER BY weight * in_launch) END AS work_flop,
    coalesce(string_agg(DISTINCT CASE basis WHEN 'launch' THEN 'counts' WHEN 'second' THEN 'rate per second x duration'
        ELSE 'rate per ' || basis || ' x cycles' END, '; '),
        string_agg(DISTINCT CASE rate_basis WHEN 'second' THEN 'rate per second'
            ELSE 'rate per ' || rate_basis || ' x clock' END, '; ')) || CASE precision WHEN 'fp16' THEN ' (add, mul x2, fma x4)'
        ELSE ' (add, mul x1, fma x2)' END AS work_definition,
    CASE WHEN count(in_second) = 3 THEN sum(weight * in_second ORDER BY weight * in_second) END AS rate_flop_per_s,
    CASE WHEN count(in_second) = 3 AND count(*) FILTER (basis = 'launch') = 0 THEN sum(weight * least ORDER BY weight * least) END AS least_flop_per_s,
    CASE WHEN count(in_second) = 3 AND count(*) FILTER (basis = 'launch') = 0 THEN sum(weight * greatest ORDER BY weight * greatest) END AS greatest_flop_per_s,
    nullif(concat_ws(', ', CASE WHEN count(coalesce(in_launch, in_second)) FILTER (ends_with(op, 'add')) = 0 THEN 'add' END,
        CASE WHEN count(coalesce(in_launch, in_second)) FILTER (ends_with(op, 'mul')) = 0 THEN 'mul' END,
        CASE WHEN count(coalesce(in_launch, in_second)) FILTER (ends_with(op, 'fma')) = 0 THEN 'fma' END), '') AS missing,
    -- ncu builds that name the derived metric hfma_x2 draw half of the operations; their chart value stays as they draw it.
    CASE WHEN count(per_cycle) = 3 THEN sum(weight * per_cycle ORDER BY weight * per_cycle) * max(smsp_hz) * CASE WHEN max(is_old_build) THEN 0.5 ELSE 1 END
        END AS ncu_chart_flop_per_s,
    CASE WHEN count(per_cycle) = 3 THEN max(smsp_hz) END AS ncu_chart_clock_hz,
    max(weight * peak_per_cycle) FILTER (ends_with(op, 'fma')) * max(sm_hz) AS peak_flop_per_s,
    max(sm_hz) AS clock_hz
FROM per_op GROUP BY configuration_id, precision;
