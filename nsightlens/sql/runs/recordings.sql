-- The recordings of each run: which profiles belong to one execution under one tool. Runs are compared by their recordings;
-- the steps of one recording do not show how executions vary. Profiles whose sidecars name an execution belong to it. The
-- others are distinguished by time: a profile that begins more than a second after all earlier ones ended, and repeats one of
-- their ranks (an unknown rank counts as one), belongs to another execution. Unknown times do not distinguish profiles.
-- @scope run
-- @needs timeline
-- @requires profiles, processes
-- @assumes Captures of one rank at different times come from different executions, unless a profile holds both as its windows.
-- @assumes Profiles without a sidecar belong to the only execution that sidecars of their run and tool name, if they name one.
-- @column run           Run (one workload in one configuration).
-- @column tool          nsys or kineto.
-- @column recording     Number of the recording in its run and tool, from 0, in order of time.
-- @column profile_id    Profile; key of `profiles`.
-- @column execution_id  Execution that its sidecar names; NULL where time distinguishes it.
-- @column first_ns      First GPU work of the profile, in ns since the epoch; NULL where unknown.
-- @column seen_pid      Pid of a process here and in an earlier recording of the run: they may be one process, and no replicates.
CREATE VIEW recordings AS
WITH known AS (
    SELECT run, tool, profile_id, CASE WHEN min(execution_id) OVER captures = max(execution_id) OVER captures
            THEN min(execution_id) OVER captures ELSE execution_id END AS execution_id,
        origin_epoch_ns + gpu_first_ns AS first_ns, origin_epoch_ns + gpu_last_ns AS last_ns
    FROM profiles WHERE tool IN ('nsys', 'kineto') WINDOW captures AS (PARTITION BY run, tool)
), apart AS (
    SELECT *, coalesce(execution_id IS NULL AND first_ns - max(last_ns) OVER (PARTITION BY run, tool, execution_id
        ORDER BY first_ns NULLS FIRST, profile_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) > 1000000000, false) AS is_later
    FROM known
), timed AS (
    SELECT *, sum(is_later::BIGINT) OVER (PARTITION BY run, tool, execution_id
        ORDER BY first_ns NULLS FIRST, profile_id ROWS UNBOUNDED PRECEDING) AS time
    FROM apart
), ranked AS (
    SELECT t.run, t.tool, t.execution_id, t.time,
        dense_rank() OVER (PARTITION BY t.run, t.tool, t.execution_id, p.rank ORDER BY t.time) AS nth
    FROM timed AS t LEFT JOIN processes AS p ON p.profile_id = t.profile_id
), placed AS (
    SELECT run, tool, execution_id, time, max(nth) AS nth FROM ranked GROUP BY run, tool, execution_id, time
), gathered AS (
    SELECT t.*, p.nth, min(t.first_ns) OVER (PARTITION BY t.run, t.tool, t.execution_id, p.nth) AS begun_ns
    FROM timed AS t
    JOIN placed AS p ON p.run = t.run AND p.tool = t.tool AND p.execution_id IS NOT DISTINCT FROM t.execution_id AND p.time = t.time
), numbered AS (
    SELECT run, tool, dense_rank() OVER (PARTITION BY run, tool ORDER BY begun_ns NULLS FIRST, execution_id, nth) - 1 AS recording,
        profile_id, execution_id, first_ns
    FROM gathered
), owned AS (
    SELECT n.run, n.tool, n.recording, n.profile_id, p.host, p.pid
    FROM numbered AS n JOIN processes AS p ON p.profile_id = n.profile_id WHERE p.pid IS NOT NULL
), seen AS (
    SELECT a.profile_id, min(a.pid) AS seen_pid
    FROM owned AS a
    JOIN owned AS b ON b.run = a.run AND b.tool = a.tool AND b.recording < a.recording AND b.pid = a.pid
        AND coalesce(a.host = b.host, true)
    GROUP BY a.profile_id
)
SELECT n.run, n.tool, n.recording, n.profile_id, n.execution_id, n.first_ns, s.seen_pid
FROM numbered AS n LEFT JOIN seen AS s ON s.profile_id = n.profile_id
ORDER BY n.run, n.tool, n.recording, n.profile_id;
