-- The collective kernels whose counterparts on the other processes of the run are known, with the time in which data moved:
-- that of the fastest counterpart, at the end of each (the rest is waiting for the others). Counterparts:
-- the same sequence number in the same process group where the tool recorded both, else the k-th collective of each
-- process (in the same group, where it is known), where all processes have as many and the k-th has one name on all of them. A
-- counterpart with another name, two of one process or rank, or more than the group has ranks, is no match. Counterparts are
-- of one execution; captures that name none belong to the only one that their run and tool have.
-- @scope run
-- @requires _collective_kernels, _collective_captures
-- @column run            Run.
-- @column profile_id     Profile.
-- @column process_id     OS process.
-- @column window_index   Capture window of the process.
-- @column kernel_id      The kernel.
-- @column processes      Counterparts, this one included.
-- @column transfer_ns    Shortest duration among them.
CREATE VIEW _collective_matches AS
WITH placed AS MATERIALIZED (
    -- calls without a number have their place among the others of their process and window
    SELECT k.run, k.profile_id, k.process_id, k.window_index, k.kernel_id, c.capture, c.process, c.all_processes, k.rank,
        k.group_size, k.operation, k.duration_ns, CASE WHEN k.numbered THEN k.group_name END AS group_name,
        CASE WHEN k.numbered THEN k.group_seq
            ELSE row_number() OVER (PARTITION BY c.capture, c.process ORDER BY k.start_ns, k.kernel_id) END AS place
    FROM _collective_kernels AS k
    JOIN _collective_captures AS c ON c.run = k.run AND c.profile_id = k.profile_id
        AND c.process_id IS NOT DISTINCT FROM k.process_id AND c.window_index IS NOT DISTINCT FROM k.window_index
        AND c.numbered = k.numbered AND c.named_group IS NOT DISTINCT FROM k.named_group
    WHERE c.may_match AND k.duration_ns >= 0
), matched AS (
    SELECT capture, group_name, place, count(*) AS processes, min(duration_ns) AS transfer_ns
    FROM placed
    GROUP BY capture, group_name, place
    HAVING count(*) > 1 AND min(operation) = max(operation) AND count(DISTINCT process) = count(*)
        AND count(rank) = count(DISTINCT rank) AND coalesce(count(*) <= min(group_size), true)
        AND coalesce(count(*) = min(all_processes), true)
)
SELECT p.run, p.profile_id, p.process_id, p.window_index, p.kernel_id, m.processes, m.transfer_ns
FROM placed AS p
JOIN matched AS m ON m.capture = p.capture AND m.place = p.place AND m.group_name IS NOT DISTINCT FROM p.group_name;
