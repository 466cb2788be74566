-- How long each step was in each state: which categories of activity were going on at once. The durations of a step sum
-- to its length; a step of no length has one row, of no state. A sweep over the starts and ends of all intervals: two running
-- sums of +1 and -1 hold, in 15 bits for each category, how many intervals of that category go on after each instant, and
-- a third the step. step_breakdown, execution_summary and distributed_overview have their rows from here.
-- @scope profile
-- @requires _steps, _step_activities
-- @param  communication_pattern  Regex of the kernel names that communicate; NULL: family `collective`.
-- @column run                 Run.
-- @column tool                nsys or kineto.
-- @column profile_id          Profile.
-- @column process_id          OS process.
-- @column window_index        Capture window of the process.
-- @column step_id             Range of the step; NULL for a process without steps.
-- @column step                Step number; NULL where unknown.
-- @column start_ns            Start of the step's window.
-- @column end_ns              Its end.
-- @column gpu_activities      Pieces of GPU work launched inside the step's range.
-- @column compute             A kernel that does not communicate was running, or a graph of unknown kernels.
-- @column memcpy              A copy, migration or decompression was running.
-- @column memset              A memset was running.
-- @column communication       A kernel that communicates was running.
-- @column communication_call  The host was inside a communication operator.
-- @column runtime             The host was inside a call of the CUDA or HIP API.
-- @column data_loader         The host was waiting for the data loader.
-- @column cpu_exec            The host was inside an operator.
-- @column total_ns            Time in that state.
CREATE MACRO _step_states(communication_pattern := NULL) AS TABLE
WITH steps AS MATERIALIZED (
    SELECT *, dense_rank() OVER (ORDER BY profile_id, process_id, window_index)::INTEGER AS track,
        row_number() OVER (ORDER BY profile_id, process_id, window_index, start_ns, end_ns, step_id)::INTEGER AS place
    FROM _steps
), work AS NOT MATERIALIZED (
    SELECT t.track, a.start_ns, a.end_ns, list_position(['kernel', 'memcpy', 'memset', 'communication', 'communication_call',
        'runtime', 'data_loader', 'cpu_exec'], a.category)::INTEGER AS category
    FROM _step_activities(communication_pattern := communication_pattern) AS a
    JOIN (SELECT DISTINCT track, profile_id, process_id, window_index FROM steps) AS t
        ON t.profile_id = a.profile_id AND t.process_id IS NOT DISTINCT FROM a.process_id
        AND t.window_index IS NOT DISTINCT FROM a.window_index
), edges AS NOT MATERIALIZED (
    -- 1 to 8 is a category, what is above them a step; below 0 it ends
    SELECT track, unnest([start_ns, end_ns]) AS at_ns, unnest([category, -category]) AS change FROM work
    UNION ALL
    SELECT track, unnest([start_ns, end_ns]), unnest([8 + place, -8 - place]) FROM steps
    ORDER BY track, at_ns
), sweep AS NOT MATERIALIZED (
    -- a streaming window, as in _gpu_states
    SELECT CASE WHEN lead(track) OVER () = track THEN lead(at_ns) OVER () - at_ns ELSE 0 END AS length_ns,
        sum(CASE WHEN change > 8 THEN change - 8 WHEN change < -8 THEN change + 8 ELSE 0 END) OVER (ROWS UNBOUNDED PRECEDING) AS place,
        sum(CASE WHEN change BETWEEN 1 AND 4 THEN 1::BIGINT << (15 * (change - 1))
            WHEN change BETWEEN -4 AND -1 THEN -(1::BIGINT << (15 * (-change - 1))) ELSE 0 END)
            OVER (ROWS UNBOUNDED PRECEDING) AS device,
        sum(CASE WHEN change BETWEEN 5 AND 8 THEN 1::BIGINT << (15 * (change - 5))
            WHEN change BETWEEN -8 AND -5 THEN -(1::BIGINT << (15 * (-change - 5))) ELSE 0 END)
            OVER (ROWS UNBOUNDED PRECEDING) AS host
    FROM edges
), states AS (
    SELECT place::INTEGER AS place, device & 32767 > 0 AS compute, device & (32767::BIGINT << 15) > 0 AS memcpy,
        device & (32767::BIGINT << 30) > 0 AS memset, device & (32767::BIGINT << 45) > 0 AS communication,
        host & 32767 > 0 AS communication_call, host & (32767::BIGINT << 15) > 0 AS runtime,
        host & (32767::BIGINT << 30) > 0 AS data_loader, host & (32767::BIGINT << 45) > 0 AS cpu_exec,
        sum(length_ns) AS total_ns
    FROM sweep WHERE place > 0 AND length_ns > 0
    GROUP BY ALL
)
SELECT s.run, s.tool, s.profile_id, s.process_id, s.window_index, s.step_id, s.step, s.start_ns, s.end_ns, s.gpu_activities,
    w.compute, w.memcpy, w.memset, w.communication, w.communication_call, w.runtime, w.data_loader, w.cpu_exec,
    TRY_CAST(w.total_ns AS BIGINT) AS total_ns
FROM steps AS s LEFT JOIN states AS w USING (place);
