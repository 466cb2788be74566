-- The collective kernels on the timeline, with what says which call of which process group each of them is: all that the
-- matching over processes reads (_collectives, collective_match). No kernel is looked at again for it.
-- @scope profile
-- @requires kernels
-- @column run            Run.
-- @column tool           nsys or kineto.
-- @column rank           Rank of the process.
-- @column host           Its host.
-- @column profile_id     Profile.
-- @column process_id     OS process.
-- @column window_index   Capture window of the process.
-- @column kernel_id      The kernel.
-- @column device_id      The physical GPU.
-- @column stream         Stream id within the process.
-- @column start_ns       Start, relative to the profile's origin.
-- @column duration_ns    Duration as the tool recorded it.
-- @column overrun_ns     The part of it that its stream does not allow; NULL where there is none.
-- @column step           Training step.
-- @column collective     Operation as the trace names it.
-- @column short_name     The kernel's short name.
-- @column operation      allreduce, allgather, reducescatter, alltoall, broadcast, reduce, sendrecv, ...; else its base name.
-- @column message_bytes  Payload on this rank; NULL where unknown.
-- @column group_name     Process group; NULL where unknown.
-- @column group_seq      Number of the call within its group; NULL where unknown.
-- @column group_size     Ranks of the process group; NULL where unknown.
-- @column peer_rank      Rank that a send goes to or a receive comes from; NULL where unknown.
-- @column numbered       Whether group and number of the call are known.
-- @column place          Number of the call in its group; of calls without, the place among those of its process, window and group.
-- @column is_alone       Whether no other collective kernel of its process and window runs meanwhile.
CREATE VIEW _collective_kernels AS
WITH collectives AS (
    SELECT run, tool, rank, host, profile_id, process_id, window_index, kernel_id, device_id, stream, start_ns, duration_ns, overrun_ns, step,
        collective, short_name, coalesce(
            nullif(regexp_replace(lower(collective), '(_(base|coalesced|into_tensor|tensor|oop))+$|_', '', 'g'), ''),
            nullif(lower(regexp_extract(name, '^(?:nccl|rccl)(?:Dev)?Kernel_([A-Za-z]+)', 1)), ''), short_name, name) AS operation,
        message_bytes, group_name, group_seq, group_size, peer_rank, group_name IS NOT NULL AND group_seq IS NOT NULL AS numbered
    FROM kernels
    WHERE family = 'collective' AND tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns IS NOT NULL
), numbers AS (
    -- apart, from few columns of its own: DuckDB sorts for the windows all that it hands on
    SELECT profile_id, kernel_id, row_number() OVER (
            PARTITION BY profile_id, process_id, window_index, duration_ns >= 0, group_name IS NOT NULL AND group_seq IS NOT NULL,
                group_name ORDER BY start_ns, kernel_id) AS nth,
        start_ns >= coalesce(max(end_ns) OVER (in_time ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns)
            AND end_ns <= coalesce(lead(start_ns) OVER in_time, end_ns) AS is_alone
    FROM (SELECT *, start_ns + duration_ns AS end_ns FROM kernels)
    WHERE family = 'collective' AND tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns IS NOT NULL
    WINDOW in_time AS (PARTITION BY profile_id, process_id, window_index, duration_ns >= 0 ORDER BY start_ns, kernel_id)
)
SELECT c.*, CASE WHEN numbered THEN group_seq ELSE nth END AS place, is_alone
FROM collectives AS c JOIN numbers AS n ON n.profile_id = c.profile_id AND n.kernel_id = c.kernel_id;
