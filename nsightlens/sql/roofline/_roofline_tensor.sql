-- Operations of the tensor cores, per configuration and path (input and output type, dense or sparse).
-- @scope run
-- @requires _roofline_tensor_metric
-- @column configuration_id      Configuration; key of ncu_by_config.
-- @column precision             tensor_<input>[_dst_<output>][_sparsity_on].
-- @column src                   Input types, as in ncu's metric name.
-- @column dst                   Output type; NULL where the counter does not distinguish outputs.
-- @column is_sparse             Whether the counter holds structured-sparse operations only.
-- @column work_flop             Operations of one launch.
-- @column work_definition       How the operations were counted.
-- @column rate_flop_per_s       Operations per second where rates alone give them, whatever the duration; NULL where one is a count.
-- @column ncu_chart_flop_per_s  Operations per cycle times ncu_chart_clock_hz: the height of NVIDIA's own chart.
-- @column ncu_chart_clock_hz    Clock of that chart.
-- @column peak_flop_per_s       Roof at the clock that ncu measured.
-- @column clock_hz              That clock.
CREATE VIEW _roofline_tensor AS
SELECT configuration_id,
    'tensor_' || src || coalesce('_dst_' || dst, '')
        || CASE WHEN sparsity IS NOT DISTINCT FROM 'on' THEN '_sparsity_on' ELSE '' END AS precision,
    src, dst, sparsity IS NOT DISTINCT FROM 'on' AS is_sparse, CASE WHEN count(work_flop) = count(*) THEN sum(work_flop ORDER BY work_flop) END AS work_flop,
    string_agg(DISTINCT CASE basis WHEN 'launch' THEN 'counts' WHEN 'second' THEN 'rate per second x duration'
        WHEN 'sm cycle' THEN 'rate per sm cycle x cycles' ELSE 'rate' END, '; ')
        || CASE WHEN count(op) > 0 THEN ' (sum of ' || string_agg(DISTINCT op, ', ' ORDER BY op) || ')' ELSE '' END
        AS work_definition,
    CASE WHEN count(rate) = count(*) THEN sum(rate ORDER BY rate) END AS rate_flop_per_s,
    CASE WHEN count(per_cycle) = count(*) THEN sum(per_cycle ORDER BY per_cycle) * max(sm_hz) END AS ncu_chart_flop_per_s,
    CASE WHEN count(per_cycle) = count(*) THEN max(sm_hz) END AS ncu_chart_clock_hz,
    -- Instruction kinds have roofs of their own (Hopper's mma.sync is slower than wgmma): that of the kinds in use.
    coalesce(max(peak_per_cycle) FILTER (work_flop > 0 OR rate > 0), max(peak_per_cycle)) * max(sm_hz) AS peak_flop_per_s,
    max(sm_hz) AS clock_hz
FROM _roofline_tensor_metric
GROUP BY configuration_id, src, dst, is_sparse, precision;
