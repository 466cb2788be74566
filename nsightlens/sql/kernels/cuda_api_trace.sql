-- Each API call, in order: the rows of `nsys stats cuda_api_trace`, without the priority of the thread.
-- @scope rows
-- @needs api_calls
-- @requires api_calls, processes
-- @assumes The tool recorded the calls: nsys those of its --trace, Kineto a subset.
-- @column run            Run (one workload in one configuration).
-- @column tool           nsys or kineto. Never add them up: they saw the same calls.
-- @column rank           Rank of the process; NULL where unknown.
-- @column start_ns       Start, relative to the profile's origin.
-- @column duration_ns    Duration.
-- @column name           Function, without the API version suffix.
-- @column return_value   Return code, where recorded (0 = success).
-- @column pid            OS process id.
-- @column thread         OS thread id of the caller.
-- @column profile_id     Profile; starts are comparable only within one.
-- @column process_id     OS process.
-- @column correlation_id CUPTI correlation id.
-- @column launch_id      The call; key of `api_calls`.
-- @names function name
CREATE VIEW cuda_api_trace AS
SELECT c.run, c.tool, p.rank, c.start_ns, c.duration_ns, c.name, c.return_value, p.pid, c.thread, c.profile_id, c.process_id,
    c.correlation_id, c.launch_id
FROM api_calls AS c
LEFT JOIN processes AS p ON c.profile_id = p.profile_id AND c.process_id = p.process_id
ORDER BY c.run, c.tool, c.profile_id, c.start_ns, c.launch_id;
