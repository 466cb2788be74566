-- Allocations with their releases, as the plugin's Memory Events: who allocated how much, when, and how long.
-- A row per allocation, and per release of what was allocated before the capture. A release belongs to the last allocation of
-- its address, if that had its size; traces of PyTorch before 1.10 have no addresses, and each release is a row of its own.
-- @scope rows
-- @needs allocations
-- @requires allocations, ranges, processes
-- @assumes The trace was recorded with profile_memory=True, or with nsys --cuda-memory-usage=true.
-- @assumes The operator around an allocation, on its thread, caused it. Memory outside PyTorch's allocator is not seen.
-- @first name, bytes, allocated_at_ns, released_at_ns, held_ns
-- @column run              Run (one workload in one configuration).
-- @column tool             kineto or nsys.
-- @column rank             Rank of the process; NULL where unknown.
-- @column profile_id       Profile; key of `profiles`.
-- @column process_id       OS process.
-- @column window_index     Capture window of the process, from 0.
-- @column device_type      cpu, cuda or the number the tool printed.
-- @column device           Device ordinal; NULL for the CPU.
-- @column name             Operator that allocated; NULL: none, or before the capture.
-- @column bytes            Bytes allocated.
-- @column allocated_at_ns  When, relative to the profile's origin; NULL: before the capture.
-- @column released_at_ns   When it was released; NULL: not in the capture.
-- @column held_ns          From allocation to release; NULL where one of them is not known.
-- @column allocation_id    The allocation, else the release; key of `allocations`.
-- @names operator name
CREATE VIEW memory_events AS
WITH events AS (
    SELECT *, lag(bytes) OVER same AS bytes_before, lead(bytes) OVER same AS bytes_after, lead(at_ns) OVER same AS after_ns
    FROM allocations
    WINDOW same AS (PARTITION BY profile_id, process_id, window_index, device_type, device,
        coalesce(address, allocation_id), address IS NULL ORDER BY at_ns, allocation_id)
), pairs AS (
    SELECT *, bytes > 0 AS is_allocation, bytes > 0 AND bytes_after IS NOT DISTINCT FROM -bytes::HUGEINT AS is_released FROM events
    WHERE bytes > 0 OR bytes < 0 AND bytes_before IS DISTINCT FROM -bytes::HUGEINT
)
SELECT a.run, a.tool, p.rank, a.profile_id, a.process_id, a.window_index, a.device_type, a.device,
    CASE WHEN a.is_allocation THEN o.name END AS name, TRY_CAST(abs(a.bytes::HUGEINT) AS BIGINT) AS bytes,
    CASE WHEN a.is_allocation THEN a.at_ns END AS allocated_at_ns,
    CASE WHEN NOT a.is_allocation THEN a.at_ns WHEN a.is_released THEN a.after_ns END AS released_at_ns,
    CASE WHEN a.is_released THEN a.after_ns - a.at_ns END AS held_ns, a.allocation_id
FROM pairs AS a
LEFT JOIN ranges AS o ON o.range_id = a.op_range_id
LEFT JOIN processes AS p ON p.process_id = a.process_id AND p.profile_id = a.profile_id
ORDER BY a.run, a.tool, p.rank, a.profile_id, a.process_id, a.window_index, a.device_type, a.device, bytes DESC, a.allocation_id;
