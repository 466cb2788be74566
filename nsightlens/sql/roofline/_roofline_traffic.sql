-- Bytes that each memory level moved, per configuration, with the definition they were counted by.
-- @scope run
-- @requires _ncu_metric _roofline_clock _roofline_traffic_term
-- @column configuration_id       Configuration; key of ncu_by_config.
-- @column level                  dram, l2 or l1.
-- @column level_definition       Definition of the bytes.
-- @column traffic_source         Metrics behind traffic_bytes.
-- @column traffic_bytes          Bytes of one launch; NULL where only a peak is known, or a rate without a duration.
-- @column least_bytes_per_s      Least rate over the launches; NULL where counts give the bytes.
-- @column greatest_bytes_per_s   Greatest rate.
-- @column ncu_chart_bytes_per_s  Bytes per second as ncu printed them.
-- @column peak_bytes_per_s       Roof at the clock that ncu measured.
-- @column clock_hz               That clock.
CREATE VIEW _roofline_traffic AS
WITH variants AS (
    SELECT configuration_id, level, preference, definition, form, variant, sum(value * factor ORDER BY value * factor) AS amount,
        sum(minimum * factor ORDER BY minimum * factor) AS least, sum(maximum * factor ORDER BY maximum * factor) AS greatest,
        string_agg(metric, ' + ' ORDER BY metric) AS source
    FROM _ncu_metric JOIN _roofline_traffic_term USING (metric)
    GROUP BY configuration_id, level, preference, definition, form, variant, parts
    HAVING count(*) = parts
), definitions AS (
    SELECT configuration_id, level, preference, definition,
        arg_min(amount, variant) FILTER (form = 'count') AS bytes,
        arg_min(source, variant) FILTER (form = 'count') AS bytes_source,
        arg_min(amount, variant) FILTER (form = 'rate') AS rate,
        arg_min(source, variant) FILTER (form = 'rate') AS rate_source,
        arg_min(least, variant) FILTER (form = 'rate') AS least,
        arg_min(greatest, variant) FILTER (form = 'rate') AS greatest,
        arg_min(amount, variant) FILTER (form = 'peak') AS peak
    FROM variants GROUP BY configuration_id, level, preference, definition
), measured AS (
    SELECT *, coalesce(bytes, rate * seconds) AS traffic_bytes,
        coalesce(bytes_source, rate_source || CASE WHEN rate * seconds IS NULL THEN '' ELSE ' x duration' END) AS traffic_source,
        CASE level WHEN 'dram' THEN dram_hz WHEN 'l2' THEN l2_hz ELSE l1_hz END AS clock_hz,
        -- NVIDIA's L1 chart counts other writebacks in each generation.
        level = 'l1' AND definition = CASE WHEN compute_capability >= 9.0 THEN 'l1tex__lsu_writeback_mem_lgds x 128'
            WHEN compute_capability >= 7.5 THEN 'l1tex__lsu_writeback_mem_lg x 128'
            WHEN compute_capability < 7.5 THEN 'l1tex__lsu_writeback x 128' END AS is_chart_of_generation
    FROM definitions JOIN _roofline_clock USING (configuration_id)
)
SELECT configuration_id, level, definition AS level_definition, traffic_source, traffic_bytes,
    CASE WHEN bytes IS NULL THEN least END AS least_bytes_per_s, CASE WHEN bytes IS NULL THEN greatest END AS greatest_bytes_per_s,
    rate AS ncu_chart_bytes_per_s,
    peak * clock_hz AS peak_bytes_per_s, clock_hz
FROM measured
QUALIFY row_number() OVER (
    PARTITION BY configuration_id, level
    ORDER BY traffic_bytes IS NULL, coalesce(traffic_bytes, rate) IS NULL, coalesce(is_chart_of_generation, false) DESC, preference
) = 1;
