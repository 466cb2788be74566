-- Launches of each configuration in a tool of which it is open which one they are in another tool: those without a partner there.
-- @scope rows
-- @requires _matchable, _match_tools, _match_partners
-- @column run            Run.
-- @column tool           Tool of the launches.
-- @column other_tool     The other one.
-- @column rank           Rank; NULL where processes are not paired by rank.
-- @column kernel_key     Canonical name.
-- @column configuration  Grid and block.
-- @column open           Launches without a partner.
CREATE VIEW _match_open AS
SELECT
    k.run, k.tool, a.other_tool, CASE WHEN a.by_rank THEN k.rank END AS rank, k.kernel_key, k.configuration,
    count(*) FILTER (p.kernel_id IS NULL) AS open
FROM _matchable AS k
JOIN _match_tools AS a ON k.run = a.run AND k.tool = a.tool
LEFT JOIN _match_partners AS p ON p.kernel_id = k.kernel_id AND p.tool = k.tool AND p.other_tool = a.other_tool
GROUP BY ALL;
