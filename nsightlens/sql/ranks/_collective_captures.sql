-- The processes with collectives, by window, process group and whether the calls have numbers of their own: which of them are of
-- one execution and window, and whether counterparts on other processes can be known at all. Calls without numbers can match only
-- where all processes, or all with calls of that process group, have as many.
-- @scope run
-- @requires _collective_counts, _device_links, _profile_executions
-- @column run            Run.
-- @column profile_id     Profile.
-- @column process_id     OS process.
-- @column window_index   Capture window of the process.
-- @column numbered       Whether their groups and numbers are known.
-- @column group_name     Process group; NULL where unknown.
-- @column may_match      Whether other processes may have counterparts.
-- @column may_clash      Whether two counterparts may be of one process, or of one rank.
-- @column all_processes  Processes with such calls; NULL where the calls have numbers.
-- @column communicator   Number of the process group in its execution and window, by whether calls have numbers.
-- @column process        Number of the process.
-- @column link_bytes_per_s  Peak of the slowest of their links, per direction, where all are on one host and on GPUs of their own; NULL where
--     one is unknown.
-- @column link_ranks     How many ranks it takes to use all of the links.
CREATE VIEW _collective_captures AS
SELECT run, profile_id, process_id, window_index, numbered, group_name,
    numbered OR (min(calls) OVER same = max(calls) OVER same AND count(*) OVER same > 1) AS may_match,
    bool_or(numbered AND numbers < calls) OVER same OR count(DISTINCT rank) OVER same < count(rank) OVER same AS may_clash,
    CASE WHEN NOT numbered THEN count(*) OVER same END AS all_processes,
    dense_rank() OVER (ORDER BY run, tool, execution, window_index, numbered, group_name) AS communicator,
    dense_rank() OVER (ORDER BY profile_id, process_id) AS process,
    CASE WHEN count(link_bytes_per_s) OVER same = count(*) OVER same AND count(DISTINCT device_id) OVER same = count(*) OVER same
        AND (count(DISTINCT profile_id) OVER same = 1 OR count(host) OVER same = count(*) OVER same AND count(DISTINCT host) OVER same = 1)
        THEN min(link_bytes_per_s) OVER same END AS link_bytes_per_s,
    max(link_ranks) OVER same AS link_ranks
FROM _collective_counts LEFT JOIN _profile_executions USING (profile_id) LEFT JOIN _device_links USING (profile_id, device_id)
WINDOW same AS (PARTITION BY run, tool, execution, window_index, numbered, group_name);
