-- The rated clock of each kind of GPU of a run: the highest that it is sold to run at, as a tool states it; else the highest
-- that its driver allowed, from the sidecar of a capture.
-- @scope run
-- @column run       Run.
-- @column gpu       Product name.
-- @column rated_hz  That clock of the SMs; NULL where two are stated.
-- @column stated    What it is and who states it.
CREATE VIEW _true_roofline_clock AS
WITH told AS (
    SELECT run, name AS gpu, core_clock_hz AS hz, tool AS teller, 1 AS place FROM devices
    UNION ALL
    SELECT DISTINCT d.run, d.name, 1e6 * TRY_CAST(p.settings['gpu max_sm_clock_mhz'] AS DOUBLE), 'the sidecar of ' || p.tool, 2
    FROM profiles AS p
    JOIN devices AS d ON p.profile_id = d.profile_id
)
SELECT run, gpu, CASE WHEN min(hz) = max(hz) THEN min(hz) END AS rated_hz,
    CASE place WHEN 1 THEN 'rated clock, as stated by ' ELSE 'highest clock, as stated by ' END
        || string_agg(DISTINCT teller, ' and ' ORDER BY teller) AS stated
FROM told
WHERE hz > 0 AND gpu IS NOT NULL
GROUP BY run, gpu, place
QUALIFY row_number() OVER (PARTITION BY run, gpu ORDER BY place) = 1;
