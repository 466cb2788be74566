-- Each wait for the GPU, in order: which call waited, for which stream or event, and where and when that event was recorded.
-- @scope rows
-- @requires synchronizations, cuda_events, api_calls, processes
-- @assumes CUPTI recorded the waits, and each belongs to the call with its correlation id; without one the function is NULL.
-- @column run                 Run (one workload in one configuration).
-- @column tool                nsys: of no other tool such records are read.
-- @column rank                Rank of the process; NULL where unknown.
-- @column start_ns            Start on the host, relative to the profile's origin.
-- @column duration_ns         Duration; of a stream_wait_event that of the call, not of the wait.
-- @column kind                event, stream, context or stream_wait_event; see `synchronizations`.
-- @column name                The API function that waited; NULL where the call was not recorded.
-- @column awaited_stream      The stream that was awaited, or in which the event was recorded; NULL for a context, or not known.
-- @column waiting_stream      The stream that waits, of a stream_wait_event.
-- @column event_id            CUDA event that the wait is for.
-- @column reached_ns          When the GPU reached that record of the event; NULL in reports before 2025.
-- @column thread              OS thread id of the caller.
-- @column context             CUDA context id within the process.
-- @column device_id           The GPU.
-- @column profile_id          Profile; starts are comparable only within one.
-- @column process_id          OS process.
-- @column launch_id           The call; key of `api_calls`.
-- @column synchronization_id  The wait; key of `synchronizations`.
CREATE VIEW synchronization_trace AS
WITH recorded AS (
    SELECT profile_id, process_id, event_id, event_record_id, min(at_ns) AS reached_ns,
        CASE WHEN min(stream) = max(stream) THEN min(stream) END AS stream
    FROM cuda_events
    WHERE event_record_id IS NOT NULL
    GROUP BY profile_id, process_id, event_id, event_record_id
)
SELECT s.run, s.tool, p.rank, s.start_ns, s.duration_ns, s.kind, c.name,
    CASE WHEN s.kind = 'stream' THEN s.stream ELSE r.stream END AS awaited_stream,
    CASE WHEN s.kind = 'stream_wait_event' THEN s.stream END AS waiting_stream,
    s.event_id, r.reached_ns, c.thread, s.context, s.device_id, s.profile_id, s.process_id, s.launch_id, s.synchronization_id
FROM synchronizations AS s
LEFT JOIN recorded AS r ON s.profile_id = r.profile_id AND s.process_id = r.process_id AND s.event_id = r.event_id
    AND s.event_record_id = r.event_record_id
LEFT JOIN api_calls AS c ON s.profile_id = c.profile_id AND s.launch_id = c.launch_id
LEFT JOIN processes AS p ON s.profile_id = p.profile_id AND s.process_id = p.process_id
ORDER BY s.run, s.tool, s.profile_id, s.start_ns, s.synchronization_id;
