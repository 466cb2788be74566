-- The GPU work of each Python frame: kernels and memory operations that it launched itself, those of backward operators whose
-- forward operators it called included. Without a frame: `no stack`, or `no call` where the launching call is not known.
-- @scope rows
-- @requires _bounded_kernels, memory_ops, frames
-- @column run          Run.
-- @column tool         kineto.
-- @column profile_id   Profile.
-- @column process_id   OS process.
-- @column frame_id     The frame; key of `frames`; NULL where none is known.
-- @column name         Frame, (no stack) or (no call).
-- @column launches     Kernels and memory operations.
-- @column gpu_ns       Sum of their durations.
-- @column backward_ns  The part of it that is backward.
CREATE VIEW _stack_work AS
WITH work AS (
    SELECT run, tool, profile_id, process_id, frame_id, launch_id, duration_ns, phase FROM _bounded_kernels
    UNION ALL
    SELECT run, tool, profile_id, process_id, frame_id, launch_id, duration_ns, phase FROM memory_ops
), named AS (
    SELECT w.*, coalesce(f.name, CASE WHEN w.launch_id IS NULL THEN '(no call)' ELSE '(no stack)' END) AS name
    FROM work AS w LEFT JOIN frames AS f USING (frame_id)
    WHERE w.profile_id IN (SELECT profile_id FROM frames)
)
SELECT run, tool, profile_id, process_id, frame_id, name, count(*) AS launches,
    TRY_CAST(coalesce(sum(duration_ns), 0) AS BIGINT) AS gpu_ns,
    TRY_CAST(coalesce(sum(duration_ns) FILTER (phase = 'backward'), 0) AS BIGINT) AS backward_ns
FROM named GROUP BY run, tool, profile_id, process_id, frame_id, name;
