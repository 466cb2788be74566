-- Peak memory per process and device: the highest total that the allocator recorded, when, and in which operator, and its
-- share of the device's memory where known. NULL where the trace holds no totals (before PyTorch 1.10).
-- @scope profile
-- @needs allocations
-- @requires memory_curve, allocations, ranges, devices
-- @assumes The peak lies within the captured window: what was allocated and released before it is not seen.
-- @assumes PyTorch's allocator manages the memory: CUDA contexts, NCCL buffers and other libraries' memory are not in it.
-- @column run                   Run (one workload in one configuration).
-- @column tool                  kineto or nsys.
-- @column rank                  Rank of the process; NULL where unknown.
-- @column profile_id            Profile; key of `profiles`.
-- @column process_id            OS process.
-- @column window_index          Capture window of the process, from 0.
-- @column device_type           cpu, cuda or the number the tool printed.
-- @column device                Device ordinal; NULL for the CPU.
-- @column peak_allocated_bytes  Greatest allocated total.
-- @column peak_at_ns            When it was first reached, relative to the profile's origin.
-- @column peak_op               Innermost operator then; NULL where none is known.
-- @column peak_reserved_bytes   Greatest reserved total.
-- @column memory_bytes          Memory of the device.
-- @column peak_pct              peak_allocated_bytes as a share of memory_bytes, to one decimal.
-- @column allocations           Allocations.
-- @column releases              Releases.
-- @column allocated_bytes       Sum of the allocations.
-- @column net_bytes             Allocated less released over the window.
CREATE VIEW memory_peak AS
WITH peak AS (
    SELECT run, tool, rank, profile_id, process_id, window_index, device_type, device,
        max(allocated_bytes) AS peak_allocated_bytes,
        arg_min({'at_ns': at_ns, 'allocation_id': allocation_id},
            {'less': -allocated_bytes, 'at_ns': at_ns, 'allocation_id': allocation_id})
            FILTER (allocated_bytes IS NOT NULL) AS event,
        max(reserved_bytes) AS peak_reserved_bytes, count(*) FILTER (bytes > 0) AS allocations,
        count(*) FILTER (bytes < 0) AS releases, TRY_CAST(coalesce(sum(bytes) FILTER (bytes > 0), 0) AS BIGINT) AS allocated_bytes,
        TRY_CAST(sum(bytes) AS BIGINT) AS net_bytes
    FROM memory_curve
    GROUP BY run, tool, rank, profile_id, process_id, window_index, device_type, device
), memory AS (
    SELECT profile_id, process_id, device, max(memory_bytes) AS memory_bytes FROM devices GROUP BY profile_id, process_id, device
)
SELECT k.run, k.tool, k.rank, k.profile_id, k.process_id, k.window_index, k.device_type, k.device, k.peak_allocated_bytes,
    k.event.at_ns AS peak_at_ns, r.name AS peak_op, k.peak_reserved_bytes, m.memory_bytes,
    round(100.0 * k.peak_allocated_bytes / nullif(m.memory_bytes, 0), 1) AS peak_pct,
    k.allocations, k.releases, k.allocated_bytes, k.net_bytes
FROM peak AS k
LEFT JOIN allocations AS a ON a.profile_id = k.profile_id AND a.allocation_id = k.event.allocation_id
LEFT JOIN ranges AS r ON r.profile_id = k.profile_id AND r.range_id = a.op_range_id
LEFT JOIN memory AS m ON m.profile_id = k.profile_id AND m.process_id = k.process_id AND m.device = k.device
    AND k.device_type <> 'cpu'
ORDER BY k.run, k.tool, k.rank, k.profile_id, k.process_id, k.window_index, k.device_type, k.device;
