-- The rated clock of each kind of GPU of a run: the highest that it is sold to run at, as a tool states it.
-- @column run        Run.
-- @column gpu        Product name.
-- @column rated_hz   Rated clock of the SMs; NULL where tools state several.
-- @column stated_by  The tools that state it.
CREATE VIEW _true_roofline_clock AS
SELECT run, name AS gpu, CASE WHEN min(core_clock_hz) = max(core_clock_hz) THEN min(core_clock_hz) END AS rated_hz,
    string_agg(DISTINCT tool, ' and ' ORDER BY tool) AS stated_by
FROM devices
WHERE core_clock_hz > 0 AND name IS NOT NULL
GROUP BY run, name;
