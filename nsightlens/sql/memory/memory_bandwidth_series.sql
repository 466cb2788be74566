-- Bandwidth of copies and sets over time, per process, GPU and direction: a row where it changes, and it holds until the
-- next row. Each operation moves its bytes evenly over its duration; operations at the same time add up. Operations without
-- bytes or without duration have no bandwidth and are left out. ncu has no timeline, so no rows.
-- @scope rows
-- @alias get_memory_bw_time_series
-- @needs memory_ops
-- @requires memory_ops
-- @assumes An operation moves its bytes evenly over its duration (bandwidth_duration_ns of memory_ops, where it has one).
-- @assumes Only copies, sets, migrations and decompressions are known: what kernels read and write is in no series.
-- @column run                    Run (one workload in one configuration).
-- @column tool                   nsys or kineto. Never add them up: they saw the same work.
-- @column rank                   Rank of the process; NULL where unknown.
-- @column profile_id             Profile; times are comparable only within one.
-- @column window_index           Capture window of the process, from 0.
-- @column process_id             OS process.
-- @column device_id              The physical GPU.
-- @column kind                   memcpy, memset, migration or decompression (its rate is of compressed bytes).
-- @column direction              HtoD, DtoH, DtoD, ...; NULL for memset.
-- @column at_ns                  Time of the change, relative to the profile's origin.
-- @column running                Operations that run from at_ns on.
-- @column bandwidth_bytes_per_s  Their bandwidth.
CREATE VIEW memory_bandwidth_series AS
WITH moves AS (
    SELECT * REPLACE (coalesce(bandwidth_duration_ns, duration_ns) AS duration_ns)
    FROM memory_ops
    WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND bytes IS NOT NULL
), edges AS (
    SELECT run, tool, profile_id, window_index, process_id, device_id, kind, direction, start_ns AS at_ns,
        1 AS change, bytes::HUGEINT * 1000000000000000000 // duration_ns AS rate  -- 1e-9 bytes/s: sums end at 0
    FROM moves WHERE duration_ns > 0
    UNION ALL
    SELECT run, tool, profile_id, window_index, process_id, device_id, kind, direction, start_ns + duration_ns,
        -1, -(bytes::HUGEINT * 1000000000000000000 // duration_ns)
    FROM moves WHERE duration_ns > 0
), instants AS (
    SELECT run, tool, profile_id, window_index, process_id, device_id, kind, direction, at_ns, sum(change) AS change,
        sum(rate) AS rate
    FROM edges
    GROUP BY ALL
), sums AS (
    SELECT
        *,
        TRY_CAST(sum(change) OVER upto AS BIGINT) AS running,
        sum(rate) OVER upto AS rates
    FROM instants
    WINDOW upto AS (PARTITION BY profile_id, window_index, process_id, device_id, kind, direction ORDER BY at_ns
        ROWS UNBOUNDED PRECEDING)
)
SELECT
    s.run, s.tool, p.rank, s.profile_id, s.window_index, s.process_id, s.device_id, s.kind, s.direction, s.at_ns, s.running,
    s.rates::DOUBLE / 1e9 AS bandwidth_bytes_per_s
FROM sums AS s
LEFT JOIN processes AS p ON s.process_id = p.process_id AND s.profile_id = p.profile_id
ORDER BY s.run, s.tool, p.rank, s.profile_id, s.window_index, s.process_id, s.device_id, s.kind, s.direction, s.at_ns;
