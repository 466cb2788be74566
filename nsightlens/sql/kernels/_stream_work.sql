-- Every piece of GPU work with a place on the timeline, its stream, and the API call that launched it: kernels, memory
-- operations and graph executions, ncu excepted. The call is NULL where it was not recorded.
-- @scope rows
-- @requires _bounded_kernels, api_calls
-- @column run            Run.
-- @column tool           nsys or kineto.
-- @column profile_id     Profile; starts are comparable only within one.
-- @column process_id     OS process.
-- @column window_index   Capture window of the process.
-- @column device_id      The physical GPU.
-- @column context        CUDA context id within the process.
-- @column stream         Stream id within the process.
-- @column kind           kernel, memory or graph.
-- @column work_id        kernel_id, memory_op_id or graph_execution_id.
-- @column start_ns       Start, relative to the profile's origin.
-- @column end_ns         End.
-- @column name           Kernel name, or the label of the memory operation; NULL for graphs.
-- @column family         Kernel family; NULL but for kernels.
-- @column launch_id      The call that launched it.
-- @column call           Name of that call.
-- @column call_start_ns  Start of that call.
-- @column call_end_ns    End of that call.
CREATE VIEW _stream_work AS
WITH work AS (
    SELECT run, tool, profile_id, process_id, window_index, device_id, context, stream, 'kernel' AS kind, kernel_id AS work_id,
        start_ns, duration_ns, name, family, launch_id
    FROM _bounded_kernels
    UNION ALL
    SELECT run, tool, profile_id, process_id, window_index, device_id, context, stream, 'memory', memory_op_id,
        start_ns, duration_ns, name, NULL, launch_id
    FROM memory_ops
    UNION ALL
    SELECT g.run, g.tool, g.profile_id, g.process_id, g.window_index, g.device_id, g.context, g.stream, 'graph',
        g.graph_execution_id, g.start_ns, g.duration_ns, NULL, NULL, min(c.launch_id)
    FROM graph_executions AS g
    LEFT JOIN api_calls AS c
        ON g.profile_id = c.profile_id AND g.process_id = c.process_id AND g.correlation_id = c.correlation_id
    GROUP BY ALL
)
SELECT w.run, w.tool, w.profile_id, w.process_id, w.window_index, w.device_id, w.context, w.stream, w.kind, w.work_id,
    w.start_ns, w.start_ns + w.duration_ns AS end_ns, w.name, w.family,
    c.launch_id, c.name AS call, c.start_ns AS call_start_ns, c.start_ns + c.duration_ns AS call_end_ns
FROM work AS w
LEFT JOIN api_calls AS c ON w.profile_id = c.profile_id AND w.launch_id = c.launch_id
WHERE w.tool <> 'ncu' AND w.start_ns IS NOT NULL AND w.duration_ns >= 0;
