-- Unions of the transfers of a process, by operation: of the ends of its collective kernels in which data moved. Of those kernels
-- alone that overlap with others (is_alone).
-- @scope run
-- @requires _collectives
-- @column profile_id   Profile.
-- @column process_id   OS process.
-- @column operation    allreduce, ...
-- @column transfer_ns  Union of the transfers that are known.
CREATE VIEW _collective_unions AS
WITH reached AS (
    SELECT profile_id, process_id, operation, end_ns - transfer_ns AS start_ns, end_ns, max(end_ns) OVER (
        PARTITION BY profile_id, process_id, window_index, operation ORDER BY end_ns - transfer_ns, end_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until_ns
    FROM _collectives WHERE transfer_ns IS NOT NULL AND NOT is_alone
)
SELECT profile_id, process_id, operation,
    TRY_CAST(coalesce(sum(greatest(end_ns - greatest(start_ns, until_ns), 0)), 0) AS BIGINT) AS transfer_ns
FROM reached
GROUP BY profile_id, process_id, operation;
