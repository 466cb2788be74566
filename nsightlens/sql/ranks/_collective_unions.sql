-- Unions of the collective kernels of a process and of their transfers, by operation.
-- @scope run
-- @requires _collectives
-- @column profile_id   Profile.
-- @column process_id   OS process.
-- @column operation    allreduce, ...
-- @column latency_ns   Union of the kernels.
-- @column transfer_ns  Union of the ends of the kernels in which data moved.
CREATE VIEW _collective_unions AS
WITH spans AS (
    SELECT profile_id, process_id, window_index, operation, true AS whole, start_ns, end_ns FROM _collectives
    UNION ALL
    SELECT profile_id, process_id, window_index, operation, false, end_ns - transfer_ns, end_ns
    FROM _collectives WHERE transfer_ns IS NOT NULL
), reached AS (
    SELECT *, max(end_ns) OVER (PARTITION BY profile_id, process_id, window_index, operation, whole
        ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until_ns
    FROM spans
)
SELECT profile_id, process_id, operation,
    TRY_CAST(coalesce(sum(greatest(end_ns - greatest(start_ns, until_ns), 0)) FILTER (whole), 0) AS BIGINT) AS latency_ns,
    TRY_CAST(coalesce(sum(greatest(end_ns - greatest(start_ns, until_ns), 0)) FILTER (NOT whole), 0) AS BIGINT) AS transfer_ns
FROM reached
GROUP BY profile_id, process_id, operation;
