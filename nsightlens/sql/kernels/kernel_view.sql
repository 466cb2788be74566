-- The Kernel View of the TensorBoard plugin, by name: calls, time, tensor cores, blocks per SM and occupancy of each kernel
-- of a process. Means of blocks and occupancy are weighted by duration, over the calls that have the figure (the plugin
-- takes a missing one as 0); NULL where none has. Tensor cores: by ncu's counters where the run has some, else by name.
-- @scope run
-- @alias gpu_kernel_view
-- @requires _occupied_kernels
-- @assumes Tensor cores follow from the name where the run has no counter of the kernel_key; NULL where it does not show it.
-- @assumes Blocks per SM are as recorded, else grid / SMs of the GPU; occupancy is what Kineto estimates, and nsys records none.
-- @first name, total_ns, time_pct, calls, avg_ns, tensor_cores
-- @column run                      Run (one workload in one configuration).
-- @column tool                     Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
-- @column rank                     Rank of the process; NULL where unknown.
-- @column profile_id               Profile; key of `profiles`.
-- @column process_id               OS process.
-- @column name                     Kernel name as the tool prints it.
-- @column family                   Kernel family (gemm, collective, ...).
-- @column tensor_cores             Runs on tensor cores; NULL where unknown.
-- @column time_pct                 Share of the summed kernel time of the process, to two decimals.
-- @column calls                    Launches.
-- @column total_ns                 Sum of duration_ns.
-- @column avg_ns                   Mean duration, to one decimal.
-- @column max_ns                   Longest duration.
-- @column min_ns                   Shortest duration.
-- @column blocks_per_sm            Mean blocks of the grid per SM, to two decimals.
-- @column estimated_occupancy_pct  Mean estimated occupancy, to two decimals (Kineto).
-- @names kernel name
CREATE VIEW kernel_view AS
SELECT run, tool, rank, profile_id, process_id, name, min(family) AS family,
    CASE WHEN bool_or(tensor_used) THEN true WHEN bool_and(tensor_used IS NOT NULL) THEN false END AS tensor_cores,
    round(100.0 * sum(duration_ns)
        / nullif(sum(sum(duration_ns)) OVER (PARTITION BY run, tool, profile_id, process_id), 0), 2) AS time_pct,
    count(*) AS calls, TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns, round(avg(duration_ns), 1) AS avg_ns,
    max(duration_ns) AS max_ns, min(duration_ns) AS min_ns,
    round(fsum(sm_blocks * duration_ns) / nullif(sum(duration_ns) FILTER (sm_blocks IS NOT NULL), 0), 2) AS blocks_per_sm,
    round(fsum(estimated_occupancy_pct * duration_ns)
        / nullif(sum(duration_ns) FILTER (estimated_occupancy_pct IS NOT NULL), 0), 2) AS estimated_occupancy_pct
FROM _occupied_kernels
GROUP BY run, tool, rank, profile_id, process_id, name
ORDER BY run, tool, rank, profile_id, process_id, total_ns DESC NULLS LAST, name;
