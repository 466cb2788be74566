-- The collective kernels on the timeline, each with its counterparts on the other processes of the run and the time in
-- which data moved: that of the fastest counterpart, at the end of each (the rest is waiting for the others). Counterparts:
-- the same sequence number in the same process group where the tool recorded both, else the k-th collective of each
-- process, where all processes have as many and the k-th has one name on all of them. NULL where there are none. A
-- counterpart with another name, two of one process or rank, or more than the group has ranks, is no match. Counterparts are
-- of one execution; captures that name none belong to the only one that their run and tool have.
-- @scope rows
-- @requires kernels, profiles
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
), named AS (
    SELECT run, tool, rank, profile_id, process_id, window_index, kernel_id, start_ns, start_ns + duration_ns AS end_ns,
        execution, message_bytes, group_size, group_name, group_seq, coalesce(
            nullif(regexp_replace(lower(collective), '^_|_base$|_coalesced$|_into_tensor$|_', '', 'g'), ''),
            nullif(lower(regexp_extract(name, '^(?:nccl|rccl)(?:Dev)?Kernel_([A-Za-z]+)', 1)), ''), short_name,
            name) AS operation,
        group_name IS NOT NULL AND group_seq IS NOT NULL AS numbered
    FROM kernels LEFT JOIN executions USING (profile_id)
    WHERE family = 'collective' AND tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns >= 0
), placed AS (
    SELECT *, CASE WHEN numbered THEN group_seq
        ELSE row_number() OVER (
            PARTITION BY profile_id, process_id, window_index, numbered ORDER BY start_ns, kernel_id) END AS place
    FROM named
), sized AS (
    SELECT run, tool, execution, window_index, count(*) AS processes, min(kernels) = max(kernels) AS alike
    FROM (SELECT run, tool, execution, window_index, profile_id, process_id, count(*) AS kernels
        FROM placed WHERE NOT numbered GROUP BY ALL)
    GROUP BY run, tool, execution, window_index
), matched AS (
    SELECT m.run, m.tool, m.execution, m.window_index, m.numbered, m.group_name, m.place, m.processes, m.transfer_ns
    FROM (
        SELECT run, tool, execution, window_index, numbered, CASE WHEN numbered THEN group_name END AS group_name, place,
            count(*) AS processes, count(DISTINCT (profile_id, process_id)) AS distinct_processes,
            count(rank) = count(DISTINCT rank) AS distinct_ranks, min(group_size) AS group_size,
            count(DISTINCT operation) AS operations, min(end_ns - start_ns) AS transfer_ns
        FROM placed GROUP BY ALL
    ) AS m
    LEFT JOIN sized AS s ON s.run = m.run AND s.tool = m.tool AND s.execution IS NOT DISTINCT FROM m.execution
        AND s.window_index IS NOT DISTINCT FROM m.window_index
    WHERE m.operations = 1 AND m.processes > 1 AND m.processes = m.distinct_processes AND m.distinct_ranks
        AND coalesce(m.processes <= m.group_size, true)
        AND (m.numbered OR (s.alike AND s.processes = m.processes))
)
SELECT p.run, p.tool, p.rank, p.profile_id, p.process_id, p.window_index, p.kernel_id, p.operation, p.start_ns, p.end_ns,
    p.message_bytes, p.group_size, m.processes, m.transfer_ns
FROM placed AS p
LEFT JOIN matched AS m ON m.run = p.run AND m.tool = p.tool AND m.execution IS NOT DISTINCT FROM p.execution
    AND m.window_index IS NOT DISTINCT FROM p.window_index
    AND m.numbered = p.numbered AND m.place = p.place
    AND m.group_name IS NOT DISTINCT FROM CASE WHEN p.numbered THEN p.group_name END;
