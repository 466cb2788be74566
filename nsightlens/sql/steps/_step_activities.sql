-- What fills the steps of a process, each interval under the category that the TensorBoard plugin would count it in.
-- What the host did is as _host_activities has it.
-- @scope rows
-- @requires _bounded_kernels, memory_ops, graph_executions, api_calls, _host_activities
-- @param  communication_pattern  Regex of the kernel names that communicate; NULL: family `collective`.
-- @column profile_id    Profile.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process.
-- @column start_ns      Start, relative to the profile's origin.
-- @column end_ns        End.
-- @column category      kernel, memcpy, memset, communication (kernels and copies), communication_call (its host
--                       side), runtime, data_loader or cpu_exec.
CREATE MACRO _step_activities(communication_pattern := NULL) AS TABLE
SELECT profile_id, process_id, window_index, start_ns, start_ns + duration_ns AS end_ns,
    CASE WHEN CASE WHEN communication_pattern IS NULL THEN family = 'collective'
        ELSE regexp_matches(name, communication_pattern) END THEN 'communication' ELSE 'kernel' END AS category
FROM _bounded_kernels
WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns > 0
UNION ALL
SELECT profile_id, process_id, window_index, start_ns, start_ns + duration_ns,
    CASE WHEN communication_pattern IS NULL AND collective IS NOT NULL THEN 'communication' WHEN kind = 'memset' THEN 'memset'
        ELSE 'memcpy' END
FROM memory_ops
WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns > 0
UNION ALL
SELECT profile_id, process_id, window_index, start_ns, start_ns + duration_ns, 'kernel'
FROM graph_executions
WHERE start_ns IS NOT NULL AND duration_ns > 0
UNION ALL
SELECT profile_id, process_id, window_index, start_ns, start_ns + duration_ns, 'runtime'
FROM api_calls
WHERE duration_ns > 0
UNION ALL
SELECT profile_id, process_id, window_index, start_ns, end_ns, category
FROM _host_activities;
