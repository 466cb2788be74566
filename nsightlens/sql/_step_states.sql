-- How long each step was in each state: which categories of activity were going on at once. The durations of a step sum
-- to its length. A sweep over the starts and ends of all intervals, each instant counted once per category.
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
-- @column kernel              A kernel that does not communicate was running, or a graph of unknown kernels.
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
    SELECT t.track, a.start_ns, a.end_ns, a.category
    FROM _step_activities(communication_pattern := communication_pattern) AS a
    JOIN (SELECT DISTINCT track, profile_id, process_id, window_index FROM steps) AS t
        ON t.profile_id = a.profile_id AND t.process_id IS NOT DISTINCT FROM a.process_id
        AND t.window_index IS NOT DISTINCT FROM a.window_index
), edges AS (
    SELECT track, start_ns AS at_ns, category, 1 AS change, 0 AS place FROM work
    UNION ALL SELECT track, end_ns, category, -1, 0 FROM work
    UNION ALL SELECT track, start_ns, 'step', 0, place FROM steps
    UNION ALL SELECT track, end_ns, 'step', 0, -place FROM steps
), instants AS (
    SELECT track, at_ns, sum(place)::BIGINT AS step,
        coalesce(sum(change) FILTER (category = 'kernel'), 0)::BIGINT AS kernel,
        coalesce(sum(change) FILTER (category = 'memcpy'), 0)::BIGINT AS memcpy,
        coalesce(sum(change) FILTER (category = 'memset'), 0)::BIGINT AS memset,
        coalesce(sum(change) FILTER (category = 'communication'), 0)::BIGINT AS communication,
        coalesce(sum(change) FILTER (category = 'communication_call'), 0)::BIGINT AS communication_call,
        coalesce(sum(change) FILTER (category = 'runtime'), 0)::BIGINT AS runtime,
        coalesce(sum(change) FILTER (category = 'data_loader'), 0)::BIGINT AS data_loader,
        coalesce(sum(change) FILTER (category = 'cpu_exec'), 0)::BIGINT AS cpu_exec
    FROM edges GROUP BY track, at_ns
), sweep AS (
    SELECT sum(step) OVER past AS place, sum(kernel) OVER past > 0 AS kernel, sum(memcpy) OVER past > 0 AS memcpy,
        sum(memset) OVER past > 0 AS memset, sum(communication) OVER past > 0 AS communication,
        sum(communication_call) OVER past > 0 AS communication_call, sum(runtime) OVER past > 0 AS runtime,
        sum(data_loader) OVER past > 0 AS data_loader, sum(cpu_exec) OVER past > 0 AS cpu_exec,
        lead(at_ns) OVER (PARTITION BY track ORDER BY at_ns) - at_ns AS length_ns
    FROM instants
    WINDOW past AS (PARTITION BY track ORDER BY at_ns ROWS UNBOUNDED PRECEDING)
)
SELECT s.run, s.tool, s.profile_id, s.process_id, s.window_index, s.step_id, s.step, s.start_ns, w.kernel, w.memcpy,
    w.memset, w.communication, w.communication_call, w.runtime, w.data_loader, w.cpu_exec, sum(w.length_ns)::BIGINT AS total_ns
FROM sweep AS w JOIN steps AS s USING (place)
GROUP BY s.place, s.run, s.tool, s.profile_id, s.process_id, s.window_index, s.step_id, s.step, s.start_ns, w.kernel, w.memcpy,
    w.memset, w.communication, w.communication_call, w.runtime, w.data_loader, w.cpu_exec;
