-- Functions from the outermost to the innermost, per process and thread, with nsys's CPU samples in each: all samples, and
-- those while the GPU of the process idled. `nsightlens export flamegraph --weight cpu_samples` draws them. All samples of a
-- function with the same callers are one row; samples without a stack have a row per thread.
-- @scope profile
-- @needs cpu_samples
-- @requires sampled_frames, processes, _sampled_work
-- @assumes nsys sampled the CPUs (--sample). A waiting thread is not on a CPU, and has no samples.
-- @assumes A GPU idles while nothing of the process runs on any, between its first and its last GPU work in the window.
-- @assumes Stacks are as deep as nsys unwound them: some options walk the stack of every n-th sample only, and the others have
--     one frame.
-- @balance thread_samples = samples per run, tool, profile_id, process_id, thread
-- @column run                 Run (one workload in one configuration).
-- @column tool                nsys.
-- @column rank                Rank of the process; NULL where unknown.
-- @column profile_id          Profile; key of `profiles`.
-- @column process_id          OS process.
-- @column thread              OS thread id.
-- @column frame_id            The frame; sampled_frame_id of `sampled_frames`; NULL for samples without a stack.
-- @column parent_id           The frame that called it; NULL for the outermost.
-- @column depth               Frames around it.
-- @column name                Function; [MODULE] where it is not known; (no stack).
-- @column module              File of the library or program.
-- @column samples             Samples in it, not in what it called.
-- @column total_samples       Those, and those of the frames within it.
-- @column idle_samples        Of samples, those while the GPU idled; NULL where the process has no GPU work in the window.
-- @column total_idle_samples  Of total_samples, those; NULL in the same cases.
-- @column thread_samples      All samples of the thread.
-- @names function name
CREATE VIEW cpu_sample_tree AS
WITH work AS MATERIALIZED (
    FROM _sampled_work
), upto AS MATERIALIZED (
    -- frames are numbered depth first, so that what lies within one is a stretch of the numbers
    SELECT f.*, coalesce(w.samples, 0) AS own, coalesce(w.idle_samples, 0) AS own_idle, sum(coalesce(w.samples, 0)) OVER up AS samples,
        sum(coalesce(w.idle_samples, 0)) OVER up AS idle_samples
    FROM sampled_frames AS f LEFT JOIN work AS w USING (sampled_frame_id)
    WINDOW up AS (PARTITION BY f.profile_id ORDER BY f.sampled_frame_id)
), windows AS (
    SELECT profile_id, process_id, window_index, bool_or(idle_samples IS NOT NULL) AS has_work
    FROM work GROUP BY profile_id, process_id, window_index
), rows_ AS (
    SELECT f.run, f.tool, f.profile_id, f.process_id, f.thread, f.sampled_frame_id AS frame_id, f.parent_id, f.depth, f.name, f.module,
        f.own AS samples, TRY_CAST(l.samples - f.samples + f.own AS BIGINT) AS total_samples,
        CASE WHEN w.has_work THEN f.own_idle END AS idle_samples,
        CASE WHEN w.has_work THEN TRY_CAST(l.idle_samples - f.idle_samples + f.own_idle AS BIGINT) END AS total_idle_samples
    FROM upto AS f
    JOIN upto AS l ON l.sampled_frame_id = f.last_id
    LEFT JOIN windows AS w ON w.profile_id = f.profile_id AND w.process_id IS NOT DISTINCT FROM f.process_id
        AND w.window_index IS NOT DISTINCT FROM f.window_index
    UNION ALL
    SELECT run, tool, profile_id, process_id, thread, NULL, NULL, 0, '(no stack)', NULL, TRY_CAST(sum(samples) AS BIGINT) AS own,
        own, TRY_CAST(sum(idle_samples) AS BIGINT) AS own_idle, own_idle
    FROM work WHERE sampled_frame_id IS NULL GROUP BY run, tool, profile_id, process_id, thread
), threads AS (
    SELECT profile_id, process_id, thread, TRY_CAST(sum(samples) AS BIGINT) AS samples FROM work GROUP BY profile_id, process_id, thread
)
SELECT r.run, r.tool, p.rank, r.profile_id, r.process_id, r.thread, r.frame_id, r.parent_id, r.depth, r.name, r.module, r.samples,
    r.total_samples, r.idle_samples, r.total_idle_samples, t.samples AS thread_samples
FROM rows_ AS r
LEFT JOIN threads AS t ON t.profile_id = r.profile_id AND t.process_id IS NOT DISTINCT FROM r.process_id
    AND t.thread IS NOT DISTINCT FROM r.thread
LEFT JOIN processes AS p ON p.process_id = r.process_id AND p.profile_id = r.profile_id
ORDER BY r.run, r.tool, p.rank, r.profile_id, r.process_id, r.thread, r.frame_id NULLS LAST;
