-- Each launch of one tool against another tool of the same run: the best grade at which the other tool knows it.
-- Grades: launch (the very launch, one to one), configuration (the same kernel key, grid and block), key, short_name,
-- none. Below launch the two rows are of one kind, and which is which stays open: candidates counts the rows of the other
-- tool that could be meant, and other_kernel_id is NULL. Processes meet by rank; a launch is compared with all processes
-- of that rank (with all of the run where a side has no rank). Per pair of tools both directions are listed.
-- Assumes that both tools saw the same program with the same inputs.
-- @requires matches
-- @column run              Run.
-- @column tool             Tool of the launch.
-- @column other_tool       The tool it is looked for in.
-- @column rank             Rank of the launch; NULL where unknown.
-- @column kernel_id        The launch; key of `kernels`.
-- @column other_kernel_id  The same launch in the other tool, at grade launch.
-- @column grade            launch, configuration, key, short_name or none.
-- @column candidates       Rows of the other tool of that grade (launch: 1).
-- @column evidence         Where the order was compared, at grade launch.
-- @column reason           Why it is no match of grade launch: name unknown, outside the window, hidden by graph mode, ….
-- @column kernel_key       Canonical name.
-- @column duration_ns      Duration of the launch in `tool`.
CREATE VIEW tool_match AS
WITH known AS (
    SELECT
        run, tool, rank, kernel_id, kernel_key, short_name, duration_ns,
        struct_pack(grid_x, grid_y, grid_z, block_x, block_y, block_z) AS configuration, step,
        graph_node_id IS NOT NULL OR launch_id IN (
            SELECT c.launch_id FROM api_calls AS c WHERE c.name ILIKE '%graphlaunch%' AND c.launch_id IS NOT NULL) AS in_graph
    FROM kernels
), others AS (
    SELECT DISTINCT a.run, a.tool, b.tool AS other_tool
    FROM (SELECT DISTINCT run, tool FROM kernels) AS a
    JOIN (SELECT DISTINCT run, tool FROM kernels) AS b ON a.run = b.run AND a.tool <> b.tool
), ranked AS (
    SELECT run, tool, bool_and(rank IS NOT NULL) AS all_ranked FROM known GROUP BY run, tool
), asked AS (
    -- where either side has a launch of unknown rank, ranks play no part
    SELECT o.run, o.tool, o.other_tool, (SELECT bool_and(all_ranked) FROM ranked AS r
        WHERE r.run = o.run AND r.tool IN (o.tool, o.other_tool)) AS by_rank
    FROM others AS o
), pairs AS (
    -- a launch that stands in several reports of the other tool has several partners
    SELECT tool, other_tool, kernel_id, min(other_kernel_id) AS other_kernel_id, count(*) AS partners, min(evidence) AS evidence
    FROM (
        SELECT tool, other_tool, kernel_id, other_kernel_id, evidence FROM matches
        UNION ALL
        SELECT other_tool, tool, other_kernel_id, kernel_id, evidence FROM matches
    )
    GROUP BY tool, other_tool, kernel_id
), steps AS (
    SELECT DISTINCT run, tool, rank, step FROM known WHERE step IS NOT NULL
), hidden AS (
    SELECT DISTINCT g.run, g.tool, p.rank
    FROM graph_executions AS g
    LEFT JOIN processes AS p ON g.process_id = p.process_id AND g.profile_id = p.profile_id
), configurations AS (
    SELECT run, tool, rank, kernel_key, configuration, count(*) AS candidates FROM known WHERE rank IS NOT NULL GROUP BY ALL
    UNION ALL
    SELECT run, tool, NULL, kernel_key, configuration, count(*) FROM known GROUP BY ALL
), keys AS (
    SELECT run, tool, rank, kernel_key, TRY_CAST(sum(candidates) AS BIGINT) AS candidates FROM configurations GROUP BY ALL
), short_names AS (
    SELECT run, tool, rank, short_name, count(*) AS candidates FROM known WHERE rank IS NOT NULL GROUP BY ALL
    UNION ALL
    SELECT run, tool, NULL, short_name, count(*) FROM known GROUP BY ALL
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
        WHEN c.candidates IS NOT NULL THEN 'order not certain'
        WHEN n.candidates IS NOT NULL THEN 'another configuration'
        WHEN s.candidates IS NOT NULL THEN 'another variant'
        ELSE 'not recorded'
    END AS reason,
    k.kernel_key, k.duration_ns
FROM known AS k
JOIN asked AS a ON k.run = a.run AND k.tool = a.tool
LEFT JOIN pairs AS p ON p.kernel_id = k.kernel_id AND p.tool = k.tool AND p.other_tool = a.other_tool
LEFT JOIN configurations AS c
    ON c.run = k.run AND c.tool = a.other_tool AND c.kernel_key = k.kernel_key AND c.configuration = k.configuration
    AND c.rank IS NOT DISTINCT FROM CASE WHEN a.by_rank THEN k.rank END
LEFT JOIN keys AS n
    ON n.run = k.run AND n.tool = a.other_tool AND n.kernel_key = k.kernel_key
    AND n.rank IS NOT DISTINCT FROM CASE WHEN a.by_rank THEN k.rank END
LEFT JOIN short_names AS s
    ON s.run = k.run AND s.tool = a.other_tool AND s.short_name = k.short_name
    AND s.rank IS NOT DISTINCT FROM CASE WHEN a.by_rank THEN k.rank END
LEFT JOIN steps AS t ON t.run = k.run AND t.tool = a.other_tool AND t.step = k.step AND t.rank IS NOT DISTINCT FROM k.rank
LEFT JOIN (SELECT run, tool, rank, true AS has_steps FROM steps GROUP BY ALL) AS w
    ON w.run = k.run AND w.tool = a.other_tool AND w.rank IS NOT DISTINCT FROM k.rank
LEFT JOIN hidden AS h ON h.run = k.run AND h.tool = a.other_tool AND h.rank IS NOT DISTINCT FROM k.rank
ORDER BY k.run, k.tool, a.other_tool, k.kernel_id;
