-- Whether each configuration runs on the tensor cores, by the pipe counters, else by its name; NULL where neither shows it.
-- Data-centre Blackwell has two such pipes, tensor and tc: only both idle say that it does not. A pipe that is busy for 2 % of the
-- peak or less may have done nothing but load constants (HFMA2.MMA runs there): then a name that is known decides.
-- @scope run
-- @requires _ncu_launch _ncu_metric
-- @column configuration_id  Configuration; key of ncu_by_config.
-- @column uses_tensor       True, false, or NULL (a matrix kernel whose name and counters do not show it).
-- @column slight_pct        How busy its tensor pipe is, in % of the peak, where that alone, 2 % or less, makes it true; else NULL.
CREATE VIEW _roofline_tensor_use AS
WITH pipe AS (
    SELECT configuration_id, max(value) AS busiest, max(value) FILTER (contains(metric, '.pct_of_peak')) AS busiest_pct,
        max(value) FILTER (regexp_matches(metric, '^sm__(pipe_tensor_cycles_active|inst_executed_pipe_tensor)[.]')) AS whole_pipe,
        max(value) FILTER (regexp_matches(metric, '^sm__(pipe_tc_cycles_active|inst_executed_pipe_tc)[.]')) AS second_pipe
    FROM _ncu_metric
    WHERE regexp_matches(metric, 'pipe_(tensor|tc)[._]') AND NOT regexp_matches(metric, '[.]peak_(sustained|burst)|^derived__sm__')
    GROUP BY configuration_id
), named AS (
    SELECT configuration_id, bool_or(tensor_cores) AS by_name, min(family) AS family,
        max(compute_capability) IN ('10.0', '10.3', '11.0') AS has_two_pipes
    FROM _ncu_launch GROUP BY configuration_id
)
SELECT configuration_id, CASE WHEN coalesce(busiest_pct > 2, busiest > 0) THEN true
    WHEN busiest > 0 THEN coalesce(by_name, true) WHEN whole_pipe = 0 AND (second_pipe = 0 OR NOT coalesce(has_two_pipes, false)) THEN false
    WHEN by_name IS NOT NULL THEN by_name WHEN family IN ('gemm', 'convolution', 'attention') THEN NULL
    ELSE false END AS uses_tensor, CASE WHEN busiest > 0 AND busiest_pct <= 2 AND by_name IS NULL THEN busiest_pct END AS slight_pct
FROM named LEFT JOIN pipe USING (configuration_id);
