-- How many collective kernels each process has in a window, with and without a number of their own; of those without by the process
-- group, where it is known.
-- @scope profile
-- @requires _collective_kernels
-- @column run           Run.
-- @column tool          nsys or kineto.
-- @column profile_id    Profile.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process.
-- @column numbered      Whether their groups and numbers are known.
-- @column named_group   Process group of calls without numbers; NULL where unknown.
-- @column calls         Kernels.
CREATE VIEW _collective_counts AS
SELECT run, tool, profile_id, process_id, window_index, numbered, named_group, count(*) AS calls
FROM _collective_kernels WHERE duration_ns >= 0
GROUP BY run, tool, profile_id, process_id, window_index, numbered, named_group;
