-- All GPU time of each process: kernels, memory operations and graphs whose kernels are unknown, each piece for itself.
-- @scope profile
-- @requires _bounded_kernels, memory_ops, graph_executions
-- @column run         Run.
-- @column tool        nsys or kineto.
-- @column profile_id  Profile.
-- @column process_id  OS process.
-- @column total_ns    Sum of the durations.
CREATE VIEW _gpu_time AS
SELECT run, tool, profile_id, process_id, TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns
FROM (
    SELECT run, tool, profile_id, process_id, duration_ns FROM _bounded_kernels
    UNION ALL
    SELECT run, tool, profile_id, process_id, duration_ns FROM memory_ops
    UNION ALL
    SELECT run, tool, profile_id, process_id, duration_ns FROM graph_executions
)
WHERE tool <> 'ncu' AND duration_ns >= 0
GROUP BY run, tool, profile_id, process_id;
