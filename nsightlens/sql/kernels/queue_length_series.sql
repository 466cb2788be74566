-- How many launches wait in each stream over time: a row where the number changes, and it holds until the next row. A launch
-- call adds one when it begins; the start of the first work that it launched there subtracts one, so a graph launch counts
-- once. It falls below 0 where a tool saw work begin before its call. Work whose call was not recorded is left out.
-- @scope rows
-- @alias get_queue_length_time_series
-- @needs gpu_work
-- @requires _stream_work
-- @assumes The launching call is the one with the same correlation id in the process, and the tool put host and GPU on one clock.
-- @assumes A launch leaves the queue when its first work starts: launches of one stream are taken in any order.
-- @column run           Run (one workload in one configuration).
-- @column tool          nsys or kineto. Never add them up: they saw the same launches.
-- @column rank          Rank of the process; NULL where unknown.
-- @column profile_id    Profile; times are comparable only within one.
-- @column window_index  Capture window of the process, from 0.
-- @column process_id    OS process.
-- @column device_id     The physical GPU.
-- @column context       CUDA context id within the process.
-- @column stream        Stream id within the process.
-- @column at_ns         Time of the change, relative to the profile's origin.
-- @column launch_id     The call that was launched, or whose work began; key of `api_calls`.
-- @column change        1: launched; -1: its work began.
-- @column length        Launches that wait from at_ns on.
CREATE VIEW queue_length_series AS
WITH launched AS (
    SELECT run, tool, profile_id, window_index, process_id, device_id, context, stream, launch_id,
        min(call_start_ns) AS launched_ns, min(start_ns) AS begun_ns
    FROM _stream_work
    WHERE call_start_ns IS NOT NULL
    GROUP BY ALL
), changes AS (
    SELECT * EXCLUDE (launched_ns, begun_ns), launched_ns AS at_ns, 1 AS change FROM launched
    UNION ALL
    SELECT * EXCLUDE (launched_ns, begun_ns), begun_ns, -1 FROM launched
)
SELECT
    c.run, c.tool, p.rank, c.profile_id, c.window_index, c.process_id, c.device_id, c.context, c.stream, c.at_ns, c.launch_id,
    c.change,
    TRY_CAST(sum(c.change) OVER (PARTITION BY c.profile_id, c.window_index, c.process_id, c.device_id, c.context, c.stream
        ORDER BY c.at_ns, c.change DESC, c.launch_id ROWS UNBOUNDED PRECEDING) AS BIGINT) AS length
FROM changes AS c
LEFT JOIN processes AS p ON c.process_id = p.process_id AND c.profile_id = p.profile_id
ORDER BY c.run, c.tool, p.rank, c.profile_id, c.window_index, c.process_id, c.device_id, c.context, c.stream, c.at_ns,
    c.change DESC, c.launch_id;
