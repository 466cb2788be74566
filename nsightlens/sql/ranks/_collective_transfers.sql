-- The collective calls whose counterparts on the processes of the run are known, with the time in which data moved: that of the
-- fastest counterpart, at the end of each (the rest is waiting for the others). Counterparts:
-- the same sequence number in the same process group where the tool recorded both, else the k-th collective of each
-- process (in the same group, where it is known), where all processes have as many and the k-th has one name on all of them. A
-- counterpart with another name, two of one process or rank, or more than the group has ranks, is no match. Counterparts are
-- of one execution; captures that name none belong to the only one that their run and tool have.
-- @scope run
-- @requires _collective_kernels, _collective_captures
-- @column communicator  Number of the process group in its execution and window, as in _collective_captures.
-- @column place         Number of the call in it.
-- @column processes     Counterparts.
-- @column transfer_ns   Shortest duration among them.
CREATE VIEW _collective_transfers AS
SELECT c.communicator, k.place, count(*) AS processes, min(k.duration_ns) AS transfer_ns
FROM _collective_kernels AS k
JOIN _collective_captures AS c ON c.profile_id = k.profile_id AND c.process_id IS NOT DISTINCT FROM k.process_id
    AND c.window_index IS NOT DISTINCT FROM k.window_index AND c.numbered = k.numbered
    AND c.group_name IS NOT DISTINCT FROM k.group_name
WHERE c.may_match AND k.duration_ns >= 0
GROUP BY c.communicator, k.place
HAVING count(*) > 1 AND min(k.operation) = max(k.operation)
    -- in lists: DuckDB takes three times as long where it counts DISTINCT, even of no rows
    AND coalesce(len(list_distinct(list(c.process) FILTER (c.may_clash))) = count(*), true)
    AND coalesce(len(list_distinct(list(k.rank) FILTER (c.may_clash))) = count(k.rank), true)
    AND coalesce(count(*) <= min(k.group_size), true) AND coalesce(count(*) = min(c.all_processes), true);
