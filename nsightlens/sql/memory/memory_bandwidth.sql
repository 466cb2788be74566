-- Bandwidth of copies and sets, per process, GPU and direction: HTA's memory bandwidth summary. The bandwidth is all bytes
-- over the time in which at least one such operation ran (a union); point_* are HTA's figures: over the points where the summed
-- bandwidth changes, equally weighted, without those at 0. Operations without bytes count in `operations` only. ncu has no
-- timeline, so no rows.
-- @scope profile
-- @alias get_memory_bw_summary
-- @needs memory_ops
-- @requires _device_links, memory_bandwidth_series
-- @assumes An operation moves its bytes evenly over its duration, and no other traffic is counted: kernels move data as well.
-- @assumes The bytes are those that the tool recorded; unified-memory migrations count where nsys traced them.
-- @first rank, kind, direction, bandwidth_bytes_per_s, link_pct, bytes, active_ns
-- @column run                    Run (one workload in one configuration).
-- @column tool                   nsys or kineto. Never add them up: they saw the same work.
-- @column rank                   Rank of the process; NULL where unknown.
-- @column profile_id             Profile; key of `profiles`.
-- @column process_id             OS process.
-- @column device_id              The physical GPU.
-- @column kind                   memcpy, memset, migration or decompression (its rate is of compressed bytes).
-- @column direction              HtoD, DtoH, DtoD, ...; NULL for memset.
-- @column operations             Copies or sets.
-- @column bytes                  Bytes that they moved or set.
-- @column total_ns               Sum of their durations, as written.
-- @column active_ns              Time in which at least one with known bytes ran, by its finer duration (memory_ops).
-- @column bandwidth_bytes_per_s  Bytes over active_ns; NULL where none has bytes and a duration.
-- @column link_bytes_per_s       Of copies between host and device: what PCIe carries in each direction, over all 16 lanes and in the GPU's own
--     generation (gpu_peaks); NULL for others, and where the GPU or how its host reaches it is unknown.
-- @column link_pct               bandwidth_bytes_per_s in % of it, to one decimal.
-- @column peak_bytes_per_s       Highest sum of the bandwidths of what ran at once.
-- @column points                 Changes of that sum, those to 0 left out.
-- @column point_mean             Mean over them, in bytes per second.
-- @column point_stddev           Sample standard deviation over them.
-- @column point_min              Smallest of them.
-- @column point_p25              First quartile.
-- @column point_median           Median.
-- @column point_p75              Third quartile.
CREATE VIEW memory_bandwidth AS
WITH operations AS (
    SELECT run, tool, profile_id, process_id, device_id, kind, direction, count(*) AS operations, TRY_CAST(sum(bytes) AS BIGINT) AS bytes,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns, sum(bytes) FILTER (coalesce(bandwidth_duration_ns, duration_ns) > 0
            AND start_ns IS NOT NULL) AS moved
    FROM memory_ops
    WHERE tool <> 'ncu'
    GROUP BY ALL
), lasting AS (
    SELECT *, lead(at_ns) OVER (PARTITION BY profile_id, window_index, process_id, device_id, kind, direction
        ORDER BY at_ns) - at_ns AS lasts_ns
    FROM memory_bandwidth_series
), points AS (
    SELECT profile_id, process_id, device_id, kind, direction, sum(lasts_ns) AS active_ns,
        max(bandwidth_bytes_per_s) AS peak, count(*) AS points, avg(bandwidth_bytes_per_s ORDER BY bandwidth_bytes_per_s) AS mean,
        stddev_samp(bandwidth_bytes_per_s ORDER BY bandwidth_bytes_per_s) AS stddev, min(bandwidth_bytes_per_s) AS smallest,
        quantile_cont(bandwidth_bytes_per_s, [0.25, 0.5, 0.75]) AS quartiles
    FROM lasting
    WHERE running > 0
    GROUP BY ALL
)
SELECT
    o.run, o.tool, p.rank, o.profile_id, o.process_id, o.device_id, o.kind, o.direction, o.operations, o.bytes, o.total_ns,
    TRY_CAST(active_ns AS BIGINT) AS active_ns, 1e9 * moved / nullif(active_ns, 0) AS bandwidth_bytes_per_s,
    CASE WHEN o.direction IN ('HtoD', 'DtoH') THEN l.pcie_bytes_per_s END AS link_bytes_per_s,
    round(1e11 * moved / nullif(active_ns, 0) / CASE WHEN o.direction IN ('HtoD', 'DtoH') THEN l.pcie_bytes_per_s END, 1) AS link_pct,
    peak AS peak_bytes_per_s,
    points, mean AS point_mean, stddev AS point_stddev, smallest AS point_min,
    quartiles[1] AS point_p25, quartiles[2] AS point_median, quartiles[3] AS point_p75
FROM operations AS o
LEFT JOIN points AS s ON o.profile_id IS NOT DISTINCT FROM s.profile_id AND o.process_id IS NOT DISTINCT FROM s.process_id
    AND o.device_id IS NOT DISTINCT FROM s.device_id AND o.kind IS NOT DISTINCT FROM s.kind
    AND o.direction IS NOT DISTINCT FROM s.direction
LEFT JOIN _device_links AS l ON l.profile_id = o.profile_id AND l.device_id = o.device_id
LEFT JOIN processes AS p ON o.process_id = p.process_id AND o.profile_id = p.profile_id
ORDER BY o.run, o.tool, p.rank, o.profile_id, o.process_id, o.device_id, o.kind, o.direction;
