-- GPU and host time by Python frame, per process: which functions launched the GPU work. A row is a function, a module or a
-- built-in, wherever it was called from. Self counts what the frame launched or took itself; total includes the frames within
-- it. A function that calls itself counts once. Two more rows per process hold the GPU work that belongs to no frame. GPU time
-- is a sum of durations of kernels and memory operations: concurrent ones count separately.
-- @scope profile
-- @needs frames
-- @requires frames, stack_tree
-- @assumes The trace has Python frames: the PyTorch profiler with with_stack=True. Other captures have no row.
-- @assumes Torch 1.8 to 1.10 recorded stacks of operators but no function calls: calls and host times are NULL, lines are those
--     that ran, and work outside operators has no stack.
-- @assumes The innermost frame around the launching call caused the work; backward work belongs to the frame that called the forward operator with its sequence number.
-- @assumes Python runs more slowly while its frames are recorded: host times are those of that recording.
-- @balance process_gpu_ns = gpu_self_ns per run, tool, profile_id, process_id
-- @first name, gpu_total_ns, gpu_self_ns, calls, host_total_ns
-- @column run             Run (one workload in one configuration).
-- @column tool            kineto.
-- @column rank            Rank of the process; NULL where unknown.
-- @column profile_id      Profile; key of `profiles`.
-- @column process_id      OS process.
-- @column name            Frame as the profiler prints it; (no stack): launched where no frame was open; (no call): its
--                         launching call is not known.
-- @column file            File of the function; NULL for built-ins and modules.
-- @column line            First line of the function, not the line that runs (but of torch 1.8 to 1.10).
-- @column function        Name of the function; NULL for built-ins and modules.
-- @column calls           Calls.
-- @column launches        Kernels and memory operations that it launched itself.
-- @column gpu_self_ns     GPU time that it launched itself.
-- @column gpu_total_ns    That, and that of the frames within it.
-- @column backward_ns     The part of gpu_total_ns that is backward.
-- @column host_self_ns    Host time, without the frames that it called. Short frames that launch nothing are not stored, and
--                         count here.
-- @column host_total_ns   Sum of the calls' durations.
-- @column process_gpu_ns  All GPU time of the process.
CREATE VIEW stack_summary AS
SELECT t.run, t.tool, t.rank, t.profile_id, t.process_id, t.name,
    nullif(regexp_extract(t.name, '^(.+)\((\d{1,9})\): (.+)$', 1), '') AS file,
    TRY_CAST(nullif(regexp_extract(t.name, '^(.+)\((\d{1,9})\): (.+)$', 2), '') AS INTEGER) AS line,
    nullif(regexp_extract(t.name, '^(.+)\((\d{1,9})\): (.+)$', 3), '') AS function,
    TRY_CAST(sum(t.calls) AS BIGINT) AS calls, TRY_CAST(sum(t.launches) AS BIGINT) AS launches,
    TRY_CAST(sum(t.gpu_self_ns) AS BIGINT) AS gpu_self_ns,
    TRY_CAST(coalesce(sum(t.gpu_total_ns) FILTER (f.recursive IS NOT true), 0) AS BIGINT) AS gpu_total_ns,
    TRY_CAST(coalesce(sum(t.backward_ns) FILTER (f.recursive IS NOT true), 0) AS BIGINT) AS backward_ns,
    TRY_CAST(sum(t.host_self_ns) AS BIGINT) AS host_self_ns,
    TRY_CAST(sum(t.host_total_ns) FILTER (f.recursive IS NOT true) AS BIGINT) AS host_total_ns,
    max(t.process_gpu_ns) AS process_gpu_ns
FROM stack_tree AS t LEFT JOIN frames AS f USING (frame_id)
GROUP BY t.run, t.tool, t.rank, t.profile_id, t.process_id, t.name
ORDER BY t.run, t.tool, t.rank, t.profile_id, t.process_id, gpu_self_ns DESC, host_self_ns DESC NULLS LAST, t.name;
