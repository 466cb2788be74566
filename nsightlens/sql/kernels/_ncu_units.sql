-- What ncu's counters say of each launch configuration: the busiest unit of the SMs and of the memory system, and what warps wait for.
-- @scope run
-- @requires ncu_by_config
-- @column configuration_id  Configuration; key of ncu_by_config.
-- @column sm_unit           Busiest unit of the SMs of those collected.
-- @column sm_unit_pct       What it used, in % of its peak.
-- @column memory_unit       Busiest unit of the memory system.
-- @column memory_unit_pct   What it used, in % of its peak.
-- @column tensor_pct        Busiest tensor pipe, in % of its peak.
-- @column stall             For what warps waited most, by cycles where they were collected, else by samples.
-- @column stall_pct         Its share of all cycles of warps.
CREATE VIEW _ncu_units AS
WITH configuration AS MATERIALIZED (
    SELECT * FROM ncu_by_config
), counted AS (
    SELECT configuration_id, unnest(map_keys(metrics)) AS metric, unnest(map_values(metrics)) AS value FROM configuration
), part AS (
    SELECT configuration_id, value, metric LIKE 'sm\_\_%' ESCAPE '\' AS is_sm, regexp_extract(metric, '^(.*)[.]avg[.]', 1) AS counter,
        regexp_extract(metric, '^sm__(?:inst_executed_)?pipe_([a-z]+[0-9]*)', 1) AS pipe
    FROM counted
    WHERE regexp_matches(metric, '^(sm|l1tex|lts|dram|gpu)__[a-z0-9_]+[.]avg[.]pct_of_peak_sustained_elapsed$')
        AND NOT starts_with(metric, 'l1tex__throughput')  -- its parts are of L1/TEX or of LSU
), named AS (
    SELECT configuration_id, value, is_sm, CASE
        WHEN counter IN ('gpu__dram_throughput', 'dram__throughput', 'dram__cycles_active') THEN 'DRAM'
        WHEN starts_with(counter, 'lts__') THEN 'L2'
        WHEN pipe = 'lsu' OR counter = 'l1tex__lsuin_requests' THEN 'LSU'
        WHEN starts_with(counter, 'l1tex__') THEN 'L1/TEX'
        WHEN pipe IN ('tensor', 'tc') THEN 'tensor'
        WHEN pipe IN ('fma', 'fmaheavy', 'fmalite') THEN 'FMA'
        WHEN pipe IN ('alu', 'aluheavy', 'alulite') THEN 'ALU'
        WHEN pipe NOT IN ('', 'shared') THEN upper(pipe)
        WHEN counter IN ('sm__issue_active', 'sm__inst_issued', 'sm__inst_executed') THEN 'instruction issue' END AS unit
    FROM part
), busiest AS (
    SELECT configuration_id, arg_max(unit, value) FILTER (is_sm) AS sm_unit, max(value) FILTER (is_sm) AS sm_unit_pct,
        arg_max(unit, value) FILTER (NOT is_sm) AS memory_unit, max(value) FILTER (NOT is_sm) AS memory_unit_pct,
        max(value) FILTER (unit = 'tensor') AS tensor_pct
    FROM named WHERE unit IS NOT NULL GROUP BY configuration_id
), stalled AS (
    SELECT configuration_id, value, starts_with(metric, 'smsp__pcsamp') AS is_sampled, regexp_extract(metric,
        '^smsp__(?:pcsamp|average)_warps_issue_stalled_([a-z_]+?)(?:_per_issue_active)?(?:[.]ratio)?$', 1) AS reason
    FROM counted WHERE contains(metric, 'warps_issue_stalled') AND NOT contains(metric, 'not_issued')
), waiting AS (
    SELECT configuration_id, arg_max(reason, value) FILTER (reason NOT IN ('selected', 'not_selected')) AS stall,
        100 * max(value) FILTER (reason NOT IN ('selected', 'not_selected')) / nullif(sum(value), 0) AS stall_pct, is_sampled
    FROM stalled WHERE reason <> '' GROUP BY configuration_id, is_sampled
)
SELECT configuration_id, sm_unit, sm_unit_pct, memory_unit, memory_unit_pct, tensor_pct, stall, stall_pct
FROM busiest FULL JOIN (SELECT * FROM waiting QUALIFY row_number() OVER (PARTITION BY configuration_id ORDER BY is_sampled) = 1)
    USING (configuration_id);
