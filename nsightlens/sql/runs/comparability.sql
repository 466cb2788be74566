-- Whether two runs can be compared: what was the same and what differed in how they were made and captured, differences
-- first. A row is one property under one tool; a tool that captured only one of the runs is a difference, too.
-- @scope run
-- @assumes Equal texts mean the same thing: versions, names of GPUs and hosts are compared as the captures print them.
-- @assumes Equal rows do not make runs comparable: a capture alone rarely records the driver, library versions and batch size.
-- @assumes Those come from sidecars (rankNNNN.run.json, and rankNNNN.steps.json for the workload's options), where there are any.
-- @param  base        Baseline run; NULL: the first of the store, by name.
-- @param  other       Run that is compared with it; NULL: the last.
-- @first property, tool, base_value, other_value, same
-- @column property    What is compared.
-- @column tool        Tool whose captures have it.
-- @column base_value  Its value in base; several are joined by commas; NULL where it is not known.
-- @column other_value Its value in other.
-- @column same        Whether both are known and equal; NULL where neither is known.
CREATE MACRO comparability(base := NULL, other := NULL) AS TABLE
WITH named AS (
    SELECT coalesce(base, first_run) AS base_run, coalesce(other, last_run) AS other_run
    FROM (SELECT min(run) AS first_run, max(run) AS last_run FROM profiles)
), told AS (
    SELECT run, tool, 'tool version' AS property, tool_version AS value FROM profiles
    UNION ALL
    SELECT run, tool, 'format', format FROM profiles
    UNION ALL
    SELECT run, tool, 'simulated', simulated::VARCHAR FROM profiles
    UNION ALL
    SELECT run, tool, 'GPU', name FROM devices
    UNION ALL
    SELECT run, tool, 'compute capability', compute_capability FROM devices
    UNION ALL
    SELECT run, tool, 'SMs', sm_count::VARCHAR FROM devices
    UNION ALL
    SELECT run, tool, 'GPU core clock (MHz)', round(core_clock_hz / 1e6)::BIGINT::VARCHAR FROM devices
    UNION ALL
    SELECT run, tool, 'GPU memory clock (MHz)', round(memory_clock_hz / 1e6)::BIGINT::VARCHAR FROM devices
    UNION ALL
    SELECT run, tool, 'GPU memory (bytes)', memory_bytes::VARCHAR FROM devices
    UNION ALL
    SELECT run, tool, setting.key, setting.value FROM (SELECT run, tool, unnest(map_entries(settings)) AS setting FROM profiles)
    UNION ALL
    SELECT run, tool, 'host', host FROM processes
    UNION ALL
    SELECT run, tool, 'world size', world_size::VARCHAR FROM processes
    UNION ALL
    SELECT run, tool, 'ranks captured', nullif(count(DISTINCT rank), 0)::VARCHAR FROM processes GROUP BY run, tool
    UNION ALL
    SELECT run, tool, 'steps captured', count(DISTINCT step)::VARCHAR FROM ranges WHERE kind = 'step' GROUP BY run, tool
    UNION ALL
    SELECT run, tool, 'ncu clock control', clock_control FROM kernels WHERE tool = 'ncu'
), joined AS (
    SELECT run, tool, property, string_agg(DISTINCT value, ', ' ORDER BY value) AS value
    FROM told SEMI JOIN named ON told.run IN (named.base_run, named.other_run)
    GROUP BY run, tool, property
), both_runs AS (
    SELECT
        property, tool, max(value) FILTER (run = base_run) AS base_value, max(value) FILTER (run = other_run) AS other_value
    FROM joined CROSS JOIN named
    GROUP BY property, tool
)
SELECT
    property, tool, base_value, other_value,
    CASE WHEN base_value IS NOT NULL OR other_value IS NOT NULL THEN base_value IS NOT DISTINCT FROM other_value END AS same
FROM both_runs
ORDER BY same NULLS LAST, property, tool;
