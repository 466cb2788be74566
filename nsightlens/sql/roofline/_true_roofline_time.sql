-- Which undisturbed launches time each configuration that ncu measured: the best grade of its run's tool. Of one
-- grade the rank that ncu measured comes before all ranks together.
-- @scope run
-- @requires _true_roofline_times _timeline_tools _ncu_by_config
-- @param  timed_by    nsys or kineto; NULL: the best undisturbed tool of each run.
-- @param  over_ranks  'same': the rank that ncu measured; 'each': every rank, with another's counters where it has none.
-- @column configuration_id  Configuration of ncu.
-- @column counters_rank     Its rank.
-- @column rank              Rank of the launches; NULL: all ranks together.
-- @column tool              nsys or kineto.
-- @column grade             configuration, key or short_name; NULL where the tool has no such kernel.
-- @column place             1 for configuration, 2 for key, 3 for short_name.
-- @column gpu               Product name of their GPU.
-- @column took              Struct as in _true_roofline_times, of all of these launches.
-- @column took_matched      The same of the very launches that ncu counted; NULL where they are not known.
-- @column all_matched       Whether all launches that ncu counted are known.
-- @column records           Whether the tool recorded kernels of the run.
CREATE MACRO _true_roofline_time(timed_by := NULL, over_ranks := 'same') AS TABLE
WITH measured AS (
    SELECT
        c.configuration_id, c.run, c.rank, c.launches, c.summarised, coalesce(timed_by, t.tool) AS tool,
        g.grade, g.place, CASE WHEN g.place < 3 THEN c.kernel_key END AS kernel_key,
        CASE WHEN g.place = 3 THEN c.short_name END AS short_name,
        CASE WHEN g.place = 1 THEN struct_pack(grid_x, grid_y, grid_z, block_x, block_y, block_z) END AS configuration,
        list(c.rank) OVER alike AS ranks_measured,
        dense_rank() OVER (alike ORDER BY c.rank, c.configuration_id) AS place_among
    FROM _ncu_by_config AS c
    LEFT JOIN _timeline_tools AS t ON c.run = t.run
    CROSS JOIN (VALUES ('configuration', 1), ('key', 2), ('short_name', 3)) AS g(grade, place)
    WINDOW alike AS (PARTITION BY g.place, c.run, c.kernel_key, c.grid_x, c.grid_y, c.grid_z, c.block_x, c.block_y, c.block_z,
        c.clock_control, c.cache_control, c.gpu, c.compute_capability, c.summarised)
), candidates AS (
    SELECT m.configuration_id, m.rank AS counters_rank, m.launches AS ncu_launches, m.summarised, m.run, m.tool, m.place,
        t.rank, t.is_pooled, t.grade, t.gpu, t.took
    FROM measured AS m
    LEFT JOIN _true_roofline_times AS t
        ON m.run = t.run AND m.tool = t.tool AND m.grade = t.grade AND m.kernel_key IS NOT DISTINCT FROM t.kernel_key
        AND m.short_name IS NOT DISTINCT FROM t.short_name AND m.configuration IS NOT DISTINCT FROM t.configuration
        AND (t.is_pooled OR t.rank = m.rank
            OR (over_ranks = 'each' AND m.place_among = 1 AND t.rank IS NOT NULL
                AND NOT list_contains(m.ranks_measured, t.rank)))
), chosen AS (
    FROM candidates
    QUALIFY CASE over_ranks
        WHEN 'each' THEN rank() OVER (PARTITION BY configuration_id ORDER BY grade IS NULL, place, is_pooled) = 1
            AND (grade IS NOT NULL OR place = 1)
        ELSE row_number() OVER (PARTITION BY configuration_id ORDER BY grade IS NULL, place, is_pooled) = 1 END
)
SELECT
    c.configuration_id, c.counters_rank, c.rank, c.tool, c.grade, c.place, c.gpu, c.took,
    m.took AS took_matched, coalesce(m.counted >= c.ncu_launches AND NOT c.summarised, false) AS all_matched,
    (c.run, c.tool) IN (SELECT DISTINCT (run, tool) FROM kernels) AS records
FROM chosen AS c
LEFT JOIN _true_roofline_times AS m
    ON m.grade = 'launch' AND m.configuration_id = c.configuration_id AND m.run = c.run AND m.tool = c.tool
    AND (c.is_pooled OR c.rank = c.counters_rank);
