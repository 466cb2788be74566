-- One step of each process, for drawing: GPU work by stream, CPU calls and ranges by thread. A row is a piece of
-- work or a range that was there during the step; times are relative to the step's start, and may begin before it or end
-- after it. A process without steps has its whole capture. Marks and ranges without an end have no row.
-- @scope rows
-- @needs timeline
-- @alias trace_view
-- @requires _steps, kernels, memory_ops, graph_executions, api_calls, ranges, processes
-- @assumes A step is a ProfilerStep of Kineto, or an NVTX range named like one (docs/attribution.md): one sequence per process.
-- @assumes Without `which_step`, the middle step stands for the others.
-- @param  which_step    Step number; NULL: the middle one of each process, as likely to be ordinary as any.
-- @first step, kind, name, start_ns, duration_ns
-- @column run           Run (one workload in one configuration).
-- @column tool          nsys or kineto. Never add them up: they saw the same work.
-- @column rank          Rank of the process; NULL where unknown.
-- @column profile_id    Profile; times are comparable only within one.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process, from 0.
-- @column step          Step number; NULL for a process without steps.
-- @column step_ns       Length of the step.
-- @column device_id     The physical GPU, for GPU work.
-- @column stream        Stream, for GPU work; NULL for work outside streams.
-- @column thread        OS thread, for calls and ranges.
-- @column kind          kernel, memory, graph, api_call, or the kind of the range (operator, annotation, module, ...).
-- @column family        Kernel family.
-- @column depth         Number of ranges around a range on its thread.
-- @column name          Name as recorded.
-- @column event_id      The row behind it: key of kernels, memory_ops, graph_executions, api_calls or ranges.
-- @column start_ns      Start, relative to the step's start.
-- @column duration_ns   End minus start.
CREATE MACRO step_timeline(which_step := NULL) AS TABLE
WITH numbered AS (
    SELECT *, row_number() OVER (PARTITION BY profile_id, process_id, window_index ORDER BY start_ns, step_id) AS position,
        count(*) OVER (PARTITION BY profile_id, process_id, window_index) AS steps
    FROM _steps
), chosen AS (
    SELECT run, tool, profile_id, process_id, window_index, step, start_ns AS begin_ns, end_ns AS finish_ns
    FROM numbered
    WHERE CASE WHEN which_step IS NULL THEN position = (steps + 1) // 2 ELSE step = which_step END
), work AS (
    SELECT profile_id, process_id, window_index, device_id, stream, NULL::BIGINT AS thread, 'kernel' AS kind, family,
        NULL::INTEGER AS depth, name, kernel_id AS event_id, start_ns, duration_ns
    FROM kernels WHERE tool <> 'ncu'
    UNION ALL
    SELECT profile_id, process_id, window_index, device_id, stream, NULL, 'memory', NULL, NULL, name, memory_op_id,
        start_ns, duration_ns
    FROM memory_ops
    UNION ALL
    SELECT profile_id, process_id, window_index, device_id, stream, NULL, 'graph', NULL, NULL, NULL, graph_execution_id,
        start_ns, duration_ns
    FROM graph_executions
    UNION ALL
    SELECT profile_id, process_id, window_index, NULL, NULL, thread, 'api_call', NULL, NULL, name, launch_id,
        start_ns, duration_ns
    FROM api_calls
    UNION ALL
    SELECT profile_id, process_id, window_index, NULL, NULL, thread, kind, NULL, depth, name, range_id, start_ns, duration_ns
    FROM ranges WHERE thread IS NOT NULL
)
SELECT c.run, c.tool, p.rank, c.profile_id, c.process_id, c.window_index, c.step, c.finish_ns - c.begin_ns AS step_ns,
    w.device_id, w.stream, w.thread, w.kind, w.family, w.depth, w.name, w.event_id,
    w.start_ns - c.begin_ns AS start_ns, w.duration_ns
FROM chosen AS c
JOIN work AS w
    ON w.profile_id = c.profile_id AND w.process_id IS NOT DISTINCT FROM c.process_id
    AND w.window_index IS NOT DISTINCT FROM c.window_index
LEFT JOIN processes AS p ON p.process_id = c.process_id AND p.profile_id = c.profile_id
WHERE w.start_ns < c.finish_ns AND w.start_ns + w.duration_ns > c.begin_ns
ORDER BY c.run, c.tool, p.rank, c.profile_id, c.process_id, c.window_index, c.step, w.device_id, w.stream, w.thread,
    w.start_ns, w.duration_ns DESC, w.kind, w.event_id;
