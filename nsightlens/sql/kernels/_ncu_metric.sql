-- One row per configuration and ncu metric: the median over the launches of every pass and report.
-- @scope run
-- @requires _ncu_launch
-- @column configuration_id  Configuration; key of ncu_by_config.
-- @column metric            ncu's raw metric name.
-- @column value             Median over the launches (for summaries: ncu's average), base unit.
-- @column minimum           Least value, base unit.
-- @column maximum           Greatest value, base unit.
-- @column measured          Rows that hold the metric.
CREATE VIEW _ncu_metric AS
SELECT configuration_id, metric, median(value) AS value, min(least_value) AS minimum, max(greatest_value) AS maximum,
    count(*) AS measured
FROM (
    SELECT configuration_id, unnest(map_keys(metrics)) AS metric, unnest(map_values(metrics)) AS value,
        unnest(map_values(minimum)) AS least_value, unnest(map_values(maximum)) AS greatest_value
    FROM _ncu_launch
)
WHERE isfinite(value)  -- n/a is NULL; ncu also prints nan and inf
GROUP BY configuration_id, metric;
