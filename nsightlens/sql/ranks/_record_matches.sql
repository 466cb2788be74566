-- The collectives of which records say how long they took on at least two ranks: who was last. All ranks leave a collective
-- together, so that the rank on which it took the shortest came last, and the others waited for it: no clock is needed.
-- A collective is known by its communicator and its number in it. Those of which ranks say different operations, or
-- more ranks speak than the communicator has, are left out, as are times of the host.
-- @scope run
-- @requires _profile_executions, collective_records
-- @column run           Run.
-- @column tool          nccl_inspector or flight_recorder.
-- @column execution     Start of the job, from a sidecar; NULL without one.
-- @column communicator  Communicator.
-- @column sequence      Number of the collective within it.
-- @column ranks         Ranks whose time is known.
-- @column group_size    Ranks of the communicator; NULL where unknown.
-- @column transfer_ns   Time on the rank that came last: in which data moved.
-- @column lag_ns        How much later the last rank came than the second last.
-- @column last_process  The process that came last.
CREATE VIEW _record_matches AS
SELECT r.run, r.tool, e.execution, r.communicator, r.sequence, count(*) AS ranks, min(r.group_size) AS group_size,
    min(r.duration_ns) AS transfer_ns, min(r.duration_ns, 2)[2] - min(r.duration_ns) AS lag_ns,
    arg_min(r.process_id, (r.duration_ns, r.process_id)) AS last_process
FROM collective_records AS r LEFT JOIN _profile_executions AS e USING (profile_id)
WHERE r.duration_ns > 0 AND r.duration_clock IS DISTINCT FROM 'host' AND r.communicator IS NOT NULL AND r.sequence IS NOT NULL
GROUP BY r.run, r.tool, e.execution, r.communicator, r.sequence
HAVING count(*) > 1 AND min(r.collective) = max(r.collective) AND coalesce(count(*) <= min(r.group_size), true);
