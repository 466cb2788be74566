-- Memory over time, per process and device: a row per allocation or release that was recorded, in order. Under the PyTorch
-- profiler totals are its allocator's own, as recorded (NULL in traces before PyTorch 1.10); nsys records CUDA's own allocations,
-- and their total is net_bytes, which counts from the first event.
-- @scope rows
-- @needs allocations
-- @requires allocations, processes
-- @assumes The trace was recorded with profile_memory=True, or with nsys --cuda-memory-usage=true from the start of the program.
-- @assumes PyTorch's allocator manages the memory: CUDA contexts, NCCL buffers and other libraries' memory are not in it.
-- @column run              Run (one workload in one configuration).
-- @column tool             kineto or nsys. Never add them up: what PyTorch hands out lies within what it asked CUDA for.
-- @column rank             Rank of the process; NULL where unknown.
-- @column profile_id       Profile; key of `profiles`.
-- @column process_id       OS process.
-- @column window_index     Capture window of the process, from 0.
-- @column device_type      cpu, cuda or the number the tool printed.
-- @column device           Device ordinal; NULL for the CPU.
-- @column at_ns            Time, relative to the profile's origin.
-- @column bytes            Bytes allocated, negative when released.
-- @column allocated_bytes  Allocated on the device after the event.
-- @column reserved_bytes   Reserved by the caching allocator after the event.
-- @column net_bytes        Allocated less released since the first event of the window.
-- @column allocation_id    The event; key of `allocations`.
CREATE VIEW memory_curve AS
SELECT a.run, a.tool, p.rank, a.profile_id, a.process_id, a.window_index, a.device_type, a.device, a.at_ns, a.bytes,
    CASE WHEN a.tool = 'nsys' THEN a.net_bytes ELSE a.total_allocated_bytes END AS allocated_bytes,
    a.total_reserved_bytes AS reserved_bytes, a.net_bytes, a.allocation_id
FROM (
    SELECT *, TRY_CAST(sum(bytes) OVER (PARTITION BY profile_id, process_id, window_index, device_type, device
        ORDER BY at_ns, allocation_id ROWS UNBOUNDED PRECEDING) AS BIGINT) AS net_bytes
    FROM allocations
) AS a
LEFT JOIN processes AS p ON p.process_id = a.process_id AND p.profile_id = a.profile_id
ORDER BY a.run, a.tool, p.rank, a.profile_id, a.process_id, a.window_index, a.device_type, a.device, a.at_ns, a.allocation_id;
