-- The partners of each launch at grade launch, both ways. Several: it stands in several reports of the other tool.
-- @scope rows
-- @requires matches
-- @column tool             Tool.
-- @column other_tool       The other one.
-- @column kernel_id        The launch.
-- @column other_kernel_id  One of its partners.
-- @column partners         How many there are.
-- @column evidence         What makes it certain.
CREATE VIEW _match_partners AS
SELECT tool, other_tool, kernel_id, min(other_kernel_id) AS other_kernel_id, count(*) AS partners, min(evidence) AS evidence
FROM (
    SELECT tool, other_tool, kernel_id, other_kernel_id, evidence FROM matches
    UNION ALL
    SELECT other_tool, tool, other_kernel_id, kernel_id, evidence FROM matches
)
GROUP BY tool, other_tool, kernel_id;
