-- Times without work on a GPU, between its first and last work in a capture window: where each begins and ends. A sweep over
-- the starts
-- of all work, as in _gpu_states, with the latest end so far: gpu_gaps says what ended each, and the expert rules of nsys sum
-- the long ones.
-- @scope rows
-- @requires _gpu_work
-- @param  per         'device': processes that share a GPU keep it busy together; 'process_device': each on its own.
-- @param  min_gap_ns  Shortest gap to list, in ns.
-- @column profile_id    Profile.
-- @column window_index  Capture window of the process.
-- @column device_id     The physical GPU.
-- @column owner         OS process for process_device, else NULL.
-- @column start_ns      Start of the gap, relative to the profile's origin.
-- @column end_ns        End of the gap: work began.
CREATE MACRO _gaps(per := 'device', min_gap_ns := 1) AS TABLE
WITH tracks AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY profile_id, window_index, device_id, owner)::INTEGER AS track
    FROM (
        SELECT DISTINCT profile_id, window_index, device_id, CASE per WHEN 'device' THEN NULL WHEN 'process_device' THEN process_id
            ELSE error('per is device or process_device') END AS owner
        FROM _gpu_work
    )
), work AS NOT MATERIALIZED (
    SELECT t.track, w.start_ns, w.end_ns
    FROM _gpu_work AS w JOIN tracks AS t ON w.profile_id IS NOT DISTINCT FROM t.profile_id
        AND w.window_index IS NOT DISTINCT FROM t.window_index AND w.device_id IS NOT DISTINCT FROM t.device_id
        AND CASE per WHEN 'device' THEN NULL ELSE w.process_id END IS NOT DISTINCT FROM t.owner
    ORDER BY t.track, w.start_ns
), reached AS NOT MATERIALIZED (
    -- streaming windows: the track above the end, so that each track begins with a greater one
    SELECT *, max((track::HUGEINT << 64) + end_ns) OVER (ROWS UNBOUNDED PRECEDING) AS reach FROM work
), placed AS NOT MATERIALIZED (
    SELECT track, start_ns AS end_ns, lag(reach) OVER () - (track::HUGEINT << 64) AS idle_since_ns FROM reached
)
SELECT t.profile_id, t.window_index, t.device_id, t.owner, p.idle_since_ns::BIGINT AS start_ns, p.end_ns
FROM placed AS p JOIN tracks AS t USING (track)
WHERE p.idle_since_ns > -4611686018427387904 AND p.end_ns - p.idle_since_ns >= greatest(min_gap_ns, 1);
