-- GPU work on the timeline with the API call that launched it: kernels, memory operations and graph executions, ncu
-- excepted. The call is NULL where it was not recorded.
-- @scope rows
-- @requires _bounded_kernels, memory_ops, graph_executions, api_calls
-- @column run            Run.
-- @column tool           nsys or kineto.
-- @column profile_id     Profile; starts are comparable only within one.
-- @column process_id     OS process.
-- @column window_index   Capture window of the process.
-- @column start_ns       Start, relative to the profile's origin.
-- @column end_ns         End.
-- @column call_start_ns  Start of the launching call.
-- @column call_end_ns    End of the launching call.
CREATE VIEW _launched_work AS
WITH work AS (
    SELECT run, tool, profile_id, process_id, window_index, start_ns, start_ns + duration_ns AS end_ns, launch_id
    FROM _bounded_kernels WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns >= 0
    UNION ALL
    SELECT run, tool, profile_id, process_id, window_index, start_ns, start_ns + duration_ns, launch_id
    FROM memory_ops WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns >= 0
    UNION ALL
    SELECT run, tool, profile_id, process_id, window_index, start_ns, start_ns + duration_ns, (
        SELECT min(launch_id) FROM api_calls AS c WHERE c.profile_id = g.profile_id AND c.process_id = g.process_id
            AND c.correlation_id = g.correlation_id)
    FROM graph_executions AS g WHERE start_ns IS NOT NULL AND duration_ns >= 0
)
SELECT w.run, w.tool, w.profile_id, w.process_id, w.window_index, w.start_ns, w.end_ns,
    c.start_ns AS call_start_ns, c.start_ns + c.duration_ns AS call_end_ns
FROM work AS w
LEFT JOIN api_calls AS c ON c.profile_id = w.profile_id AND c.launch_id = w.launch_id;
