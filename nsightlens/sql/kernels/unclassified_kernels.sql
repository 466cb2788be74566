-- Kernels of family `other`: the names that no rule recognised, per run and tool, with the share of time they hold.
-- @scope run
-- @requires kernel_summary
-- @assumes The family follows from the name alone: a kernel with a telling name that does something else is not listed.
-- @column run        Run (one workload in one configuration).
-- @column tool       Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
-- @column time_pct   Share of the summed kernel time of this run and tool, to one decimal.
-- @column total_ns   Sum of duration_ns.
-- @column instances  Kernel launches.
-- @column name       Kernel name as the tool prints it.
-- @names kernel name
CREATE VIEW unclassified_kernels AS
SELECT run, tool, time_pct, total_ns, instances, name
FROM kernel_summary
WHERE family IS NULL OR family = 'other'
ORDER BY run, tool, total_ns DESC NULLS LAST, name;
