-- How busy each GPU was within the steps of a process, from the start of the first to the end of the last (_steps): a sweep over
-- the starts and ends of its work. Blocks per SM are summed as integers (of 10^-12), so that the order does not matter.
-- @scope run
-- @requires _steps, _occupied_kernels, memory_ops, graph_executions
-- @column profile_id     Profile.
-- @column process_id     OS process.
-- @column window_index   Capture window of the process.
-- @column device_id      The physical GPU.
-- @column span_ns        First step's start to last step's end.
-- @column kernel_ns      Union of its kernels, graphs of unknown kernels included.
-- @column busy_ns        Union of all its work, memory operations included.
-- @column sm_ns          Time weighted by the blocks per SM of what was running, at most 1; NULL where unknown.
CREATE VIEW _gpu_load AS
WITH bounds AS (
    SELECT profile_id, process_id, window_index, min(start_ns) AS first_ns, max(end_ns) AS last_ns
    FROM _steps GROUP BY profile_id, process_id, window_index
), work AS (
    SELECT profile_id, process_id, window_index, device_id, start_ns, start_ns + duration_ns AS end_ns, true AS kernel,
        round(sm_blocks * 1e12)::HUGEINT AS blocks
    FROM _occupied_kernels WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns > 0
    UNION ALL
    SELECT profile_id, process_id, window_index, device_id, start_ns, start_ns + duration_ns, false, NULL
    FROM memory_ops WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns > 0
    UNION ALL
    SELECT profile_id, process_id, window_index, device_id, start_ns, start_ns + duration_ns, true, NULL
    FROM graph_executions WHERE start_ns IS NOT NULL AND duration_ns > 0
), cut AS (
    SELECT w.profile_id, w.process_id, w.window_index, w.device_id, greatest(w.start_ns, b.first_ns) AS start_ns,
        least(w.end_ns, b.last_ns) AS end_ns, kernel::INTEGER AS kernel, w.blocks
    FROM work AS w JOIN bounds AS b ON b.profile_id = w.profile_id AND b.process_id IS NOT DISTINCT FROM w.process_id
        AND b.window_index IS NOT DISTINCT FROM w.window_index
    WHERE w.start_ns < b.last_ns AND w.end_ns > b.first_ns
), edges AS (
    SELECT profile_id, process_id, window_index, device_id, at_ns, TRY_CAST(sum(change) AS BIGINT) AS work,
        TRY_CAST(sum(change * kernel) AS BIGINT) AS kernels, sum(change * coalesce(blocks, 0))::HUGEINT AS blocks,
        bool_or(blocks IS NOT NULL) AS known
    FROM (SELECT *, start_ns AS at_ns, 1 AS change FROM cut UNION ALL SELECT *, end_ns, -1 FROM cut)
    GROUP BY profile_id, process_id, window_index, device_id, at_ns
), sweep AS (
    SELECT profile_id, process_id, window_index, device_id, sum(work) OVER past AS work, sum(kernels) OVER past AS kernels,
        sum(blocks) OVER past AS blocks, known, lead(at_ns) OVER device - at_ns AS length_ns
    FROM edges
    WINDOW device AS (PARTITION BY profile_id, process_id, window_index, device_id ORDER BY at_ns),
        past AS (PARTITION BY profile_id, process_id, window_index, device_id ORDER BY at_ns ROWS UNBOUNDED PRECEDING)
)
SELECT s.profile_id, s.process_id, s.window_index, s.device_id, any_value(b.last_ns - b.first_ns) AS span_ns,
    TRY_CAST(coalesce(sum(length_ns) FILTER (kernels > 0), 0) AS BIGINT) AS kernel_ns,
    TRY_CAST(coalesce(sum(length_ns) FILTER (work > 0), 0) AS BIGINT) AS busy_ns,
    CASE WHEN bool_or(known) THEN sum(least(blocks, 1000000000000) * length_ns)::DOUBLE / 1e12 END AS sm_ns
FROM sweep AS s JOIN bounds AS b ON b.profile_id = s.profile_id AND b.process_id IS NOT DISTINCT FROM s.process_id
    AND b.window_index IS NOT DISTINCT FROM s.window_index
GROUP BY s.profile_id, s.process_id, s.window_index, s.device_id;
