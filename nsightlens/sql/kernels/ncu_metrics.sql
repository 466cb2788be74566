-- Every ncu counter, one row per launch and metric, in ncu's base units (ns, byte, hz, cycle, %).
-- One metric of one launch is shorter to write: SELECT metrics['dram__bytes.sum'] FROM kernels WHERE tool = 'ncu'.
-- @scope rows
-- @needs counters
-- @assumes Counters of one launch come from several replays of it, and hold only together if each replay did the same.
-- @column run        Run (one workload in one configuration).
-- @column rank       Rank of the process; NULL where unknown.
-- @column kernel_id  The launch; key of `kernels`.
-- @column ncu_id     ncu's own ID of the launch within its report.
-- @column family     Kernel family (gemm, collective, ...).
-- @column name       Kernel name as ncu prints it.
-- @column metric     Raw metric name, such as dram__bytes.sum.
-- @column value      Value in base units; NULL where ncu printed n/a.
-- @names kernel name
CREATE VIEW ncu_metrics AS
SELECT
    run, rank, kernel_id, ncu_id, family, name,
    unnest(map_keys(metrics)) AS metric,
    unnest(map_values(metrics)) AS value
FROM kernels
WHERE tool = 'ncu'
ORDER BY run, rank, kernel_id, metric;
