-- Memory over time, per process and device: a row per allocation or release that the PyTorch profiler recorded, in order.
-- Totals are the allocator's own, as recorded (NULL in traces before PyTorch 1.10); net_bytes counts from the first event.
-- @scope rows
-- @needs allocations
-- @requires allocations, processes
-- @assumes The trace was recorded with profile_memory=True, the only source: no other capture has a row.
-- @assumes PyTorch's allocator manages the memory: CUDA contexts, NCCL buffers and other libraries' memory are not in it.
-- @column run              Run (one workload in one configuration).
-- @column tool             kineto.
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
    a.total_allocated_bytes AS allocated_bytes, a.total_reserved_bytes AS reserved_bytes,
    TRY_CAST(sum(a.bytes) OVER (PARTITION BY a.profile_id, a.process_id, a.window_index, a.device_type, a.device
        ORDER BY a.at_ns, a.allocation_id ROWS UNBOUNDED PRECEDING) AS BIGINT) AS net_bytes,
    a.allocation_id
FROM allocations AS a
LEFT JOIN processes AS p ON p.process_id = a.process_id AND p.profile_id = a.profile_id
ORDER BY a.run, a.tool, p.rank, a.profile_id, a.process_id, a.window_index, a.device_type, a.device, a.at_ns, a.allocation_id;
