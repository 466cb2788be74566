-- Work of every configuration and precision, CUDA cores and tensor cores, with the key of its datasheet peak.
-- @scope run
-- @requires _roofline_core _roofline_tensor _roofline_tensor_use
-- @column configuration_id      Configuration; key of ncu_by_config.
-- @column precision             fp64, fp32, fp16, tensor_<path>; 'tensor' where tensor work was not counted; NULL where nothing was.
-- @column peak_key              Key of _gpu_peak.
-- @column work_flop             Operations of one launch.
-- @column work_definition       How they were counted.
-- @column rate_flop_per_s       Operations per second where rates alone give them; NULL where they were counted otherwise.
-- @column least_flop_per_s      The same of the least rates over the launches.
-- @column greatest_flop_per_s   The same of the greatest rates.
-- @column missing               Instructions whose counter is missing.
-- @column ncu_chart_flop_per_s  Height of NVIDIA's own chart.
-- @column ncu_chart_clock_hz    Clock of that chart.
-- @column peak_flop_per_s       Roof at the clock that ncu measured.
-- @column clock_hz              That clock.
-- @column is_main               True for one precision of each configuration: the one that does most of the operations; where
--                               none is known to do any, one whose operations are unknown.
-- @column is_uncounted_tensor   Whether the configuration runs on tensor cores and they were not counted.
-- @column slight_pct            As in _roofline_tensor_use.
-- @column counted               The precision that most of the counted operations are of; NULL where none were.
-- @column is_doubtful           Whether the configuration may run on tensor cores, and nothing shows whether it does.
CREATE VIEW _roofline_work AS
WITH work AS MATERIALIZED (
    SELECT configuration_id, precision, precision AS peak_key, work_flop, work_definition, rate_flop_per_s, least_flop_per_s,
        greatest_flop_per_s, missing, ncu_chart_flop_per_s, ncu_chart_clock_hz, peak_flop_per_s, clock_hz, false AS is_tensor
    FROM _roofline_core
    UNION ALL
    SELECT configuration_id, precision, CASE WHEN is_sparse THEN NULL
            WHEN src = 'fp16_bf16_tf32' THEN 'tensor_fp16'
            ELSE 'tensor_' || CASE WHEN src = 'fp4' THEN 'fp4' WHEN regexp_matches(src, 'fp[468]') THEN 'fp8' ELSE src END
                || CASE WHEN dst = 'fp16' AND src <> 'fp4' THEN '_dst_fp16' ELSE '' END END,
        work_flop, work_definition, rate_flop_per_s, NULL, NULL, NULL, ncu_chart_flop_per_s, ncu_chart_clock_hz, peak_flop_per_s,
        clock_hz, true
    FROM _roofline_tensor
), total AS (
    -- Work of a launch where it is known, else its rate: whether there is any is the same question of both.
    SELECT configuration_id, uses_tensor, slight_pct, arg_max(precision, coalesce(work_flop, rate_flop_per_s)) AS counted, sum(coalesce(work_flop, rate_flop_per_s)) FILTER (is_tensor) AS tensor_flop,
        max(coalesce(work_flop, rate_flop_per_s)) AS most, count(precision) AS precisions,
        count(*) FILTER (precision = 'fp32') AS fp32_rows
    FROM _roofline_tensor_use LEFT JOIN work USING (configuration_id)
    GROUP BY configuration_id, uses_tensor, slight_pct
), judged AS MATERIALIZED (
    SELECT *, coalesce(uses_tensor, false) AND coalesce(tensor_flop, 0) = 0
            -- A tensor pipe that is hardly busy adds next to nothing to work that is counted as FP64: that pipe is as fast as the cores.
            AND (slight_pct IS NULL OR counted IS DISTINCT FROM 'fp64') AS is_uncounted_tensor,
        uses_tensor IS NULL AND tensor_flop IS NULL AS is_doubtful,
        -- No operations of one kind say nothing of those that were not collected.
        NOT coalesce(uses_tensor, false) AND most = 0 AND fp32_rows = 0 AS is_uncounted_core
    FROM total
)
SELECT configuration_id, precision, peak_key, work_flop, work_definition, rate_flop_per_s, least_flop_per_s,
    greatest_flop_per_s, missing, ncu_chart_flop_per_s, ncu_chart_clock_hz, peak_flop_per_s, clock_hz, NOT is_uncounted_tensor AND NOT is_uncounted_core AND row_number() OVER (
        PARTITION BY configuration_id ORDER BY CASE WHEN coalesce(work_flop, rate_flop_per_s) > 0 THEN 0
            WHEN coalesce(work_flop, rate_flop_per_s) = 0 THEN 2 WHEN precision = 'fp32' THEN 1 ELSE 3 END,
            work_flop DESC NULLS LAST, rate_flop_per_s DESC NULLS LAST, precision = 'fp32' DESC, precision) = 1 AS is_main,
    is_uncounted_tensor, slight_pct, counted, is_doubtful
FROM judged JOIN work USING (configuration_id)
UNION ALL
-- What was not collected has no row in `work`.
SELECT configuration_id, CASE WHEN is_uncounted_tensor THEN 'tensor' WHEN is_uncounted_core THEN 'fp32' END, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, true, is_uncounted_tensor, slight_pct, counted, is_doubtful
FROM judged WHERE is_uncounted_tensor OR is_uncounted_core OR precisions = 0;
