-- What ncu measured of each launch of the timeline: the launch itself where it is matched, else its configuration (kernel key,
-- grid and block; same rank first, then any rank). Where ncu measured a configuration under several settings, the one
-- with the most counters stands for it, then free clocks before locked ones, then the one with the most launches.
-- @scope rows
-- @requires matches timeline_kernels _ncu_by_config _ncu_metric
-- @column kernel_id         The launch; key of `kernels`.
-- @column ncu_kernel_id     The same launch under ncu (of several, that with the most counters); NULL below grade launch.
-- @column configuration_id  The configuration below grade launch; key of ncu_by_config.
-- @column grade             launch, configuration or configuration of any rank; NULL where ncu did not measure it.
CREATE VIEW _ncu_known AS
WITH own AS (
    SELECT run, rank, kernel_id, kernel_key, struct_pack(grid_x, grid_y, grid_z, block_x, block_y, block_z) AS configuration
    FROM timeline_kernels
    WHERE run IN (SELECT run FROM _ncu_by_config)
), matched AS (
    SELECT m.kernel_id, first(o.kernel_id ORDER BY coalesce(cardinality(o.metrics), 0) DESC, o.kernel_id) AS ncu_kernel_id
    FROM matches AS m
    JOIN kernels AS o ON m.other_kernel_id = o.kernel_id AND m.other_tool = o.tool
    WHERE m.other_tool = 'ncu'
    GROUP BY m.kernel_id
), counted AS (
    SELECT configuration_id, count(*) AS counters FROM _ncu_metric GROUP BY configuration_id
), preferred AS (
    SELECT c.run, c.rank, c.kernel_key, struct_pack(grid_x, grid_y, grid_z, block_x, block_y, block_z) AS configuration,
        c.configuration_id,
        row_number() OVER (ORDER BY c.summarised, n.counters DESC NULLS LAST, c.clock_control = 'none' DESC NULLS LAST,
            c.launches DESC, c.rank, c.configuration_id) AS place
    FROM _ncu_by_config AS c
    LEFT JOIN counted AS n ON c.configuration_id = n.configuration_id
), alike AS (
    SELECT run, rank, kernel_key, configuration, grouping(rank) = 1 AS any_rank, min_by(configuration_id, place) AS configuration_id
    FROM preferred
    GROUP BY GROUPING SETS ((run, rank, kernel_key, configuration), (run, kernel_key, configuration))
)
SELECT
    o.kernel_id, m.ncu_kernel_id,
    CASE WHEN m.ncu_kernel_id IS NULL THEN coalesce(s.configuration_id, a.configuration_id) END AS configuration_id,
    CASE
        WHEN m.ncu_kernel_id IS NOT NULL THEN 'launch'
        WHEN s.configuration_id IS NOT NULL THEN 'configuration'
        WHEN a.configuration_id IS NOT NULL THEN 'configuration of any rank'
    END AS grade
FROM own AS o
LEFT JOIN matched AS m ON o.kernel_id = m.kernel_id
LEFT JOIN alike AS s ON s.any_rank = false AND s.run = o.run AND s.rank IS NOT DISTINCT FROM o.rank
    AND s.kernel_key = o.kernel_key AND s.configuration = o.configuration
LEFT JOIN alike AS a ON a.any_rank AND a.run = o.run AND a.kernel_key = o.kernel_key AND a.configuration = o.configuration;
