-- Each wait of `synchronizations` with the call that made it and the record of the event that it is for. Where no number says which
-- record that is, it is the last one that began before the waiting call, as CUDA defines it.
-- @scope rows
-- @requires synchronizations, cuda_events, api_calls
-- @column name                 The API function that waited; NULL where the call was not recorded.
-- @column thread               OS thread id of the caller.
-- @column call_start_ns        Start of that call.
-- @column recorded_context     Context in which the event was recorded; NULL where that is not known.
-- @column recorded_stream      Stream in which the event was recorded, as above.
-- @column recorded_launch_id   The call that recorded it.
-- @column recorded_start_ns    Start of that call.
-- @column reached_ns           When the GPU reached that record; NULL in reports before 2025.
-- @columns synchronizations
CREATE VIEW _waits AS
WITH records AS (
    SELECT e.profile_id, e.process_id, e.event_id, e.event_record_id, e.context, e.stream, e.at_ns, e.launch_id, c.start_ns
    FROM cuda_events AS e
    LEFT JOIN api_calls AS c ON e.profile_id = c.profile_id AND e.launch_id = c.launch_id
    WHERE e.event_id IS NOT NULL
), numbered AS (
    SELECT profile_id, process_id, event_id, event_record_id, min(at_ns) AS at_ns,
        CASE WHEN min(stream) = max(stream) THEN min(stream) END AS stream,
        CASE WHEN min(context) = max(context) THEN min(context) END AS context,
        CASE WHEN min(launch_id) = max(launch_id) THEN min(launch_id) END AS launch_id,
        CASE WHEN min(launch_id) = max(launch_id) THEN min(start_ns) END AS start_ns
    FROM records
    WHERE event_record_id IS NOT NULL
    GROUP BY profile_id, process_id, event_id, event_record_id
), ordered AS (
    SELECT * FROM records WHERE event_record_id IS NULL AND start_ns IS NOT NULL
), waits AS (
    SELECT s.*, c.name, c.thread, c.start_ns AS call_start_ns
    FROM synchronizations AS s
    LEFT JOIN api_calls AS c ON s.profile_id = c.profile_id AND s.launch_id = c.launch_id
)
SELECT w.name, w.thread, w.call_start_ns, coalesce(n.context, o.context) AS recorded_context,
    coalesce(n.stream, o.stream) AS recorded_stream, coalesce(n.launch_id, o.launch_id) AS recorded_launch_id,
    coalesce(n.start_ns, o.start_ns) AS recorded_start_ns, coalesce(n.at_ns, o.at_ns) AS reached_ns,
    w.* EXCLUDE (name, thread, call_start_ns)
FROM waits AS w
LEFT JOIN numbered AS n ON w.profile_id = n.profile_id AND w.process_id = n.process_id AND w.event_id = n.event_id
    AND w.event_record_id = n.event_record_id
ASOF LEFT JOIN ordered AS o ON w.profile_id = o.profile_id AND w.process_id = o.process_id AND w.event_id = o.event_id
    AND w.call_start_ns > o.start_ns;
