-- The tool whose timeline counts, one row per run: nsys where it recorded kernels, else Kineto. ncu replays and
-- serialises what it measures, so that it has no timeline at all.
-- @scope run
-- @column run   Run.
-- @column tool  nsys or kineto.
CREATE VIEW _timeline_tools AS
SELECT run, max(tool) AS tool  -- 'nsys' sorts after 'kineto'
FROM (SELECT DISTINCT run, tool FROM kernels)
WHERE tool IN ('nsys', 'kineto')
GROUP BY run
ORDER BY run;
