-- How many launches each tool has of each kind, per rank, and (rank NULL) over all ranks. A NULL column: whatever it is.
-- @scope run
-- @requires _matchable
-- @column run            Run.
-- @column tool           Tool.
-- @column rank           Rank; NULL: all.
-- @column grade          configuration, key or short_name: what the kind is.
-- @column kernel_key     Canonical name, for configuration and key.
-- @column configuration  Grid and block, for configuration.
-- @column short_name     Base name, for short_name.
-- @column candidates     Launches.
CREATE VIEW _match_candidates AS
WITH known AS (
    SELECT * FROM _matchable WHERE rank IS NOT NULL
    UNION ALL BY NAME
    SELECT * REPLACE (NULL AS rank) FROM _matchable
)
SELECT run, tool, rank, 'configuration' AS grade, kernel_key, configuration, NULL::VARCHAR AS short_name, count(*) AS candidates
FROM known GROUP BY ALL
UNION ALL
SELECT run, tool, rank, 'key', kernel_key, NULL, NULL, count(*) FROM known GROUP BY ALL
UNION ALL
SELECT run, tool, rank, 'short_name', NULL, NULL, short_name, count(*) FROM known GROUP BY ALL;
