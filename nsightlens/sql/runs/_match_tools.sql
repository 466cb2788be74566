-- The pairs of tools of each run, both ways, and whether processes are paired by rank: not where a launch has none.
-- @scope run
-- @requires _matchable
-- @column run         Run.
-- @column tool        Tool.
-- @column other_tool  The other one.
-- @column by_rank     Whether only processes of the same rank meet.
CREATE VIEW _match_tools AS
WITH tools AS (
    SELECT run, tool, bool_and(rank IS NOT NULL) AS ranked FROM _matchable GROUP BY run, tool
)
SELECT a.run, a.tool, b.tool AS other_tool, a.ranked AND b.ranked AS by_rank
FROM tools AS a
JOIN tools AS b ON a.run = b.run AND a.tool <> b.tool;
