-- Calls that wait until all work of a device or of a stream is done, the longest first: the rule `nsys analyze -r cuda_api_sync`.
-- What each waits for is known where CUPTI recorded the wait. Use cudaStreamWaitEvent instead, or cudaEventSynchronize where
-- needed.
-- @scope rows
-- @needs api_calls
-- @requires api_calls, synchronizations, processes
-- @assumes The wait of a call is the one with the same correlation id in the process.
-- @assumes A call blocks only its own thread: totals over threads are not wall time.
-- @column run          Run (one workload in one configuration).
-- @column tool         nsys or kineto. Never add them up: they saw the same calls.
-- @column rank         Rank of the process; NULL where unknown.
-- @column duration_ns  Duration of the call.
-- @column wait_ns      Part of it that CUPTI counts as waiting; NULL where it recorded none.
-- @column waits_for    stream or context (several: by comma); NULL in the same cases.
-- @column stream       Least stream that it waits for; NULL where none is named.
-- @column name         Function, without the API version suffix.
-- @column pid          OS process id.
-- @column thread       OS thread id of the caller.
-- @column start_ns     Start, relative to the profile's origin.
-- @column profile_id   Profile; starts are comparable only within one.
-- @column process_id   OS process.
-- @column launch_id    The call; key of `api_calls`.
-- @names function name
CREATE VIEW cuda_api_sync AS
WITH waits AS (
    SELECT launch_id, sum(duration_ns)::BIGINT AS wait_ns, string_agg(DISTINCT kind, ', ' ORDER BY kind) AS waits_for,
        min(stream) AS stream
    FROM synchronizations
    WHERE launch_id IS NOT NULL
    GROUP BY launch_id
)
SELECT c.run, c.tool, p.rank, c.duration_ns, w.wait_ns, w.waits_for, w.stream, c.name, p.pid, c.thread, c.start_ns, c.profile_id,
    c.process_id, c.launch_id
FROM api_calls AS c
LEFT JOIN waits AS w ON c.launch_id = w.launch_id
LEFT JOIN processes AS p ON c.profile_id = p.profile_id AND c.process_id = p.process_id
WHERE regexp_matches(c.name, '^(cuda|hip)(device|stream)synchronize', 'i')
ORDER BY c.run, c.tool, c.duration_ns DESC NULLS LAST, c.launch_id;
