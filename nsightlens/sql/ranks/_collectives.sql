-- The collective kernels on the timeline, each with its counterparts on the other processes of the run and the time in
-- which data moved, as _collective_transfers has them; NULL where there are none.
-- @scope rows
-- @requires _collective_kernels, _collective_captures, _collective_transfers
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
-- @column link_bytes_per_s  Peak of the slowest link between them, per direction; NULL where one of them or of their hosts is unknown, or where
--     a part of the group was not recorded.
-- @column is_alone       Whether no other collective kernel of its process and window runs meanwhile.
CREATE VIEW _collectives AS
SELECT k.run, k.tool, k.rank, k.profile_id, k.process_id, k.window_index, k.kernel_id, k.operation, k.start_ns,
    k.start_ns + k.duration_ns AS end_ns, k.message_bytes, k.group_size, m.processes, m.transfer_ns,
    CASE WHEN m.processes = k.group_size AND m.processes >= c.link_ranks THEN c.link_bytes_per_s END AS link_bytes_per_s, k.is_alone
FROM _collective_kernels AS k
JOIN _collective_captures AS c ON c.profile_id = k.profile_id AND c.process_id IS NOT DISTINCT FROM k.process_id
    AND c.window_index IS NOT DISTINCT FROM k.window_index AND c.numbered = k.numbered
    AND c.group_name IS NOT DISTINCT FROM k.group_name
LEFT JOIN _collective_transfers AS m ON m.communicator = c.communicator AND m.place = k.place
WHERE k.duration_ns >= 0;
