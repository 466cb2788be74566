-- What goes on in a slice of time of a run, each piece with its class: the lower has a moment in which several go on.
-- @scope rows
-- @requires _bounded_kernels, _host_activities, api_calls, memory_ops, graph_executions
-- @param  of_run      Run.
-- @param  under_tool  nsys or kineto.
-- @param  items_of    What the items of GPU work are: family, kernel (key and launch configuration), key, op, module or phase.
-- @param  from_ns     Start of the slice of time, relative to each profile's origin; NULL: all that was before, too.
-- @param  until_ns    Its end; NULL: all that came after, too.
-- @column profile_id    Profile.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process.
-- @column start_ns      Start, relative to the profile's origin: also where that is before the slice.
-- @column end_ns        End.
-- @column class         0 kernel, 1 CUDA graph, 2 memory operation, 3 collective; on the host 4 communication call, 5 runtime call,
--                       6 data loader, 7 operator.
-- @column item          The family, kernel, …, or the memory operation; NULL where it is not known, and on the host.
CREATE MACRO _classed_work(of_run := NULL, under_tool := NULL, items_of := 'family', from_ns := NULL, until_ns := NULL) AS TABLE
SELECT profile_id, process_id, window_index, start_ns, end_ns, class, item
FROM (
    SELECT run, tool, profile_id, process_id, window_index, start_ns, start_ns + duration_ns AS end_ns,
        CASE WHEN family = 'collective' THEN 3 ELSE 0 END AS class,
        CASE items_of WHEN 'family' THEN family WHEN 'key' THEN kernel_key WHEN 'op' THEN op WHEN 'module' THEN module
            WHEN 'phase' THEN phase WHEN 'kernel' THEN concat(kernel_key, '  grid ', grid_x, 'x', grid_y, 'x', grid_z, ' block ',
                block_x, 'x', block_y, 'x', block_z) ELSE error('what: family, kernel, key, op, module or phase') END AS item
    FROM _bounded_kernels
    UNION ALL
    SELECT run, tool, profile_id, process_id, window_index, start_ns, start_ns + duration_ns, 1, 'CUDA graph, kernels unknown'
    FROM graph_executions
    UNION ALL
    SELECT run, tool, profile_id, process_id, window_index, start_ns, start_ns + duration_ns,
        CASE WHEN collective IS NOT NULL THEN 3 ELSE 2 END,
        CASE items_of WHEN 'op' THEN op WHEN 'module' THEN module WHEN 'phase' THEN phase ELSE concat_ws(' ', kind, direction) END
    FROM memory_ops
    UNION ALL
    SELECT run, tool, profile_id, process_id, window_index, start_ns, start_ns + duration_ns, 5, NULL FROM api_calls
    UNION ALL
    SELECT run, tool, profile_id, process_id, window_index, start_ns, end_ns,
        CASE category WHEN 'communication_call' THEN 4 WHEN 'data_loader' THEN 6 ELSE 7 END, NULL
    FROM _host_activities
)
WHERE run = of_run AND tool = under_tool AND end_ns > start_ns AND (until_ns IS NULL OR start_ns < until_ns)
    AND (from_ns IS NULL OR end_ns > from_ns);
