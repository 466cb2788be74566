-- How long each step was in each state: which categories of activity were going on at once. The durations of a step sum
-- to its length. A sweep over the starts and ends of all intervals: a running sum of +1 and -1 holds, in 15 bits for each
-- category, how many intervals of that category go on after each instant, and beside it the step.
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
-- @column compute             A kernel that does not communicate was running, or a graph of unknown kernels.
-- @column memcpy              A copy or migration was running.
-- @column memset              A memset was running.
-- @column communication       A kernel that communicates was running.
-- @column communication_call  The host was inside a communication operator.
-- @column runtime             The host was inside a call of the CUDA or HIP API.
-- @column data_loader         The host was waiting for the data loader.
-- @column cpu_exec            The host was inside an operator.
-- @column total_ns            Time in that state.
CREATE MACRO _step_states(communication_pattern := NULL) AS TABLE
WITH steps AS MATERIALIZED (
    SELECT *, dense_rank() OVER (ORDER BY profile_id, process_id, window_index) AS track,
        row_number() OVER (ORDER BY profile_id, process_id, window_index, start_ns, end_ns, step_id) AS place
    FROM _steps
), work AS (
    SELECT t.track, a.start_ns, a.end_ns, 1::HUGEINT << (15 * (list_position(['kernel', 'memcpy', 'memset', 'communication',
        'communication_call', 'runtime', 'data_loader', 'cpu_exec'], a.category)::INTEGER - 1)) AS weight
    FROM _step_activities(communication_pattern := communication_pattern) AS a
    JOIN (SELECT DISTINCT track, profile_id, process_id, window_index FROM steps) AS t
        ON t.profile_id = a.profile_id AND t.process_id IS NOT DISTINCT FROM a.process_id
        AND t.window_index IS NOT DISTINCT FROM a.window_index
), instants AS (
    SELECT track, at_ns, TRY_CAST(sum(place) AS BIGINT) AS place, sum(weight)::HUGEINT AS weight
    FROM (
        SELECT track, start_ns AS at_ns, weight, 0 AS place FROM work
        UNION ALL SELECT track, end_ns, -weight, 0 FROM work
        UNION ALL SELECT track, start_ns, 0, place FROM steps
        UNION ALL SELECT track, end_ns, 0, -place FROM steps
    ) GROUP BY track, at_ns
), sweep AS (
    SELECT sum(place) OVER past AS place, sum(weight) OVER past AS running, lead(at_ns) OVER track - at_ns AS length_ns
    FROM instants
    WINDOW track AS (PARTITION BY track ORDER BY at_ns),
        past AS (PARTITION BY track ORDER BY at_ns ROWS UNBOUNDED PRECEDING)
), states AS (
    SELECT place, running & 32767::HUGEINT > 0 AS compute, running & (32767::HUGEINT << 15) > 0 AS memcpy,
        running & (32767::HUGEINT << 30) > 0 AS memset, running & (32767::HUGEINT << 45) > 0 AS communication,
        running & (32767::HUGEINT << 60) > 0 AS communication_call, running & (32767::HUGEINT << 75) > 0 AS runtime,
        running & (32767::HUGEINT << 90) > 0 AS data_loader, running & (32767::HUGEINT << 105) > 0 AS cpu_exec,
        sum(length_ns) AS total_ns
    FROM sweep WHERE place > 0 AND length_ns IS NOT NULL
    GROUP BY ALL
)
SELECT s.run, s.tool, s.profile_id, s.process_id, s.window_index, s.step_id, s.step, s.start_ns, w.compute, w.memcpy, w.memset,
    w.communication, w.communication_call, w.runtime, w.data_loader, w.cpu_exec, TRY_CAST(w.total_ns AS BIGINT) AS total_ns
FROM states AS w JOIN steps AS s USING (place);
