-- Unions of the collective kernels of a process, by operation.
-- @scope profile
-- @requires _collective_kernels
-- @column profile_id  Profile.
-- @column process_id  OS process.
-- @column operation   allreduce, ...
-- @column latency_ns  Union of the kernels.
CREATE VIEW _collective_latencies AS
SELECT profile_id, process_id, operation,
    TRY_CAST(coalesce(sum(greatest(end_ns - greatest(start_ns, until_ns), 0)), 0) AS BIGINT) AS latency_ns
FROM (
    SELECT profile_id, process_id, operation, start_ns, end_ns, max(end_ns) OVER (
        PARTITION BY profile_id, process_id, window_index, operation ORDER BY start_ns, end_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until_ns
    FROM (SELECT *, start_ns + duration_ns AS end_ns FROM _collective_kernels WHERE duration_ns >= 0)
)
GROUP BY profile_id, process_id, operation;
