-- How busy each GPU was within the steps of a process, from the start of the first to the end of the last (_steps): a sweep over
-- the starts and ends of its work. Blocks per SM are summed as integers (of 10^-12), so that the order does not matter, and each
-- kernel counts 1 at most, as does the sum: so it takes 9 million kernels at once to overflow. gpu_summary has its rows from here.
-- @scope profile
-- @requires _steps, _bounded_kernels, devices, memory_ops, graph_executions
-- @column run            Run.
-- @column tool           nsys or kineto.
-- @column profile_id     Profile.
-- @column process_id     OS process.
-- @column window_index   Capture window of the process.
-- @column device_id      The physical GPU.
-- @column span_ns        First step's start to last step's end.
-- @column kernel_ns      Union of its kernels, graphs of unknown kernels included.
-- @column busy_ns        Union of all its work, memory operations included.
-- @column sm_ns          Time weighted by the blocks per SM of what was running, at most 1; NULL where unknown.
CREATE VIEW _gpu_load AS
WITH bounds AS MATERIALIZED (
    SELECT run, tool, profile_id, process_id, window_index, min(start_ns) AS first_ns, max(end_ns) AS last_ns
    FROM _steps GROUP BY run, tool, profile_id, process_id, window_index
), work AS NOT MATERIALIZED (
    SELECT k.profile_id, k.process_id, k.window_index, k.device_id, start_ns, start_ns + duration_ns AS end_ns, 1 AS kind,
        CASE WHEN isfinite(k.blocks_per_sm) AND k.blocks_per_sm >= 0 THEN k.blocks_per_sm
            ELSE k.grid_x::DOUBLE * k.grid_y * k.grid_z / d.sm_count END AS sm_blocks
    FROM _bounded_kernels AS k
    LEFT JOIN (SELECT profile_id, process_id, device, max(sm_count) AS sm_count FROM devices GROUP BY ALL) AS d
        ON d.profile_id = k.profile_id AND d.process_id = k.process_id AND d.device = k.device
    WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns > 0
    UNION ALL
    SELECT profile_id, process_id, window_index, device_id, start_ns, start_ns + duration_ns, 2, NULL
    FROM memory_ops WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns > 0
    UNION ALL
    SELECT profile_id, process_id, window_index, device_id, start_ns, start_ns + duration_ns, 1, NULL
    FROM graph_executions WHERE start_ns IS NOT NULL AND duration_ns > 0
), tracks AS MATERIALIZED (
    SELECT d.*, b.run, b.tool, b.first_ns, b.last_ns, row_number() OVER (ORDER BY d.profile_id, d.process_id, d.window_index, device_id)::INTEGER AS track
    FROM (SELECT DISTINCT profile_id, process_id, window_index, device_id FROM work) AS d
    JOIN bounds AS b ON b.profile_id = d.profile_id AND b.process_id IS NOT DISTINCT FROM d.process_id
        AND b.window_index IS NOT DISTINCT FROM d.window_index
), edges AS NOT MATERIALIZED (
    SELECT t.track, unnest([greatest(w.start_ns, t.first_ns), least(w.end_ns, t.last_ns)]) AS at_ns,
        unnest([kind::TINYINT, -kind::TINYINT]) AS change, unnest([blocks, -blocks]) AS blocks
    FROM (SELECT *, round(CASE WHEN sm_blocks > 1 THEN 1 ELSE sm_blocks END * 1e12)::BIGINT AS blocks FROM work) AS w
    JOIN tracks AS t ON t.profile_id = w.profile_id AND t.process_id IS NOT DISTINCT FROM w.process_id
        AND t.window_index IS NOT DISTINCT FROM w.window_index AND t.device_id IS NOT DISTINCT FROM w.device_id
    WHERE w.start_ns < t.last_ns AND w.end_ns > t.first_ns
    ORDER BY track, at_ns
), sweep AS NOT MATERIALIZED (
    -- a streaming window, as in _gpu_states
    SELECT track, blocks IS NOT NULL AS known,
        CASE WHEN lead(track) OVER () = track THEN lead(at_ns) OVER () - at_ns ELSE 0 END AS length_ns,
        sum(sign(change)) OVER (ROWS UNBOUNDED PRECEDING) AS work,
        sum(CASE WHEN abs(change) = 1 THEN change ELSE 0 END) OVER (ROWS UNBOUNDED PRECEDING) AS kernels,
        sum(coalesce(blocks, 0)) OVER (ROWS UNBOUNDED PRECEDING) AS blocks
    FROM edges
), summed AS (
    SELECT track, TRY_CAST(coalesce(sum(length_ns) FILTER (kernels > 0), 0) AS BIGINT) AS kernel_ns,
        TRY_CAST(coalesce(sum(length_ns) FILTER (work > 0), 0) AS BIGINT) AS busy_ns,
        CASE WHEN bool_or(known) THEN sum(least(blocks, 1000000000000) * length_ns)::DOUBLE / 1e12 END AS sm_ns
    FROM sweep GROUP BY track
)
SELECT t.run, t.tool, t.profile_id, t.process_id, t.window_index, t.device_id, t.last_ns - t.first_ns AS span_ns, kernel_ns, busy_ns, sm_ns
FROM summed AS s JOIN tracks AS t USING (track);
