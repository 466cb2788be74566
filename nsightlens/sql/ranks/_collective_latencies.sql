-- Unions of the collective kernels of a process, by operation.
-- @scope profile
-- @requires _collective_kernels
-- @column profile_id  Profile.
-- @column process_id  OS process.
-- @column operation   allreduce, ...
-- @column latency_ns  Union of the kernels.
CREATE VIEW _collective_latencies AS
WITH reached AS (
    SELECT profile_id, process_id, operation, start_ns, start_ns + duration_ns AS end_ns, NULL AS until_ns
    FROM _collective_kernels WHERE duration_ns >= 0 AND is_alone
    UNION ALL
    SELECT profile_id, process_id, operation, start_ns, start_ns + duration_ns, max(start_ns + duration_ns) OVER (
        PARTITION BY profile_id, process_id, window_index, operation ORDER BY start_ns, start_ns + duration_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    FROM _collective_kernels WHERE duration_ns >= 0 AND NOT is_alone
)
SELECT profile_id, process_id, operation,
    TRY_CAST(coalesce(sum(greatest(end_ns - greatest(start_ns, until_ns), 0)), 0) AS BIGINT) AS latency_ns
FROM reached
GROUP BY profile_id, process_id, operation;
