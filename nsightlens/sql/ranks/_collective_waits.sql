-- Time in collectives per step, and the part of it in which data moved: unions over the collective kernels that began in
-- the step. The rest of the time was spent waiting for other processes. Of the steps of processes without any matched
-- collective nothing is known: they have no row.
-- @scope run
-- @requires _collective_kernels, _collective_matches, _steps
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
), matches AS MATERIALIZED (
    FROM _collective_matches
), matched AS MATERIALIZED (
    SELECT DISTINCT s.track, s.profile_id, s.process_id, s.window_index
    FROM (SELECT DISTINCT profile_id, process_id, window_index FROM matches) AS m
    JOIN (SELECT DISTINCT track, profile_id, process_id, window_index FROM steps) AS s
        ON s.profile_id = m.profile_id AND s.process_id IS NOT DISTINCT FROM m.process_id
        AND s.window_index IS NOT DISTINCT FROM m.window_index
), calls AS (
    SELECT t.track, k.start_ns, k.start_ns + k.duration_ns AS end_ns, m.transfer_ns
    FROM _collective_kernels AS k JOIN matched AS t ON t.profile_id = k.profile_id AND t.process_id IS NOT DISTINCT FROM k.process_id
        AND t.window_index IS NOT DISTINCT FROM k.window_index
    LEFT JOIN matches AS m ON m.run = k.run AND m.kernel_id = k.kernel_id
    WHERE k.duration_ns >= 0
), placed AS (
    SELECT s.place, c.start_ns, c.end_ns, c.transfer_ns
    FROM calls AS c
    ASOF JOIN steps AS s ON c.track = s.track AND c.start_ns >= s.start_ns
    WHERE c.start_ns < s.end_ns
), spans AS (
    SELECT *, true AS whole FROM placed
    UNION ALL
    SELECT place, end_ns - transfer_ns, end_ns, transfer_ns, false FROM placed WHERE transfer_ns IS NOT NULL
), reached AS (
    SELECT *, max(end_ns) OVER (PARTITION BY place, whole ORDER BY start_ns, end_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until_ns
    FROM spans
), summed AS (
    SELECT place,
        TRY_CAST(coalesce(sum(greatest(end_ns - greatest(start_ns, until_ns), 0)) FILTER (whole), 0) AS BIGINT) AS latency_ns,
        CASE WHEN bool_and(transfer_ns IS NOT NULL) THEN TRY_CAST(coalesce(
            sum(greatest(end_ns - greatest(start_ns, until_ns), 0)) FILTER (NOT whole), 0) AS BIGINT) END AS transfer_ns
    FROM reached GROUP BY place
)
SELECT profile_id, process_id, window_index, start_ns, step_id, latency_ns, transfer_ns
FROM summed JOIN steps USING (place);
