-- The collective kernels on the timeline, each with its counterparts on the other processes of the run and the time in
-- which data moved, as _collective_matches has them; NULL where there are none.
-- @scope rows
-- @requires _collective_kernels, _collective_captures, _collective_matches
-- @column run            Run.
-- @column tool           nsys or kineto.
-- @column rank           Rank of the process.
-- @column profile_id     Profile.
-- @column process_id     OS process.
-- @column window_index   Capture window of the process.
-- @column kernel_id      The kernel.
-- @column operation      allreduce, allgather, reducescatter, alltoall, broadcast, reduce, sendrecv, ...; else its base name.
-- @column start_ns       Start, relative to the profile's origin.
-- @column end_ns         End.
-- @column message_bytes  Payload on this rank; NULL where unknown.
-- @column group_size     Ranks of the process group; NULL where unknown.
-- @column processes      Counterparts, this one included; NULL where none was found.
-- @column transfer_ns    Shortest duration among them.
CREATE VIEW _collectives AS
WITH placed AS (
    SELECT k.*, c.may_match FROM _collective_kernels AS k
    JOIN _collective_captures AS c ON c.run = k.run AND c.profile_id = k.profile_id
        AND c.process_id IS NOT DISTINCT FROM k.process_id AND c.window_index IS NOT DISTINCT FROM k.window_index
        AND c.numbered = k.numbered AND c.named_group IS NOT DISTINCT FROM k.named_group
    WHERE k.duration_ns >= 0
)
SELECT p.run, p.tool, p.rank, p.profile_id, p.process_id, p.window_index, p.kernel_id, p.operation, p.start_ns,
    p.start_ns + p.duration_ns AS end_ns, p.message_bytes, p.group_size, m.processes, m.transfer_ns
FROM placed AS p
LEFT JOIN _collective_matches AS m ON m.run = p.run AND m.kernel_id = p.kernel_id
WHERE p.may_match
UNION ALL
-- apart, for DuckDB would hash them for the matches that they cannot have
SELECT run, tool, rank, profile_id, process_id, window_index, kernel_id, operation, start_ns, start_ns + duration_ns,
    message_bytes, group_size, NULL, NULL
FROM placed WHERE NOT may_match;
