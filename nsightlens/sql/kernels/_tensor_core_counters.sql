-- Which kernels of a run used tensor cores by ncu's counters: the pipes' instructions and active cycles. At 2 % of the peak or less
-- the counters leave it open (see _roofline_tensor_use).
-- @scope run
-- @requires _ncu_by_config, _ncu_metric
-- @column run           Run.
-- @column kernel_key    Canonical name of the kernel.
-- @column tensor_cores  True where a tensor pipe was active in any launch, false where all of them were idle.
CREATE VIEW _tensor_core_counters AS
WITH pipe AS (
    SELECT run, kernel_key, max(value) AS busiest, max(value) FILTER (contains(metric, '.pct_of_peak')) AS busiest_pct,
        max(value) FILTER (regexp_matches(metric, '^sm__(pipe_tensor_cycles_active|inst_executed_pipe_tensor)[.]')) AS whole_pipe
    FROM _ncu_metric JOIN _ncu_by_config USING (configuration_id)
    WHERE contains(metric, 'pipe_tensor') AND NOT regexp_matches(metric, '[.]peak_(sustained|burst)|^derived__sm__')
    GROUP BY run, kernel_key
)
SELECT run, kernel_key, busiest > 0 AS tensor_cores FROM pipe WHERE coalesce(busiest_pct > 2, busiest > 0) OR whole_pipe = 0;
