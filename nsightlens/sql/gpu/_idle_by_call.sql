-- How long the GPU idled during the calls of each function of the CUDA or HIP API, per process: their lengths without the union of
-- the GPU work of the process. A call within another one of its thread is part of that. A sweep over the starts and ends of work
-- and calls: the idle time up to each edge is summed; what fell on a call is the difference of its two edges, and what fell on
-- all calls of a function the sum over their edges.
-- @scope profile
-- @requires _gpu_work, api_calls
-- @column profile_id    Profile.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process.
-- @column name          The function.
-- @column calls         Calls, those within others left out.
-- @column longest_ns    The longest of them.
-- @column idle_ns       Time in which nothing ran on the GPU, summed over them.
CREATE VIEW _idle_by_call AS
WITH threads AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY profile_id, process_id, window_index, thread, name)::INTEGER AS code,
        dense_rank() OVER (ORDER BY profile_id, process_id, window_index)::INTEGER AS track,
        dense_rank() OVER (ORDER BY profile_id, process_id, window_index, thread) AS line
    FROM (SELECT DISTINCT profile_id, process_id, window_index, thread, name FROM api_calls WHERE duration_ns > 0)
), called AS NOT MATERIALIZED (
    SELECT t.line, t.track, t.code, a.start_ns, a.start_ns + a.duration_ns AS end_ns
    FROM api_calls AS a JOIN threads AS t ON t.profile_id = a.profile_id AND t.process_id IS NOT DISTINCT FROM a.process_id
        AND t.window_index IS NOT DISTINCT FROM a.window_index AND t.thread IS NOT DISTINCT FROM a.thread
        AND t.name IS NOT DISTINCT FROM a.name
    WHERE a.duration_ns > 0
    ORDER BY t.line, a.start_ns, a.duration_ns DESC, a.launch_id
), reached AS NOT MATERIALIZED (
    -- streaming windows, as in _gpu_states: the thread above the end, so that each thread begins with a greater one
    SELECT *, max((line::HUGEINT << 64) + end_ns) OVER (ROWS UNBOUNDED PRECEDING) AS reach FROM called
), outermost AS MATERIALIZED (
    SELECT track, code, start_ns, end_ns
    FROM (SELECT *, lag(reach) OVER () AS until FROM reached)
    WHERE coalesce(until <= (line::HUGEINT << 64) + start_ns, true)
), edges AS NOT MATERIALIZED (
    SELECT track, unnest([start_ns, end_ns]) AS at_ns, unnest([code, -code]) AS call, 0::TINYINT AS work FROM outermost
    UNION ALL
    SELECT t.track, unnest([w.start_ns, w.end_ns]), 0, unnest([1::TINYINT, -1::TINYINT])
    FROM _gpu_work AS w JOIN (SELECT DISTINCT track, profile_id, process_id, window_index FROM threads) AS t
        ON t.profile_id = w.profile_id AND t.process_id IS NOT DISTINCT FROM w.process_id
        AND t.window_index IS NOT DISTINCT FROM w.window_index
    WHERE w.end_ns > w.start_ns
    ORDER BY track, at_ns
), lengths AS NOT MATERIALIZED (
    SELECT call, CASE WHEN sum(work) OVER (ROWS UNBOUNDED PRECEDING) = 0 AND lead(track) OVER () = track
        THEN lead(at_ns) OVER () - at_ns ELSE 0 END AS idle_ns
    FROM edges
), idle AS (
    -- before each edge, the time after it left out: of the edges of one instant only the last has some
    SELECT abs(call) AS code, sum(-sign(call) * before_ns) AS idle_ns
    FROM (SELECT call, sum(idle_ns) OVER (ROWS UNBOUNDED PRECEDING) - idle_ns AS before_ns FROM lengths)
    WHERE call <> 0 GROUP BY abs(call)
), counted AS (
    SELECT code, count(*) AS calls, max(end_ns - start_ns) AS longest_ns FROM outermost GROUP BY code
)
SELECT t.profile_id, t.process_id, t.window_index, t.name, TRY_CAST(sum(c.calls) AS BIGINT) AS calls,
    max(c.longest_ns) AS longest_ns, TRY_CAST(sum(i.idle_ns) AS BIGINT) AS idle_ns
FROM threads AS t JOIN counted AS c USING (code) JOIN idle AS i USING (code)
GROUP BY t.profile_id, t.process_id, t.window_index, t.name;
