-- The processes with collectives, by window and whether these have numbers of their own: which of them are of one execution and
-- window, and whether counterparts on other processes can be known at all. Calls without numbers can match only where all
-- processes, or all with calls of that process group, have as many. Captures that name no execution belong to the only one that their run and tool have.
-- @scope run
-- @requires _collective_counts, profiles
-- @column run            Run.
-- @column profile_id     Profile.
-- @column process_id     OS process.
-- @column window_index   Capture window of the process.
-- @column numbered       Whether their groups and numbers are known.
-- @column named_group    Process group of calls without numbers; NULL where unknown.
-- @column may_match      Whether other processes may have counterparts.
-- @column all_processes  Processes of the execution and window, of the group where it is known; NULL where the calls have numbers.
-- @column capture        Number of the execution and window, by whether calls have numbers, and by the group of those without.
-- @column process        Number of the process.
CREATE VIEW _collective_captures AS
SELECT run, profile_id, process_id, window_index, numbered, named_group,
    numbered OR (min(calls) OVER captures = max(calls) OVER captures AND count(*) OVER captures > 1) AS may_match,
    CASE WHEN NOT numbered THEN count(*) OVER captures END AS all_processes,
    dense_rank() OVER (ORDER BY run, tool, execution, window_index, numbered, named_group) AS capture,
    dense_rank() OVER (ORDER BY profile_id, process_id) AS process
FROM _collective_counts LEFT JOIN (
    SELECT profile_id, CASE WHEN min(execution_id) OVER executions = max(execution_id) OVER executions
        THEN min(execution_id) OVER executions ELSE execution_id END AS execution
    FROM profiles WINDOW executions AS (PARTITION BY run, tool)
) USING (profile_id)
WINDOW captures AS (PARTITION BY run, tool, execution, window_index, numbered, named_group);
