-- GPU time of each kernel family, operator and step on ranks with a known number, whatever the windows and processes. Copies
-- that a collective runs as are of the family collective.
-- @scope profile
-- @requires _bounded_kernels, memory_ops
-- @column run               Run.
-- @column tool              nsys or kineto.
-- @column profile_id        Profile.
-- @column rank              Rank of the process.
-- @column item_kind         family, op or step.
-- @column item              The family, operator or step number.
-- @column total_ns          Sum of their durations.
-- @column communication_ns  That of communication.
CREATE VIEW _rank_work AS
SELECT any_value(run) AS run, any_value(tool) AS tool, profile_id, rank,
    CASE WHEN grouping(family) = 0 THEN 'family' WHEN grouping(op) = 0 THEN 'op' ELSE 'step' END AS item_kind,
    CASE WHEN grouping(family) = 0 THEN family WHEN grouping(op) = 0 THEN op ELSE step::VARCHAR END AS item,
    TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
    TRY_CAST(coalesce(sum(duration_ns) FILTER (family = 'collective'), 0) AS BIGINT) AS communication_ns
FROM (
    SELECT run, tool, profile_id, rank, family, op, step, duration_ns FROM _bounded_kernels
    UNION ALL
    SELECT run, tool, profile_id, rank, 'collective', op, step, duration_ns FROM memory_ops WHERE collective IS NOT NULL
)
WHERE tool <> 'ncu' AND rank IS NOT NULL AND duration_ns IS NOT NULL
GROUP BY GROUPING SETS ((profile_id, rank, family), (profile_id, rank, op), (profile_id, rank, step))
HAVING grouping(family) = 0 OR grouping(op) = 0 AND op IS NOT NULL OR grouping(step) = 0 AND step IS NOT NULL;
