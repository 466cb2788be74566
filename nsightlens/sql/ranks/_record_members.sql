-- The communicators that each process has records of: how many, and the collectives in them that it never issued while others
-- wait there. Of a rank that is behind what others completed, the records are older than theirs: nothing is missing.
-- @scope run
-- @requires _profile_executions, collective_records
-- @column run                Run.
-- @column tool               nccl_inspector or flight_recorder.
-- @column execution          Start of the job, from a sidecar; NULL without one.
-- @column communicator       Communicator.
-- @column process_id         OS process.
-- @column records            Its records there.
-- @column communicator_name  What the program calls the communicator; NULL where the records do not say.
-- @column unissued           Collectives that others wait in and that it never issued; NULL where nothing says so.
CREATE VIEW _record_members AS
WITH members AS (
    SELECT r.run, r.tool, e.execution, r.communicator, r.process_id, count(*) AS records, max(r.sequence) AS reached,
        any_value(r.communicator_name) AS communicator_name, max(r.sequence) FILTER (r.state = 'completed') AS completed,
        max(r.sequence) FILTER (r.state <> 'completed') AS opened
    FROM collective_records AS r LEFT JOIN _profile_executions AS e USING (profile_id) GROUP BY ALL
), known AS (
    SELECT *, max(completed) OVER same AS last_completed, max(opened) OVER same AS last_opened
    FROM members WINDOW same AS (PARTITION BY run, tool, execution, communicator)
)
SELECT run, tool, execution, communicator, process_id, records, communicator_name,
    CASE WHEN last_opened > reached AND reached >= coalesce(last_completed, reached) THEN last_opened - reached END AS unissued
FROM known;
