-- Functions in the CPU samples, per process and thread, those sampled most often while the GPU of the process idled first:
-- what the host did instead of launching work. A row is a function, wherever it was called from. Its samples are those in the
-- function itself; its total includes those in the functions that it called; a function that calls itself counts once.
-- @scope profile
-- @needs cpu_samples
-- @requires sampled_frames, cpu_sample_tree
-- @assumes nsys sampled the CPUs (--sample). A waiting thread is not on a CPU, and has no samples.
-- @assumes A GPU idles while nothing of the process runs on any, between its first and its last GPU work in the window.
-- @assumes Stacks are as deep as nsys unwound them: some options walk the stack of every n-th sample only, and the others have
--     one frame.
-- @balance thread_samples = samples per run, tool, profile_id, process_id, thread
-- @first rank, thread, name, idle_samples, samples
-- @column run                 Run (one workload in one configuration).
-- @column tool                nsys.
-- @column rank                Rank of the process; NULL where unknown.
-- @column profile_id          Profile; key of `profiles`.
-- @column process_id          OS process.
-- @column thread              OS thread id.
-- @column name                Function; [MODULE] where it is not known; (no stack).
-- @column module              File of the library or program.
-- @column idle_samples        Of samples, those while the GPU idled; NULL where the process has no GPU work in the window.
-- @column total_idle_samples  Of total_samples, those; NULL in the same cases.
-- @column samples             Samples in the function itself.
-- @column total_samples       Those, and those in the functions within it.
-- @column idle_pct            idle_samples as a share of all samples of the thread while the GPU idled, to one decimal.
-- @column thread_samples      All samples of the thread.
-- @names function name
CREATE VIEW cpu_sample_summary AS
SELECT t.run, t.tool, t.rank, t.profile_id, t.process_id, t.thread, t.name, t.module,
    TRY_CAST(sum(t.idle_samples) AS BIGINT) AS idle_samples,
    TRY_CAST(sum(t.total_idle_samples) FILTER (f.recursive IS NOT true) AS BIGINT) AS total_idle_samples,
    TRY_CAST(sum(t.samples) AS BIGINT) AS samples,
    TRY_CAST(sum(t.total_samples) FILTER (f.recursive IS NOT true) AS BIGINT) AS total_samples,
    round(100.0 * sum(t.idle_samples) / nullif(sum(sum(t.idle_samples)) OVER thread, 0), 1) AS idle_pct,
    max(t.thread_samples) AS thread_samples
FROM cpu_sample_tree AS t LEFT JOIN sampled_frames AS f ON t.frame_id = f.sampled_frame_id
GROUP BY t.run, t.tool, t.rank, t.profile_id, t.process_id, t.thread, t.name, t.module
WINDOW thread AS (PARTITION BY t.run, t.tool, t.profile_id, t.process_id, t.thread)
ORDER BY t.run, t.tool, t.rank, t.profile_id, t.process_id, idle_samples DESC NULLS LAST, samples DESC, t.thread, t.name, t.module;
