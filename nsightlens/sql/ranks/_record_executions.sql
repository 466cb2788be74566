-- The start of the job that the records of a profile are of: of a run whose sidecars all name the same, also where one has none.
-- @scope run
-- @requires profiles
-- @column profile_id  Profile.
-- @column execution   Start of the job; NULL where no sidecar names one.
CREATE VIEW _record_executions AS
SELECT profile_id, CASE WHEN min(execution_id) OVER same = max(execution_id) OVER same THEN min(execution_id) OVER same
    ELSE execution_id END AS execution
FROM profiles WINDOW same AS (PARTITION BY run, tool);
