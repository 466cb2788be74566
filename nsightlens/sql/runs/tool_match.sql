-- Each launch of one tool against another tool of the same run: the best grade at which the other tool knows it.
-- Grades: launch (the very launch, one to one), configuration (the same kernel key, grid and block), key, short_name,
-- none. Below launch the rows are alike, and which is which is not known: candidates counts the rows of the other
-- tool that could be meant, and other_kernel_id is NULL. Processes are paired by rank; a launch is compared with all processes
-- of that rank (with all of the run where a side has no rank). Per pair of tools both directions are listed.
-- Reasons: name unknown; not profiled by ncu (it measured none alike, or the ones that it measured are others); outside the
-- window
-- (the other tool recorded other steps); hidden by graph mode (it recorded graphs whole); not recorded (it has none alike, or all
-- that it has are others: dropped, or never launched there); order not certain (some that it has could be this one); another
-- configuration; another variant (of the same base name).
-- @scope rows
-- @needs two_tools
-- @requires _matchable, _match_tools, _match_partners, _match_candidates, _match_open
-- @assumes Both tools saw the same program with the same inputs.
-- @assumes Processes of equal rank correspond, and launch in the same order except for what one side lacks.
-- @assumes Both tools number steps alike, or what the steps launch shows that one counts from 0 and the other from 1.
-- @column run              Run.
-- @column tool             Tool of the launch.
-- @column other_tool       The tool it is looked for in.
-- @column rank             Rank of the launch; NULL where unknown.
-- @column kernel_id        The launch; key of `kernels`.
-- @column other_kernel_id  The same launch in the other tool, at grade launch.
-- @column grade            launch, configuration, key, short_name or none.
-- @column candidates       Rows of the other tool of that grade (launch: 1).
-- @column evidence         What makes it certain, at grade launch (see matches).
-- @column reason           Why it is not matched at grade launch.
-- @column kernel_key       Canonical name.
-- @column duration_ns      Duration of the launch in `tool`.
-- @names kernel kernel_key
CREATE VIEW tool_match AS
WITH steps AS (
    SELECT DISTINCT run, tool, rank, step FROM _matchable WHERE step IS NOT NULL
), hidden AS (
    SELECT DISTINCT g.run, g.tool, p.rank
    FROM graph_executions AS g
    LEFT JOIN processes AS p ON g.process_id = p.process_id AND g.profile_id = p.profile_id
)
SELECT
    k.run, k.tool, a.other_tool, k.rank, k.kernel_id, CASE WHEN p.partners = 1 THEN p.other_kernel_id END AS other_kernel_id,
    CASE
        WHEN p.partners IS NOT NULL THEN 'launch'
        WHEN c.candidates IS NOT NULL THEN 'configuration'
        WHEN n.candidates IS NOT NULL THEN 'key'
        WHEN s.candidates IS NOT NULL THEN 'short_name'
        ELSE 'none'
    END AS grade,
    coalesce(p.partners, c.candidates, n.candidates, s.candidates, 0) AS candidates,
    p.evidence,
    CASE
        WHEN p.partners IS NOT NULL THEN NULL
        WHEN k.kernel_key IS NULL THEN 'name unknown'
        WHEN a.other_tool = 'ncu' AND c.candidates IS NULL AND n.candidates IS NULL AND s.candidates IS NULL
            THEN 'not profiled by ncu'
        WHEN w.has_steps AND k.step IS NOT NULL AND t.step IS NULL THEN 'outside the window'
        WHEN k.in_graph AND h.tool IS NOT NULL THEN 'hidden by graph mode'
        WHEN o.open = 0 AND a.other_tool = 'ncu' THEN 'not profiled by ncu'
        WHEN o.open = 0 THEN 'not recorded'
        WHEN c.candidates IS NOT NULL THEN 'order not certain'
        WHEN n.candidates IS NOT NULL THEN 'another configuration'
        WHEN s.candidates IS NOT NULL THEN 'another variant'
        ELSE 'not recorded'
    END AS reason,
    k.kernel_key, k.duration_ns
FROM _matchable AS k
JOIN _match_tools AS a ON k.run = a.run AND k.tool = a.tool
LEFT JOIN _match_partners AS p ON p.kernel_id = k.kernel_id AND p.tool = k.tool AND p.other_tool = a.other_tool
LEFT JOIN _match_candidates AS c
    ON c.grade = 'configuration' AND c.run = k.run AND c.tool = a.other_tool AND c.kernel_key = k.kernel_key AND c.configuration = k.configuration
    AND c.rank IS NOT DISTINCT FROM CASE WHEN a.by_rank THEN k.rank END
LEFT JOIN _match_open AS o
    ON o.run = k.run AND o.tool = a.other_tool AND o.other_tool = k.tool AND o.kernel_key = k.kernel_key
    AND o.configuration = k.configuration AND o.rank IS NOT DISTINCT FROM CASE WHEN a.by_rank THEN k.rank END
LEFT JOIN _match_candidates AS n
    ON n.grade = 'key' AND n.run = k.run AND n.tool = a.other_tool AND n.kernel_key = k.kernel_key
    AND n.rank IS NOT DISTINCT FROM CASE WHEN a.by_rank THEN k.rank END
LEFT JOIN _match_candidates AS s
    ON s.grade = 'short_name' AND s.run = k.run AND s.tool = a.other_tool AND s.short_name = k.short_name
    AND s.rank IS NOT DISTINCT FROM CASE WHEN a.by_rank THEN k.rank END
LEFT JOIN steps AS t ON t.run = k.run AND t.tool = a.other_tool AND t.step = k.step AND t.rank IS NOT DISTINCT FROM k.rank
LEFT JOIN (SELECT run, tool, rank, true AS has_steps FROM steps GROUP BY ALL) AS w
    ON w.run = k.run AND w.tool = a.other_tool AND w.rank IS NOT DISTINCT FROM k.rank
LEFT JOIN hidden AS h ON h.run = k.run AND h.tool = a.other_tool AND h.rank IS NOT DISTINCT FROM k.rank
ORDER BY k.run, k.tool, a.other_tool, k.kernel_id;
