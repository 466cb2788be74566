-- The start of the job that each profile is of: what its sidecar names (of a run whose sidecars all name the same, also where one
-- has none); else, where captures of one rank lie apart in time, which recording of its run it is.
-- @scope run
-- @requires profiles, recordings
-- @column profile_id  Profile.
-- @column execution   Start of the job; NULL where nothing distinguishes several.
CREATE VIEW _profile_executions AS
WITH named AS (
    SELECT run, tool, profile_id, CASE WHEN min(execution_id) OVER same = max(execution_id) OVER same THEN min(execution_id) OVER same
        ELSE execution_id END AS execution
    FROM profiles WINDOW same AS (PARTITION BY run, tool)
)
SELECT n.profile_id, coalesce(n.execution, CASE WHEN max(r.recording) OVER (PARTITION BY n.run, n.tool) > 0
    THEN 'recording ' || r.recording END) AS execution
FROM named AS n LEFT JOIN recordings AS r ON r.profile_id = n.profile_id;
