-- The tensor-core counters of each configuration, one row per path, without those that a broader counter already holds.
-- @scope run
-- @requires _ncu_metric _roofline_clock
-- @column configuration_id  Configuration; key of ncu_by_config.
-- @column src               Input types, as in ncu's metric name.
-- @column dst               Output type, where the name has it.
-- @column op                Instruction kind, where the name has it.
-- @column sparsity          on or off, where the name has it.
-- @column work_flop         Operations of one launch; NULL where only a rate is known, without a duration.
-- @column basis             launch, sm cycle or second: what was counted; NULL where only a rate is known, without a duration.
-- @column rate              Operations per second, where a rate was printed.
-- @column per_cycle         Operations per SM cycle, as ncu printed it.
-- @column peak_per_cycle    Roof in operations per SM cycle, of dense operations where no sparse ones were counted.
-- @column sm_hz             SM clock.
CREATE VIEW _roofline_tensor_metric AS
WITH clock AS MATERIALIZED (
    SELECT * FROM _roofline_clock
), parsed AS (
    SELECT configuration_id, value, 1 AS factor, regexp_extract(metric,
        '^sm__ops_path_tensor_(?:op_([a-z0-9]+)_)?src_(.+?)(?:_dst_([a-z0-9]+))?(?:_sparsity_(on|off))?[.]sum(?:[.]([a-z_]+))?$',
        ['op', 'src', 'dst', 'sparsity', 'form']) AS part
    FROM _ncu_metric WHERE starts_with(metric, 'sm__ops_path_tensor_')
    UNION ALL
    -- Volta counts instructions; all of them are HMMA.884, of 512 operations.
    SELECT configuration_id, value, 512, {'op': '', 'src': 'fp16', 'dst': '', 'sparsity': '', 'form': regexp_extract(metric,
        '^sm(?:sp)?__inst_executed_pipe_tensor[.]sum(?:[.]([a-z_]+))?$', 1)}
    FROM _ncu_metric JOIN clock USING (configuration_id)
    WHERE compute_capability = 7.0 AND regexp_matches(metric, '^sm(sp)?__inst_executed_pipe_tensor[.]sum($|[.])')
), paths AS (
    SELECT configuration_id, part.src AS src, nullif(part.dst, '') AS dst, nullif(part.op, '') AS op,
        nullif(part.sparsity, '') AS sparsity,
        max(value * factor) FILTER (part.form = '') AS counted,
        max(value * factor) FILTER (part.form = 'per_cycle_elapsed') AS per_cycle,
        max(value * factor) FILTER (part.form = 'per_second') AS per_second,
        max(value * factor) FILTER (part.form = 'peak_sustained') AS peak_per_cycle
    FROM parsed WHERE part.src <> '' GROUP BY ALL
), known AS MATERIALIZED (
    SELECT configuration_id, src, dst, op, sparsity, coalesce(counted, per_cycle * sm_cycles, per_second * seconds) AS work_flop,
        CASE WHEN counted IS NOT NULL THEN 'launch' WHEN per_cycle * sm_cycles IS NOT NULL THEN 'sm cycle'
            WHEN per_second * seconds IS NOT NULL THEN 'second' END AS basis,
        coalesce(per_cycle * sm_hz, per_second) AS rate,
        per_cycle,
        -- On Hopper the peak of a counter that sparsity does not divide is that of sparse operations, twice the dense one.
        peak_per_cycle / CASE WHEN compute_capability = 9.0 AND sparsity IS NULL AND src NOT IN ('fp64', 'int1') THEN 2 ELSE 1 END
            AS peak_per_cycle,
        sm_hz
    FROM paths JOIN clock USING (configuration_id)
)
SELECT * REPLACE (
    -- Instruction kinds and sparsity have peaks of their own: of the most detailed counters that counted, the highest.
    coalesce((
        SELECT max({'details': (part.dst IS NOT NULL)::INT + (part.op IS NOT NULL)::INT + (part.sparsity IS NOT NULL)::INT,
            'peak': part.peak_per_cycle}).peak
        FROM known AS part
        WHERE part.configuration_id = child.configuration_id AND part.src = child.src AND coalesce(part.work_flop, part.rate) > 0
            AND part.peak_per_cycle IS NOT NULL AND (child.dst IS NULL OR part.dst = child.dst)
            AND (child.op IS NULL OR part.op = child.op) AND (child.sparsity IS NULL OR part.sparsity = child.sparsity)
    ), peak_per_cycle) AS peak_per_cycle)
FROM known AS child
WHERE coalesce(work_flop, rate) IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM known AS parent
    WHERE parent.configuration_id = child.configuration_id AND parent.src = child.src AND coalesce(parent.work_flop, parent.rate) IS NOT NULL
        AND (parent.dst, parent.op, parent.sparsity) IS DISTINCT FROM (child.dst, child.op, child.sparsity)
        AND (parent.dst IS NULL OR parent.dst = child.dst) AND (parent.op IS NULL OR parent.op = child.op)
        AND (parent.sparsity IS NULL OR parent.sparsity = child.sparsity)
);
