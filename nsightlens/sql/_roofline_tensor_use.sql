-- Whether each configuration runs on the tensor cores, by the pipe counters, else by its name; NULL where neither tells.
-- @requires _ncu_configuration _ncu_metric
-- @column configuration_id  Configuration; key of ncu_configuration.
-- @column uses_tensor       True, false, or NULL (a matrix kernel whose name and counters do not tell).
CREATE VIEW _roofline_tensor_use AS
WITH pipe AS (
    SELECT configuration_id, max(value) AS busiest,
        max(value) FILTER (regexp_matches(metric, '^sm__(pipe_tensor_cycles_active|inst_executed_pipe_tensor)[.]')) AS whole_pipe
    FROM _ncu_metric
    WHERE contains(metric, 'pipe_tensor') AND NOT regexp_matches(metric, '[.]peak_(sustained|burst)')
    GROUP BY configuration_id
)
SELECT configuration_id, CASE
    WHEN busiest > 0 THEN true
    WHEN whole_pipe = 0 THEN false
    WHEN regexp_matches(lower(name), 'flash_.*(dot_do_o|convert|combine|preprocess|postprocess)') THEN false
    -- Names of vendor libraries: instruction shapes (s16816gemm), instruction kinds, tensor16x8x16, flash attention.
    WHEN regexp_matches(lower(name), 'tensorop|tensor[0-9]+x[0-9]+|warpgroupsize|tcgen05|nvjet|flash_(fwd|bwd|fprop|bprop)'
        || '|(^|[^a-z])([a-z]*[hidwqg])?mma([^a-z]|$)|(^|[^a-z0-9])[hisdcz](884|1688|8816|8832|16816|16832|16864|161616)[a-z_]'
        || '|xmma_[a-z0-9_]*(bf16|f16|tf32|e4m3|e5m2|i8)|fmha_cutlass[fb]_b?f16') THEN true
    WHEN family IN ('gemm', 'convolution', 'attention')
        AND NOT regexp_matches(lower(name), 'simt|sgemm|scudnn|gemv|gevm|ffma') THEN NULL
    ELSE false END AS uses_tensor
FROM _ncu_configuration LEFT JOIN pipe USING (configuration_id);
