-- Copies by calls that wait until they are done, the longest first: the rule `nsys analyze -r cuda_memcpy_sync`. Copies of at
-- most
-- 64,000 bytes to the GPU are left out: their call returns before they are done. Use the Async functions with pinned memory
-- instead.
-- @scope rows
-- @needs api_calls, memory_ops
-- @requires memory_ops, api_calls
-- @assumes The call of an operation is the one with the same correlation id in the process; an operation without one is not here.
-- @assumes Copies within one device are assumed to wait, too: the tools do not record a copy's source device.
-- @column run                Run (one workload in one configuration).
-- @column tool               nsys or kineto. Never add them up: they saw the same operations.
-- @column rank               Rank of the process; NULL where unknown.
-- @column duration_ns        Duration on the GPU.
-- @column call_ns            Duration of the call: how long the thread was held up.
-- @column bytes              Bytes moved or set.
-- @column function           The API function.
-- @column direction          HtoD, DtoH, ...
-- @column source_memory      Memory that it goes from.
-- @column destination_memory Memory that it goes to.
-- @column start_ns           Start on the GPU, relative to the profile's origin.
-- @column device_id          The physical GPU.
-- @column context            CUDA context id within the process.
-- @column stream             Stream id within the process.
-- @column thread             OS thread id of the caller.
-- @column profile_id         Profile; starts are comparable only within one.
-- @column process_id         OS process.
-- @column memory_op_id       The operation; key of `memory_ops`.
CREATE VIEW cuda_memcpy_sync AS
SELECT m.run, m.tool, m.rank, m.duration_ns, c.duration_ns AS call_ns, m.bytes, c.name AS function, m.direction,
    m.source_memory, m.destination_memory, m.start_ns, m.device_id, m.context, m.stream, c.thread, m.profile_id, m.process_id,
    m.memory_op_id
FROM memory_ops AS m
JOIN api_calls AS c ON m.launch_id = c.launch_id
WHERE m.kind = 'memcpy' AND regexp_matches(c.name, '^(cuda|hip)memcpy', 'i') AND NOT regexp_matches(c.name, 'async', 'i')
    AND NOT (m.direction IS NOT DISTINCT FROM 'HtoD' AND coalesce(m.bytes <= 64000, false))
ORDER BY m.run, m.tool, m.duration_ns DESC NULLS LAST, m.memory_op_id;
