-- The CPU samples of each frame, and how many of them were taken while the GPU of the process idled: nothing of the process ran on a
-- GPU, between its first and its last GPU work in that window. Work and samples in the order of their times: a sample is idle
-- where all work that began before it has ended.
-- @scope rows
-- @requires cpu_samples, _gpu_work
-- @column run               Run.
-- @column tool              nsys.
-- @column profile_id        Profile.
-- @column process_id        OS process.
-- @column window_index      Capture window of the process.
-- @column thread            OS thread id.
-- @column sampled_frame_id  Innermost frame; key of `sampled_frames`; NULL without a stack.
-- @column samples           Samples.
-- @column busy_samples      Those while work of the process ran on a GPU; NULL where the process has none in that window.
-- @column idle_samples      Those while none ran, between its first and last; NULL in the same cases.
CREATE VIEW _sampled_work AS
WITH tracks AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY profile_id, process_id, window_index)::INTEGER AS track
    FROM (SELECT DISTINCT run, tool, profile_id, process_id, window_index FROM cpu_samples)
), work AS NOT MATERIALIZED (
    SELECT t.track, w.start_ns, w.end_ns
    FROM _gpu_work AS w JOIN tracks AS t ON w.profile_id = t.profile_id AND w.process_id IS NOT DISTINCT FROM t.process_id
        AND w.window_index IS NOT DISTINCT FROM t.window_index
), ends AS MATERIALIZED (
    SELECT track, max(end_ns) AS last_ns FROM work GROUP BY track
), taken AS NOT MATERIALIZED (
    SELECT track, start_ns AS at_ns, end_ns, NULL::BIGINT AS thread, NULL::BIGINT AS frame_id, false AS is_sample FROM work
    UNION ALL
    SELECT t.track, s.at_ns, NULL, s.thread, s.sampled_frame_id, true
    FROM cpu_samples AS s JOIN tracks AS t ON s.profile_id = t.profile_id AND s.process_id IS NOT DISTINCT FROM t.process_id
        AND s.window_index IS NOT DISTINCT FROM t.window_index
    ORDER BY track, at_ns NULLS FIRST, is_sample
), reached AS NOT MATERIALIZED (
    -- streaming windows, as in _gpu_states: the track above the end, so that each track begins with a greater one
    SELECT *, max((track::HUGEINT << 64) + end_ns) OVER (ROWS UNBOUNDED PRECEDING) AS reach FROM taken
), judged AS (
    SELECT r.track, r.thread, r.frame_id, count(*) AS samples,
        count(*) FILTER (r.reach > (r.track::HUGEINT << 64) + r.at_ns) AS busy,
        count(*) FILTER (r.reach BETWEEN (r.track::HUGEINT << 64) - 4611686018427387904 AND (r.track::HUGEINT << 64) + r.at_ns
            AND r.at_ns < e.last_ns) AS idle,
        bool_or(e.last_ns IS NOT NULL) AS has_work
    FROM reached AS r LEFT JOIN ends AS e ON r.track = e.track
    WHERE r.is_sample
    GROUP BY r.track, r.thread, r.frame_id
)
SELECT t.run, t.tool, t.profile_id, t.process_id, t.window_index, j.thread, j.frame_id AS sampled_frame_id, j.samples,
    CASE WHEN j.has_work THEN j.busy END AS busy_samples, CASE WHEN j.has_work THEN j.idle END AS idle_samples
FROM judged AS j JOIN tracks AS t USING (track);
