-- Each API call that launched GPU work, with that work. A graph launch owns many kernels: it is one row, as is a copy.
-- @scope rows
-- @requires _stream_work
-- @column run               Run.
-- @column tool              nsys or kineto.
-- @column profile_id        Profile.
-- @column process_id        OS process.
-- @column launch_id         The call.
-- @column call              Name of the call.
-- @column pieces            Kernels, memory operations and graphs that it launched.
-- @column call_duration_ns  Duration of the call.
-- @column gpu_duration_ns   Sum of the durations of the work.
-- @column launch_delay_ns   End of the call to start of the first work; 0 where it began before the call returned.
CREATE VIEW _launches AS
SELECT run, tool, profile_id, process_id, launch_id, call, count(*) AS pieces,
    call_end_ns - call_start_ns AS call_duration_ns,
    TRY_CAST(sum(end_ns - start_ns) AS BIGINT) AS gpu_duration_ns,
    greatest(min(start_ns) - call_end_ns, 0) AS launch_delay_ns
FROM _stream_work
WHERE call_end_ns IS NOT NULL
GROUP BY run, tool, profile_id, process_id, launch_id, call, call_start_ns, call_end_ns;
