-- Time in collectives per step, and the part of it in which data moved: unions over the collective kernels that began in
-- the step. The rest of the time was spent waiting for other processes. Of the steps of processes without any matched
-- collective nothing is known: they have no row.
-- @scope run
-- @requires _collectives, _steps
-- @column profile_id    Profile.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process.
-- @column start_ns      Start of the step's window.
-- @column step_id       Range of the step.
-- @column latency_ns    Union of the collective kernels.
-- @column transfer_ns   Union of their transfers; NULL where a kernel's counterparts are not known.
CREATE VIEW _collective_waits AS
WITH steps AS MATERIALIZED (
    SELECT profile_id, process_id, window_index, start_ns, end_ns, step_id,
        dense_rank() OVER (ORDER BY profile_id, process_id, window_index) AS track,
        row_number() OVER (ORDER BY profile_id, process_id, window_index, start_ns, end_ns, step_id) AS place
    FROM _steps
), calls AS MATERIALIZED (
    SELECT t.track, c.start_ns, c.end_ns, c.transfer_ns, c.is_alone
    FROM _collectives AS c JOIN (SELECT DISTINCT track, profile_id, process_id, window_index FROM steps) AS t
        ON t.profile_id = c.profile_id AND t.process_id IS NOT DISTINCT FROM c.process_id
        AND t.window_index IS NOT DISTINCT FROM c.window_index
), placed AS (
    SELECT s.place, c.start_ns, c.end_ns, c.transfer_ns, c.is_alone
    FROM (FROM calls SEMI JOIN (SELECT DISTINCT track FROM calls WHERE transfer_ns IS NOT NULL) USING (track)) AS c
    ASOF JOIN steps AS s ON c.track = s.track AND c.start_ns >= s.start_ns
    WHERE c.start_ns < s.end_ns
), reached AS (
    SELECT place, start_ns, end_ns, transfer_ns, NULL AS until_ns, NULL AS transferred_ns FROM placed WHERE is_alone
    UNION ALL
    SELECT place, start_ns, end_ns, transfer_ns, max(end_ns) OVER (PARTITION BY place ORDER BY start_ns, end_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
        max(end_ns) OVER (PARTITION BY place ORDER BY end_ns - transfer_ns, end_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    FROM placed WHERE NOT is_alone
), summed AS (
    SELECT place, TRY_CAST(coalesce(sum(greatest(end_ns - greatest(start_ns, until_ns), 0)), 0) AS BIGINT) AS latency_ns,
        CASE WHEN bool_and(transfer_ns IS NOT NULL) THEN TRY_CAST(coalesce(
            sum(greatest(end_ns - greatest(end_ns - transfer_ns, transferred_ns), 0)), 0) AS BIGINT) END AS transfer_ns
    FROM reached GROUP BY place
)
SELECT profile_id, process_id, window_index, start_ns, step_id, latency_ns, transfer_ns
FROM summed JOIN steps USING (place);
