-- Time in collectives per step, and the part of it in which data moved: unions over the collective kernels that began in
-- the step. The rest of the time was spent waiting for other processes.
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
        concat_ws(chr(31), profile_id, process_id, window_index) AS track
    FROM _steps
), placed AS (
    SELECT s.profile_id, s.process_id, s.window_index, s.start_ns AS step_start_ns, s.step_id,
        c.start_ns, c.end_ns, c.transfer_ns
    FROM (SELECT *, concat_ws(chr(31), profile_id, process_id, window_index) AS track FROM _collectives) AS c
    ASOF JOIN steps AS s ON c.track = s.track AND c.start_ns >= s.start_ns
    WHERE c.start_ns < s.end_ns
), spans AS (
    SELECT *, true AS whole FROM placed
    UNION ALL
    SELECT profile_id, process_id, window_index, step_start_ns, step_id, end_ns - transfer_ns, end_ns, transfer_ns, false
    FROM placed WHERE transfer_ns IS NOT NULL
), reached AS (
    SELECT *, max(end_ns) OVER (PARTITION BY profile_id, process_id, window_index, step_start_ns, step_id, whole
        ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until_ns
    FROM spans
)
SELECT profile_id, process_id, window_index, step_start_ns AS start_ns, step_id,
    TRY_CAST(coalesce(sum(greatest(end_ns - greatest(start_ns, until_ns), 0)) FILTER (whole), 0) AS BIGINT) AS latency_ns,
    CASE WHEN bool_and(transfer_ns IS NOT NULL)
        THEN TRY_CAST(coalesce(sum(greatest(end_ns - greatest(start_ns, until_ns), 0)) FILTER (NOT whole), 0) AS BIGINT) END AS transfer_ns
FROM reached
GROUP BY profile_id, process_id, window_index, step_start_ns, step_id;
