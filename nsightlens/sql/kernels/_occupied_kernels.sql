-- Kernels with what the views of occupancy need: blocks per SM (recorded, else from the grid and the GPU's SMs) and
-- whether they ran on tensor cores (by ncu's counters of the same kernel in the run, else by the name).
-- @scope rows
-- @requires _bounded_kernels, devices, _tensor_core_counters
-- @column sm_blocks    Blocks per SM; NULL where neither the tool nor grid and GPU determine it.
-- @column tensor_used  Ran on tensor cores; NULL where unknown.
-- @columns kernels
CREATE VIEW _occupied_kernels AS
SELECT
    CASE WHEN isfinite(k.blocks_per_sm) AND k.blocks_per_sm >= 0 THEN k.blocks_per_sm
        ELSE k.grid_x::DOUBLE * k.grid_y * k.grid_z / d.sm_count END AS sm_blocks,
    coalesce(c.tensor_cores, k.tensor_cores) AS tensor_used, k.*
FROM _bounded_kernels AS k
LEFT JOIN (SELECT profile_id, process_id, device, max(sm_count) AS sm_count FROM devices GROUP BY ALL) AS d
    ON d.profile_id = k.profile_id AND d.process_id = k.process_id AND d.device = k.device
LEFT JOIN _tensor_core_counters AS c ON c.run = k.run AND c.kernel_key = k.kernel_key;
