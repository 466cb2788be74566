-- Each MPI event, in order: the rows of `nsys stats mpi_event_trace`.
-- @scope rows
-- @needs mpi
-- @alias mpi_event_trace
-- @requires mpi_calls processes
-- @assumes nsys traced MPI (--trace=mpi). No public capture has these tables: synthetic files test this view.
-- @column run            Run (one workload in one configuration).
-- @column tool           nsys: no other tool records MPI.
-- @column rank           Rank of the process; NULL where unknown.
-- @column start_ns       Start, relative to the profile's origin.
-- @column duration_ns    Duration; NULL for a call that was never seen to end.
-- @column name           Function.
-- @column kind           p2p, collective, start_wait or other.
-- @column peer_rank      The other rank of a p2p call, in its communicator.
-- @column root_rank      Root of a collective that has one, in its communicator.
-- @column tag            Tag of a p2p message.
-- @column bytes          Size of a p2p message; of a collective what this rank sends.
-- @column receive_bytes  What this rank receives in a collective.
-- @column pid            OS process id.
-- @column thread         OS thread id of the caller.
-- @column profile_id     Profile; starts are comparable only within one.
-- @column process_id     OS process.
-- @column mpi_call_id    The event; key of `mpi_calls`.
-- @names function name
CREATE VIEW mpi_call_trace AS
SELECT c.run, c.tool, c.rank, c.start_ns, c.duration_ns, c.name, c.kind, c.peer_rank, c.root_rank, c.tag, c.bytes, c.receive_bytes,
    p.pid, c.thread, c.profile_id, c.process_id, c.mpi_call_id
FROM mpi_calls AS c
LEFT JOIN processes AS p ON c.profile_id = p.profile_id AND c.process_id = p.process_id
ORDER BY c.run, c.tool, c.profile_id, c.start_ns, c.mpi_call_id;
