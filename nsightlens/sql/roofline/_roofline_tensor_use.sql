-- Whether each configuration runs on the tensor cores, by the pipe counters, else by its name; NULL where neither shows it.
-- @scope run
-- @requires _ncu_launch _ncu_metric
-- @column configuration_id  Configuration; key of ncu_by_config.
-- @column uses_tensor       True, false, or NULL (a matrix kernel whose name and counters do not show it).
CREATE VIEW _roofline_tensor_use AS
WITH pipe AS (
    SELECT configuration_id, max(value) AS busiest,
        max(value) FILTER (regexp_matches(metric, '^sm__(pipe_tensor_cycles_active|inst_executed_pipe_tensor)[.]')) AS whole_pipe
    FROM _ncu_metric
    WHERE contains(metric, 'pipe_tensor') AND NOT regexp_matches(metric, '[.]peak_(sustained|burst)')
    GROUP BY configuration_id
), named AS (
    SELECT configuration_id, bool_or(tensor_cores) AS by_name, min(family) AS family FROM _ncu_launch GROUP BY configuration_id
)
SELECT configuration_id, CASE WHEN busiest > 0 THEN true WHEN whole_pipe = 0 THEN false
    WHEN by_name IS NOT NULL THEN by_name WHEN family IN ('gemm', 'convolution', 'attention') THEN NULL
    ELSE false END AS uses_tensor
FROM named LEFT JOIN pipe USING (configuration_id);
