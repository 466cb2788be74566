-- The communication operations of each process, by operation: calls, bytes, time and bandwidth. The kernels count, not the
-- host ranges that the TensorBoard plugin adds. Latency is the time of the kernels, including waits for other ranks. Transfer
-- is the part in which data moved: the time of the fastest rank for the same call (NULL where the calls of the ranks cannot be
-- matched; _collective_transfers says how). Both are sums over calls that may overlap; *_union_ns are the unions that the plugin
-- shows. Bandwidth uses transfer_ns where known, else latency, over the calls of known bytes; bus bandwidth has the factors of
-- nccl-tests: 2 (n - 1) / n for allreduce, (n - 1) / n for reducescatter, alltoall, scatter and (on n times the payload)
-- allgather and gather, else 1. Large calls are those that the link between the GPUs, at its peak, needs 250 microseconds or more
-- for: ten times what a ring of eight takes to start, so that the link, not latency, decides how long they take. Their bus bandwidth
-- stands beside that peak (a datasheet's, per direction, in gpu_peaks). The link is known where all ranks of the group were recorded
-- on one host, on GPUs of their own, in numbers that use all of its lanes; between hosts it is a network that nothing recorded.
-- @scope run
-- @needs collectives
-- @requires _collectives, _collective_latencies, _collective_unions
-- @assumes A collective is a kernel of family `collective`: what a backend does by copies or on the host (gloo) has no row.
-- @assumes The fastest rank of a matched call did not wait, so its duration is the transfer time.
-- @assumes Bytes are the input payload that Kineto names or, under nsys, what the call of NCCL carries (an export with its
--     payloads,
--     docs/formats.md; else sizes and bandwidths are NULL). No real export with payloads was seen: synthetic files test it.
-- @assumes Of large calls, only those count that no other collective of their process overlaps, of operations that load each link
--     alike: allreduce, allgather, reducescatter, alltoall, broadcast, reduce.
-- @assumes Kernels that compute at the same time slow communication down, and NVLink's switches can add up, so that 100 % is passed.
-- @assumes Where no group size was recorded, the processes whose calls match are the whole group.
-- @first rank, operation, latency_ns, transfer_ns, bus_bytes_per_s, link_pct, total_bytes, calls
-- @column run                    Run (one workload in one configuration).
-- @column tool                   nsys or kineto. Never add them up: they saw the same work.
-- @column rank                   Rank of the process; NULL where unknown.
-- @column profile_id             Profile; key of `profiles`.
-- @column process_id             OS process.
-- @column operation              allreduce, allgather, reducescatter, alltoall, broadcast, reduce, sendrecv, ...
-- @column calls                  Collective kernels.
-- @column total_bytes            Payload on this rank; NULL where no call's is known.
-- @column avg_bytes              Mean payload of the calls where it is known, to one decimal.
-- @column latency_ns             Sum of the kernels' durations.
-- @column avg_latency_ns         Mean duration, to one decimal.
-- @column latency_union_ns       Union of the kernels.
-- @column matched_calls          Calls whose counterparts on other processes are known.
-- @column unmatched_ns           Durations of the other calls, summed.
-- @column transfer_ns            Time in which data moved; NULL where no call is matched.
-- @column avg_transfer_ns        Mean of it, to one decimal.
-- @column transfer_union_ns      Union of it.
-- @column algorithm_bytes_per_s  Payload per second.
-- @column bus_bytes_per_s        Bus bandwidth; NULL where the size of the group is unknown.
-- @column large_calls            Large calls of known transfer time; NULL where the link is unknown.
-- @column large_transfer_ns      Their transfer times, summed.
-- @column large_bus_bytes_per_s  Their bus bandwidth.
-- @column link_bytes_per_s       Peak of the link, per direction; NULL where unknown.
-- @column link_pct               large_bus_bytes_per_s in % of it, to one decimal.
CREATE VIEW collective_summary AS
WITH timed AS (
    SELECT *, end_ns - start_ns AS latency_ns, coalesce(transfer_ns, end_ns - start_ns) AS moving_ns,
        coalesce(group_size, processes) AS ranks, nullif(message_bytes, 0) * CASE WHEN operation IN ('allgather', 'gather') THEN ranks ELSE 1 END AS moved
    FROM _collectives
), factored AS (
    SELECT *, CASE WHEN operation = 'allreduce' THEN 2.0 * (ranks - 1) / nullif(ranks, 0)
        WHEN operation IN ('allgather', 'reducescatter', 'alltoall', 'alltoallv', 'gather', 'scatter') THEN (ranks - 1.0) / nullif(ranks, 0)
        ELSE 1.0 END AS factor
    FROM timed
), sized AS (
    SELECT *, transfer_ns > 0 AND is_alone AND moved * factor >= 250e-6 * link_bytes_per_s
        AND operation IN ('allreduce', 'allgather', 'reducescatter', 'alltoall', 'broadcast', 'reduce') AS is_large
    FROM factored
)
SELECT f.run, f.tool, f.rank, f.profile_id, f.process_id, f.operation, count(*) AS calls,
    TRY_CAST(sum(message_bytes) AS BIGINT) AS total_bytes, round(avg(message_bytes), 1) AS avg_bytes,
    TRY_CAST(sum(f.latency_ns) AS BIGINT) AS latency_ns, round(avg(f.latency_ns), 1) AS avg_latency_ns,
    any_value(l.latency_ns) AS latency_union_ns, count(f.transfer_ns) AS matched_calls,
    TRY_CAST(coalesce(sum(f.latency_ns) FILTER (f.transfer_ns IS NULL), 0) AS BIGINT) AS unmatched_ns, TRY_CAST(sum(f.transfer_ns) AS BIGINT) AS transfer_ns,
    round(avg(f.transfer_ns), 1) AS avg_transfer_ns,
    CASE WHEN count(f.transfer_ns) > 0 THEN TRY_CAST(coalesce(sum(f.transfer_ns) FILTER (f.is_alone), 0)
        + coalesce(any_value(u.transfer_ns), 0) AS BIGINT) END AS transfer_union_ns,
    round(1e9 * sum(moved) / nullif(sum(moving_ns) FILTER (moved IS NOT NULL), 0), 0) AS algorithm_bytes_per_s,
    round(1e9 * fsum(moved * factor) / nullif(sum(moving_ns) FILTER (moved * factor IS NOT NULL), 0), 0) AS bus_bytes_per_s,
    CASE WHEN count(link_bytes_per_s) > 0 THEN count(*) FILTER (is_large) END AS large_calls,
    TRY_CAST(sum(f.transfer_ns) FILTER (is_large) AS BIGINT) AS large_transfer_ns,
    round(1e9 * fsum(moved * factor) FILTER (is_large) / sum(f.transfer_ns) FILTER (is_large), 0) AS large_bus_bytes_per_s,
    min(link_bytes_per_s) AS link_bytes_per_s,
    round(1e11 * fsum(moved * factor / link_bytes_per_s) FILTER (is_large) / sum(f.transfer_ns) FILTER (is_large), 1) AS link_pct
FROM sized AS f
LEFT JOIN _collective_latencies AS l ON l.profile_id = f.profile_id AND l.process_id IS NOT DISTINCT FROM f.process_id
    AND l.operation = f.operation
LEFT JOIN _collective_unions AS u ON u.profile_id = f.profile_id AND u.process_id IS NOT DISTINCT FROM f.process_id
    AND u.operation = f.operation
GROUP BY f.run, f.tool, f.rank, f.profile_id, f.process_id, f.operation
ORDER BY f.run, f.tool, f.rank, f.profile_id, f.process_id, latency_ns DESC, f.operation;
