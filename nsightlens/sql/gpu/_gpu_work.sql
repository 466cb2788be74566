-- Everything that kept a GPU busy at a known time: kernels, memory operations and graph executions, ncu excepted.
-- Rows without a start or a duration have no place on a timeline and are left out.
-- @scope rows
-- @requires _bounded_kernels, memory_ops, graph_executions, api_calls
-- @column run           Run.
-- @column tool          nsys or kineto.
-- @column profile_id    Profile; starts are comparable only within one.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process.
-- @column device_id     The physical GPU.
-- @column context       CUDA context id within the process.
-- @column stream        Stream id within the process.
-- @column kind          kernel, memory or graph.
-- @column work_id       kernel_id, memory_op_id or graph_execution_id.
-- @column start_ns      Start, relative to the profile's origin.
-- @column end_ns        End.
-- @column name          Kernel name, or the label of the memory operation; NULL for graphs.
-- @column family        Kernel family; collective for copies that communicate; NULL for other work.
-- @column launch_id     The call that launched it; it may be missing in api_calls.
CREATE VIEW _gpu_work AS
SELECT run, tool, profile_id, process_id, window_index, device_id, context, stream, 'kernel' AS kind, kernel_id AS work_id,
    start_ns, start_ns + duration_ns AS end_ns, name, family, launch_id
FROM _bounded_kernels
WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns >= 0
UNION ALL
SELECT run, tool, profile_id, process_id, window_index, device_id, context, stream, 'memory', memory_op_id,
    start_ns, start_ns + duration_ns, name, CASE WHEN collective IS NOT NULL THEN 'collective' END, launch_id
FROM memory_ops
WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns >= 0
UNION ALL
SELECT g.run, g.tool, g.profile_id, g.process_id, g.window_index, g.device_id, g.context, g.stream, 'graph',
    g.graph_execution_id, g.start_ns, g.start_ns + g.duration_ns, NULL, NULL, min(c.launch_id)
FROM graph_executions AS g
LEFT JOIN api_calls AS c
    ON g.profile_id = c.profile_id AND g.process_id = c.process_id AND g.correlation_id = c.correlation_id
WHERE g.tool <> 'ncu' AND g.start_ns IS NOT NULL AND g.duration_ns >= 0
GROUP BY ALL;
