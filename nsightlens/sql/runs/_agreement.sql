-- The three tools side by side per kernel key, grid and block: one struct per tool, and what the classes of tool_agreement need.
-- @scope run
-- @requires _tool_configurations, graph_executions, processes, devices, _datasheet
-- @column run            Run.
-- @column rank           Rank; NULL where not every tool knows its ranks.
-- @column kernel_key     Canonical name.
-- @column configuration  Struct of grid and block.
-- @column short_name     Base name.
-- @column family         Kernel family.
-- @column n              nsys: struct of the columns of _tool_configurations.
-- @column t              Kineto, as above.
-- @column c              ncu, as above.
-- @column sampled        Struct of the clock sampled during the launches of nsys (else Kineto), as in _tool_configurations.
-- @column clock_ratio    Its median, else the boost clock that a tool states (else the datasheet's), over the clock during ncu's
--                        launches; NULL where no clock was sampled and the run's GPUs have several.
-- @column clock_source   Whose clock that ratio is of: sampled, rated or datasheet, with the tool or the kind of clock.
-- @column naming_class   Tools that know the short name, grid and block under another key, which no tool with this key knows.
-- @column n_hides        Whether nsys recorded graphs of this rank whole.
-- @column t_hides        Whether Kineto did.
CREATE VIEW _agreement AS
WITH named AS (
    SELECT DISTINCT run, tool, kernel_key, short_name, configuration FROM _tool_configurations
), naming AS (
    SELECT run, kernel_key, string_agg(tool, ', ' ORDER BY tool) AS naming_class
    FROM (
        SELECT DISTINCT a.run, a.kernel_key, b.tool
        FROM named AS a
        JOIN named AS b ON a.run = b.run AND a.tool <> b.tool AND a.short_name = b.short_name AND a.configuration = b.configuration
        ANTI JOIN named AS c ON c.run = a.run AND c.tool = b.tool AND c.kernel_key = a.kernel_key
        ANTI JOIN named AS d ON d.run = b.run AND d.tool = a.tool AND d.kernel_key = b.kernel_key
    )
    GROUP BY run, kernel_key
), boost AS (
    SELECT run, coalesce(CASE WHEN min(core_clock_hz) = max(core_clock_hz) THEN min(core_clock_hz) END,
        CASE WHEN min(boost_clock_hz) = max(boost_clock_hz) AND count(core_clock_hz) = 0 THEN min(boost_clock_hz) END) AS clock_hz,
        CASE WHEN count(core_clock_hz) = 0 THEN 'datasheet' ELSE 'rated clock, as stated by '
            || string_agg(DISTINCT tool, ' and ' ORDER BY tool) FILTER (core_clock_hz IS NOT NULL) END AS stated
    FROM devices AS d
    LEFT JOIN gpu_peaks AS p ON p.name = (SELECT datasheet FROM _datasheet(product := d.name))
    GROUP BY run
), recorded AS (
    SELECT g.run, g.tool, p.rank
    FROM graph_executions AS g
    JOIN processes AS p ON g.process_id = p.process_id AND g.profile_id = p.profile_id
), hidden AS (
    SELECT run, tool, rank FROM recorded
    UNION
    SELECT run, tool, NULL FROM recorded
), compared AS (
    SELECT run, rank, kernel_key, configuration, min(short_name) AS short_name, min(family) AS family,
        any_value(s) FILTER (tool = 'nsys') AS n, any_value(s) FILTER (tool = 'kineto') AS t, any_value(s) FILTER (tool = 'ncu') AS c
    FROM _tool_configurations AS s
    GROUP BY run, rank, kernel_key, configuration
), clocked AS (
    SELECT *, CASE WHEN n IS NULL THEN t.sampled ELSE n.sampled END AS sampled, CASE WHEN n IS NULL THEN 'kineto' ELSE 'nsys' END AS sampler
    FROM compared
)
SELECT a.* EXCLUDE (sampler),
    CASE WHEN a.sampled IS NULL THEN b.clock_hz / nullif(a.c.clock_hz, 0)
        -- Like with like: on some GPUs the clocks of SM and GPC differ.
        ELSE a.sampled.median_hz / nullif(CASE a.sampled.clock_domain WHEN 'SM' THEN coalesce(a.c.sm_clock_hz, a.c.clock_hz) ELSE a.c.clock_hz END, 0)
        END AS clock_ratio,
    CASE WHEN clock_ratio IS NULL THEN NULL WHEN a.sampled IS NULL THEN b.stated
        ELSE 'clock sampled by ' || a.sampler || ' (' || a.sampled.clock_domain || ')' END AS clock_source,
    m.naming_class, h.run IS NOT NULL AS n_hides, i.run IS NOT NULL AS t_hides
FROM clocked AS a
LEFT JOIN boost AS b ON a.run = b.run
LEFT JOIN naming AS m ON a.run = m.run AND a.kernel_key = m.kernel_key
LEFT JOIN hidden AS h ON a.run = h.run AND h.tool = 'nsys' AND a.rank IS NOT DISTINCT FROM h.rank
LEFT JOIN hidden AS i ON a.run = i.run AND i.tool = 'kineto' AND a.rank IS NOT DISTINCT FROM i.rank;
