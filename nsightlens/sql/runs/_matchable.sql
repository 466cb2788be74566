-- What decides whether a launch can be one of another tool: a row per launch.
-- @scope rows
-- @column run            Run.
-- @column tool           Tool.
-- @column rank           Rank; NULL where unknown.
-- @column kernel_id      The launch.
-- @column kernel_key     Canonical name.
-- @column short_name     Base name.
-- @column duration_ns    Duration.
-- @column configuration  Grid and block.
-- @column step           Training step.
-- @column in_graph       Whether a CUDA graph launched it.
CREATE VIEW _matchable AS
SELECT
    run, tool, rank, kernel_id, kernel_key, short_name, duration_ns,
    struct_pack(grid_x, grid_y, grid_z, block_x, block_y, block_z) AS configuration, step,
    graph_node_id IS NOT NULL OR launch_id IN (
        SELECT c.launch_id FROM api_calls AS c WHERE c.name ILIKE '%graphlaunch%' AND c.launch_id IS NOT NULL) AS in_graph
FROM kernels;
