-- The collective kernels on the timeline, each with its counterparts on the other processes of the run and the time in
-- which data moved: that of the fastest counterpart, at the end of each (the rest is waiting for the others). Counterparts:
-- the same sequence number in the same process group where the tool recorded both, else the k-th collective of each
-- process, where all processes have as many and the k-th has one name on all of them. NULL where there are none. A
-- counterpart with another name, two of one process or rank, or more than the group has ranks, is no match. Counterparts are
-- of one execution; captures that name none belong to the only one that their run and tool have.
-- @scope rows
-- @requires _collective_kernels, profiles
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
WITH executions AS (
    SELECT profile_id, CASE WHEN min(execution_id) OVER captures = max(execution_id) OVER captures
        THEN min(execution_id) OVER captures ELSE execution_id END AS execution
    FROM profiles WINDOW captures AS (PARTITION BY run, tool)
), tracks AS MATERIALIZED (
    -- one per process, window and way of counting; unnumbered calls can match only where all processes have as many
    SELECT *, numbered OR (min(calls) OVER captures = max(calls) OVER captures AND count(*) OVER captures > 1) AS may_match,
        CASE WHEN NOT numbered THEN count(*) OVER captures END AS all_processes,
        dense_rank() OVER (ORDER BY run, tool, execution, window_index, numbered) AS capture,
        dense_rank() OVER (ORDER BY profile_id, process_id) AS process
    FROM (
        SELECT run, tool, profile_id, process_id, window_index, numbered, count(*) AS calls
        FROM _collective_kernels WHERE duration_ns >= 0 GROUP BY ALL
    ) LEFT JOIN executions USING (profile_id)
    WINDOW captures AS (PARTITION BY run, tool, execution, window_index, numbered)
), placed AS MATERIALIZED (
    -- calls without a number have their place among the others of their process and window
    SELECT k.run, t.capture, t.process, t.all_processes, k.kernel_id, k.rank, k.group_size, k.operation, k.duration_ns,
        CASE WHEN k.numbered THEN k.group_name END AS group_name, CASE WHEN k.numbered THEN k.group_seq
            ELSE row_number() OVER (PARTITION BY t.capture, t.process ORDER BY k.start_ns, k.kernel_id) END AS place
    FROM _collective_kernels AS k
    JOIN tracks AS t ON t.profile_id = k.profile_id AND t.process_id IS NOT DISTINCT FROM k.process_id
        AND t.window_index IS NOT DISTINCT FROM k.window_index AND t.numbered = k.numbered
    WHERE t.may_match AND k.duration_ns >= 0
), matched AS (
    SELECT capture, group_name, place, count(*) AS processes, min(duration_ns) AS transfer_ns
    FROM placed
    GROUP BY capture, group_name, place
    HAVING count(*) > 1 AND min(operation) = max(operation) AND count(DISTINCT process) = count(*)
        AND count(rank) = count(DISTINCT rank) AND coalesce(count(*) <= min(group_size), true)
        AND coalesce(count(*) = min(all_processes), true)
), known AS (
    SELECT p.run, p.kernel_id, m.processes, m.transfer_ns
    FROM placed AS p
    JOIN matched AS m ON m.capture = p.capture AND m.place = p.place AND m.group_name IS NOT DISTINCT FROM p.group_name
)
SELECT k.run, k.tool, k.rank, k.profile_id, k.process_id, k.window_index, k.kernel_id, k.operation, k.start_ns,
    k.start_ns + k.duration_ns AS end_ns, k.message_bytes, k.group_size, m.processes, m.transfer_ns
FROM _collective_kernels AS k
LEFT JOIN known AS m ON m.run = k.run AND m.kernel_id = k.kernel_id
WHERE k.duration_ns >= 0;
