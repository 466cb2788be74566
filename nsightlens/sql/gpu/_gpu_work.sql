-- Everything that kept a GPU busy at a known time: kernels, memory operations and graph executions, ncu excepted.
-- Rows without a start or a duration have no place on a timeline and are left out.
-- @scope rows
-- @requires _bounded_kernels
-- @column run           Run.
-- @column tool          nsys or kineto.
-- @column profile_id    Profile; starts are comparable only within one.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process.
-- @column device_id     The physical GPU.
-- @column start_ns      Start, relative to the profile's origin.
-- @column end_ns        End.
-- @column kind          kernel, memory or graph.
-- @column family        Kernel family; NULL but for kernels.
-- @column name          Kernel name; NULL but for kernels.
CREATE VIEW _gpu_work AS
SELECT run, tool, profile_id, process_id, window_index, device_id, start_ns, start_ns + duration_ns AS end_ns,
    'kernel' AS kind, family, name
FROM _bounded_kernels
WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns >= 0
UNION ALL
SELECT run, tool, profile_id, process_id, window_index, device_id, start_ns, start_ns + duration_ns,
    'memory', NULL, NULL
FROM memory_ops
WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns >= 0
UNION ALL
SELECT run, tool, profile_id, process_id, window_index, device_id, start_ns, start_ns + duration_ns,
    'graph', NULL, NULL
FROM graph_executions
WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns >= 0;
