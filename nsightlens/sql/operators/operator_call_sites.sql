-- Where each operator was called from: the column "call stack" of the TensorBoard plugin. A row is an operator with one stack
-- of Python frames, per process. Self times add up; total times include the operators inside, which have rows of their own.
-- @scope run
-- @needs frames
-- @requires _operators, ranges, frames, processes
-- @assumes The trace has Python frames: the PyTorch profiler with with_stack=True. Other captures have no row.
-- @assumes A backward operator belongs to the call site of the forward operator with its sequence number.
-- @first op, call_site, calls, device_self_ns, device_total_ns, host_total_ns
-- @column run              Run (one workload in one configuration).
-- @column tool             kineto.
-- @column rank             Rank of the process; NULL where unknown.
-- @column profile_id       Profile; key of `profiles`.
-- @column process_id       OS process.
-- @column op               Operator.
-- @column call_site        Innermost frame around it; NULL where no frame was open.
-- @column call_stack       The frames around it, innermost first, joined by ';', as the plugin does.
-- @column calls            Calls.
-- @column device_self_ns   GPU time that it launched itself; a sum of durations.
-- @column device_total_ns  That, and that of the operators inside it.
-- @column host_self_ns     Host time, less the operators inside it and the API calls that it made itself.
-- @column host_total_ns    Sum of the calls' durations.
-- @names operator op
CREATE VIEW operator_call_sites AS
WITH RECURSIVE stacks AS (
    SELECT frame_id, name, name AS stack FROM frames WHERE parent_id IS NULL
    UNION ALL
    SELECT f.frame_id, f.name, f.name || ';' || s.stack FROM frames AS f JOIN stacks AS s ON f.parent_id = s.frame_id
)
SELECT o.run, o.tool, p.rank, o.profile_id, o.process_id, o.name AS op, s.name AS call_site, s.stack AS call_stack,
    count(*) AS calls,
    TRY_CAST(sum(o.device_self_ns) AS BIGINT) AS device_self_ns, TRY_CAST(sum(o.device_total_ns) AS BIGINT) AS device_total_ns,
    TRY_CAST(sum(o.host_self_ns) AS BIGINT) AS host_self_ns, TRY_CAST(sum(o.host_total_ns) AS BIGINT) AS host_total_ns
FROM _operators AS o
JOIN ranges AS r USING (range_id)
LEFT JOIN stacks AS s ON s.frame_id = r.frame_id
LEFT JOIN processes AS p ON p.process_id = o.process_id AND p.profile_id = o.profile_id
WHERE o.profile_id IN (SELECT profile_id FROM frames)
GROUP BY o.run, o.tool, p.rank, o.profile_id, o.process_id, o.name, s.name, s.stack
ORDER BY o.run, o.tool, p.rank, o.profile_id, o.process_id, device_self_ns DESC, device_total_ns DESC, host_total_ns DESC, op,
    call_stack;
