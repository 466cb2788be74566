-- The kernels that each operator launched: the Kernel View of the TensorBoard plugin by properties and operator, per process.
-- A row is a kernel name with one operator, grid, block, registers and shared memory. Means of blocks and occupancy are
-- weighted by duration, over the calls that have the figure.
-- @scope run
-- @requires _occupied_kernels
-- @assumes The innermost operator around the launching call caused the kernel; op is NULL where none was recorded around it.
-- @assumes Blocks per SM are as recorded, else grid / SMs of the GPU; occupancy is what Kineto estimates, and nsys records none.
-- @first op, name, total_ns, calls, avg_ns
-- @column run                      Run (one workload in one configuration).
-- @column tool                     Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
-- @column rank                     Rank of the process; NULL where unknown.
-- @column profile_id               Profile; key of `profiles`.
-- @column process_id               OS process.
-- @column op                       Innermost operator that launched it; NULL where unknown.
-- @column name                     Kernel name as the tool prints it.
-- @column grid_x                   Grid size, x.
-- @column grid_y                   Grid size, y.
-- @column grid_z                   Grid size, z.
-- @column block_x                  Block size, x.
-- @column block_y                  Block size, y.
-- @column block_z                  Block size, z.
-- @column registers_per_thread     Registers per thread.
-- @column shared_bytes             Shared memory per block.
-- @column tensor_cores             Runs on tensor cores; NULL where unknown.
-- @column calls                    Launches.
-- @column total_ns                 Sum of duration_ns.
-- @column avg_ns                   Mean duration, to one decimal.
-- @column max_ns                   Longest duration.
-- @column min_ns                   Shortest duration.
-- @column blocks_per_sm            Mean blocks of the grid per SM, to two decimals.
-- @column estimated_occupancy_pct  Mean estimated occupancy, to two decimals (Kineto).
-- @names kernel name
-- @names operator op
CREATE VIEW operator_kernels AS
SELECT run, tool, rank, profile_id, process_id, op, name, grid_x, grid_y, grid_z, block_x, block_y, block_z,
    registers_per_thread, shared_bytes, bool_or(tensor_used) AS tensor_cores, count(*) AS calls,
    TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns, round(avg(duration_ns), 1) AS avg_ns, max(duration_ns) AS max_ns,
    min(duration_ns) AS min_ns,
    round(fsum(sm_blocks * duration_ns) / nullif(sum(duration_ns) FILTER (sm_blocks IS NOT NULL), 0), 2) AS blocks_per_sm,
    round(fsum(estimated_occupancy_pct * duration_ns)
        / nullif(sum(duration_ns) FILTER (estimated_occupancy_pct IS NOT NULL), 0), 2) AS estimated_occupancy_pct
FROM _occupied_kernels
GROUP BY run, tool, rank, profile_id, process_id, op, name, grid_x, grid_y, grid_z, block_x, block_y, block_z,
    registers_per_thread, shared_bytes
ORDER BY run, tool, rank, profile_id, process_id, op, total_ns DESC NULLS LAST, name, grid_x, grid_y, grid_z, block_x,
    block_y, block_z, registers_per_thread, shared_bytes;
