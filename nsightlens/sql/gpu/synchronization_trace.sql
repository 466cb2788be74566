-- Each wait for the GPU, in order: which call waited, for which stream or event, and where and when that event was recorded.
-- @scope rows
-- @needs waits
-- @requires _waits, processes
-- @assumes CUPTI recorded the waits, and each belongs to the call with its correlation id; without one the function is NULL.
-- @assumes If no number identifies the record of an event (reports before 2025), it is the last one before the waiting call.
-- @first rank, name, start_ns, duration_ns, kind
-- @column run                 Run (one workload in one configuration).
-- @column tool                nsys, or kineto, if it recorded them (enable_cuda_sync_events).
-- @column rank                Rank of the process; NULL where unknown.
-- @column start_ns            Start on the host, relative to the profile's origin.
-- @column duration_ns         Duration; of a stream_wait_event that of the call, not of the wait.
-- @column kind                event, stream, context or stream_wait_event; see `synchronizations`.
-- @column name                The API function that waited; NULL where the call was not recorded.
-- @column awaited_stream      The stream that was awaited, or in which the event was recorded; NULL for a context, or not known.
-- @column waiting_stream      The stream that waits, of a stream_wait_event.
-- @column event_id            CUDA event that the wait is for.
-- @column reached_ns          When the GPU reached that record of the event; NULL in reports before 2025, and under Kineto.
-- @column thread              OS thread id of the caller.
-- @column context             CUDA context id within the process.
-- @column device_id           The GPU.
-- @column profile_id          Profile; starts are comparable only within one.
-- @column process_id          OS process.
-- @column launch_id           The call; key of `api_calls`.
-- @column synchronization_id  The wait; key of `synchronizations`.
CREATE VIEW synchronization_trace AS
SELECT w.run, w.tool, p.rank, w.start_ns, w.duration_ns, w.kind, w.name,
    CASE WHEN w.kind = 'stream' THEN w.stream ELSE w.recorded_stream END AS awaited_stream,
    CASE WHEN w.kind = 'stream_wait_event' THEN w.stream END AS waiting_stream,
    w.event_id, w.reached_ns, w.thread, w.context, w.device_id, w.profile_id, w.process_id, w.launch_id, w.synchronization_id
FROM _waits AS w
LEFT JOIN processes AS p ON w.profile_id = p.profile_id AND w.process_id = p.process_id
ORDER BY w.run, w.tool, w.profile_id, w.start_ns, w.synchronization_id;
