-- How many collective kernels each process has in a window, by process group, with and without a number of their own.
-- @scope profile
-- @requires _collective_kernels
-- @column run           Run.
-- @column tool          nsys or kineto.
-- @column profile_id    Profile.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process.
-- @column numbered      Whether their groups and numbers are known.
-- @column group_name    Process group; NULL where unknown.
-- @column rank          Rank of the process; NULL where unknown.
-- @column host          Its host; NULL where unknown.
-- @column device_id     The GPU that they run on; NULL where unknown, or where several do.
-- @column calls         Kernels.
-- @column numbers       Numbers that they have of their own: fewer where one is there twice.
CREATE VIEW _collective_counts AS
SELECT run, tool, profile_id, process_id, window_index, numbered, group_name, any_value(rank) AS rank, any_value(host) AS host,
    CASE WHEN min(device_id) = max(device_id) THEN min(device_id) END AS device_id, count(*) AS calls,
    len(list_distinct(list(place) FILTER (numbered))) AS numbers
FROM _collective_kernels WHERE duration_ns >= 0
GROUP BY run, tool, profile_id, process_id, window_index, numbered, group_name;
