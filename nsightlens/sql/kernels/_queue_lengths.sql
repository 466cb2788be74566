-- How long the launch queue of each stream was, and for how long: a row per length. queue_length_series has the rules of counting;
-- queue_length has its rows from here, at any full_length.
-- @scope profile
-- @requires _gpu_work, _stream_work
-- @column run           Run.
-- @column tool          nsys or kineto.
-- @column profile_id    Profile.
-- @column window_index  Capture window of the process.
-- @column process_id    OS process.
-- @column device_id     The physical GPU.
-- @column context       CUDA context id within the process.
-- @column stream        Stream id within the process.
-- @column length        Launches that waited.
-- @column points        Changes after which the queue had this length.
-- @column lasts_ns      Time at this length, up to the last change.
CREATE VIEW _queue_lengths AS
WITH queues AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY profile_id, window_index, process_id, device_id, context, stream)::INTEGER AS queue
    FROM (SELECT DISTINCT run, tool, profile_id, window_index, process_id, device_id, context, stream FROM _gpu_work)
), launched AS NOT MATERIALIZED (
    SELECT q.queue, w.launch_id, min(w.call_start_ns) AS launched_ns, min(w.start_ns) AS begun_ns
    FROM _stream_work AS w
    JOIN queues AS q ON q.profile_id = w.profile_id AND q.run = w.run AND q.tool = w.tool
        AND q.window_index IS NOT DISTINCT FROM w.window_index AND q.process_id IS NOT DISTINCT FROM w.process_id
        AND q.device_id IS NOT DISTINCT FROM w.device_id AND q.context IS NOT DISTINCT FROM w.context
        AND q.stream IS NOT DISTINCT FROM w.stream
    WHERE w.call_start_ns IS NOT NULL
    GROUP BY q.queue, w.launch_id
), changes AS NOT MATERIALIZED (
    SELECT queue, unnest([launched_ns, begun_ns]) AS at_ns, unnest([1::TINYINT, -1::TINYINT]) AS change
    FROM launched ORDER BY queue, at_ns, change DESC
), lasting AS NOT MATERIALIZED (
    -- a streaming window, as in _gpu_states
    SELECT queue, sum(change) OVER (ROWS UNBOUNDED PRECEDING)::BIGINT AS length,
        CASE WHEN lead(queue) OVER () = queue THEN lead(at_ns) OVER () - at_ns ELSE 0 END AS lasts_ns
    FROM changes
), lengths AS (
    SELECT queue, length, count(*) AS points, TRY_CAST(sum(lasts_ns) AS BIGINT) AS lasts_ns FROM lasting GROUP BY queue, length
)
SELECT q.run, q.tool, q.profile_id, q.window_index, q.process_id, q.device_id, q.context, q.stream, length, points, lasts_ns
FROM lengths JOIN queues AS q USING (queue);
