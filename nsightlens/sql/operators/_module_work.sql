-- The kernels of each module by the call of it that they belong to: that around their launch, else that around the forward
-- operator from which they stem. The names are those of `kernels`; the call is NULL where no range has it.
-- @scope profile
-- @requires _bounded_kernels, ranges
-- @column profile_id   Profile.
-- @column process_id   OS process.
-- @column module_id    The call; key of `ranges`.
-- @column name         The module.
-- @column self_ns      Sum of the kernels' durations; NULL where none is known.
-- @column backward_ns  The part of it that is backward; NULL where there is none.
CREATE VIEW _module_work AS
WITH RECURSIVE work AS MATERIALIZED (
    SELECT profile_id, process_id, range_id, module AS name, sum(duration_ns) AS self_ns,
        sum(duration_ns) FILTER (phase = 'backward') AS backward_ns
    FROM _bounded_kernels WHERE tool <> 'ncu' AND module IS NOT NULL GROUP BY profile_id, process_id, range_id, module
), search AS (
    -- from each launch up to the call of a module; where there is none, once more from the innermost forward operator
    SELECT DISTINCT range_id, range_id AS up_id, NULL::BIGINT AS forward_id, false AS linked FROM work
    UNION ALL
    SELECT s.range_id,
        CASE WHEN r.parent_id IS NULL AND NOT s.linked THEN coalesce(s.forward_id, r.forward_id) ELSE r.parent_id END,
        coalesce(s.forward_id, r.forward_id), s.linked OR r.parent_id IS NULL
    FROM search AS s JOIN ranges AS r ON r.range_id = s.up_id WHERE r.kind <> 'module'
), calls AS (
    SELECT s.range_id, r.range_id AS module_id
    FROM search AS s JOIN ranges AS r ON r.range_id = s.up_id WHERE r.kind = 'module' AND r.duration_ns >= 0
)
SELECT w.profile_id, w.process_id, c.module_id, w.name, TRY_CAST(sum(w.self_ns) AS BIGINT) AS self_ns,
    TRY_CAST(sum(w.backward_ns) AS BIGINT) AS backward_ns
FROM work AS w LEFT JOIN calls AS c USING (range_id)
GROUP BY w.profile_id, w.process_id, c.module_id, w.name;
