-- Python frames from the outermost to the innermost, per process and thread, with the time that each took on the host and the
-- GPU time that it launched: what `nsightlens export flamegraph` draws. All calls of a function from the same stack are one
-- row. GPU time is a sum of durations of kernels and memory operations: concurrent ones count separately. Two more rows per
-- process hold the GPU work that belongs to no frame, so self times sum to all GPU work.
-- @scope profile
-- @needs frames
-- @requires frames, processes, _stack_work
-- @assumes The trace has Python frames: the PyTorch profiler with with_stack=True. Other captures have no row.
-- @assumes Torch 1.8 to 1.10 recorded stacks of operators but no function calls: calls and host times are NULL, lines are those
--     that ran, and work outside operators has no stack.
-- @assumes The innermost frame around the launching call caused the work; backward work belongs to the frame that called the forward operator with its sequence number.
-- @assumes Threads with the same id are one tree.
-- @balance process_gpu_ns = gpu_self_ns per run, tool, profile_id, process_id
-- @balance process_gpu_ns = outermost_ns per run, tool, profile_id, process_id
-- @first depth, name, gpu_total_ns, gpu_self_ns, host_total_ns
-- @column run             Run (one workload in one configuration).
-- @column tool            kineto.
-- @column rank            Rank of the process; NULL where unknown.
-- @column profile_id      Profile; key of `profiles`.
-- @column process_id      OS process.
-- @column thread          OS thread id; NULL for work of no frame.
-- @column frame_id        The frame; key of `frames`; NULL for work of no frame.
-- @column parent_id       The frame that called it; NULL for the outermost.
-- @column depth           Frames around it.
-- @column name            Frame as the profiler prints it; (no stack): launched where no frame was open; (no call): its
--                         launching call is not known.
-- @column calls           Calls.
-- @column host_total_ns   Sum of the calls' durations.
-- @column host_self_ns    That, less the frames of this table that it called.
-- @column launches        Kernels and memory operations that it launched itself.
-- @column total_launches  Those, and those of the frames within it.
-- @column gpu_self_ns     GPU time that it launched itself.
-- @column gpu_total_ns    That, and that of the frames within it.
-- @column backward_ns     The part of gpu_total_ns that is backward.
-- @column outermost_ns    gpu_total_ns of the outermost frames and of work of no frame, 0 for others: what sums to all GPU work.
-- @column process_gpu_ns  All GPU time of the process.
CREATE VIEW stack_tree AS
WITH work AS MATERIALIZED (
    FROM _stack_work
), upto AS MATERIALIZED (
    -- frames are numbered depth first, so that what lies within one is a stretch of the numbers
    SELECT f.*, coalesce(w.launches, 0) AS own, coalesce(w.gpu_ns, 0) AS own_ns, coalesce(w.backward_ns, 0) AS own_back_ns,
        sum(coalesce(w.launches, 0)) OVER up AS launches, sum(coalesce(w.gpu_ns, 0)) OVER up AS gpu_ns,
        sum(coalesce(w.backward_ns, 0)) OVER up AS backward_ns
    FROM frames AS f LEFT JOIN work AS w USING (frame_id)
    WINDOW up AS (PARTITION BY f.profile_id ORDER BY f.frame_id)
), called AS (
    SELECT parent_id AS frame_id, sum(host_ns) AS inner_ns FROM frames WHERE parent_id IS NOT NULL GROUP BY parent_id
), rows_ AS (
    SELECT f.run, f.tool, f.profile_id, f.process_id, f.thread, f.frame_id, f.parent_id, f.depth, f.name, f.calls,
        f.host_ns AS host_total_ns, TRY_CAST(f.host_ns - coalesce(c.inner_ns, 0) AS BIGINT) AS host_self_ns, f.own AS launches,
        TRY_CAST(l.launches - f.launches + f.own AS BIGINT) AS total_launches, f.own_ns AS gpu_self_ns,
        TRY_CAST(l.gpu_ns - f.gpu_ns + f.own_ns AS BIGINT) AS gpu_total_ns,
        TRY_CAST(l.backward_ns - f.backward_ns + f.own_back_ns AS BIGINT) AS backward_ns
    FROM upto AS f JOIN upto AS l ON l.frame_id = f.last_id LEFT JOIN called AS c ON c.frame_id = f.frame_id
    UNION ALL
    SELECT run, tool, profile_id, process_id, NULL, NULL, NULL, 0, name, NULL, NULL, NULL, launches, launches, gpu_ns, gpu_ns,
        backward_ns
    FROM work WHERE frame_id IS NULL
), process AS (
    SELECT profile_id, process_id, TRY_CAST(sum(gpu_ns) AS BIGINT) AS gpu_ns FROM work GROUP BY profile_id, process_id
)
SELECT r.run, r.tool, p.rank, r.profile_id, r.process_id, r.thread, r.frame_id, r.parent_id, r.depth, r.name, r.calls,
    r.host_total_ns, r.host_self_ns, r.launches, r.total_launches, r.gpu_self_ns, r.gpu_total_ns, r.backward_ns,
    CASE WHEN r.depth = 0 THEN r.gpu_total_ns ELSE 0 END AS outermost_ns, coalesce(g.gpu_ns, 0) AS process_gpu_ns
FROM rows_ AS r
LEFT JOIN process AS g ON g.profile_id = r.profile_id AND g.process_id IS NOT DISTINCT FROM r.process_id
LEFT JOIN processes AS p ON p.process_id = r.process_id AND p.profile_id = r.profile_id
ORDER BY r.run, r.tool, p.rank, r.profile_id, r.process_id, r.frame_id NULLS LAST, r.name;
