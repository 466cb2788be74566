-- Memory by operator, per process and device: what each operator allocated and by how much it grew the memory. Self counts the
-- allocations and releases in the operator but not in its inner operators; total includes these. A release counts for the
-- operator in which it happened, which may not be the one that allocated.
-- @scope profile
-- @alias memory_view
-- @needs allocations
-- @requires allocations, ranges, processes
-- @assumes The trace was recorded with profile_memory=True, the only source: no other capture has a row.
-- @assumes The operator around an allocation, on its thread, caused it. Memory outside PyTorch's allocator is not seen.
-- @first name, increase_bytes, self_increase_bytes, calls, allocations
-- @column run                     Run (one workload in one configuration).
-- @column tool                    kineto.
-- @column rank                    Rank of the process; NULL where unknown.
-- @column profile_id              Profile; key of `profiles`.
-- @column process_id              OS process.
-- @column device_type             cpu, cuda or the number the tool printed.
-- @column device                  Device ordinal; NULL for the CPU.
-- @column name                    Operator; NULL: outside all operators.
-- @column calls                   Calls of the operator, those that allocate nothing included.
-- @column increase_bytes          Allocated less released.
-- @column self_increase_bytes     That, of its own.
-- @column allocations             Allocations.
-- @column self_allocations        Of its own.
-- @column allocated_bytes         Bytes allocated.
-- @column self_allocated_bytes    Of its own.
-- @names operator name
CREATE VIEW memory_by_operator AS
WITH RECURSIVE operators AS MATERIALIZED (
    SELECT profile_id, process_id, range_id, op_parent_id, name FROM ranges WHERE kind = 'operator'
), events AS (
    SELECT a.run, a.tool, a.profile_id, a.process_id, a.device_type, a.device, a.op_range_id AS range_id,
        TRY_CAST(sum(a.bytes) AS BIGINT) AS increase, count(*) FILTER (a.bytes > 0) AS allocations,
        TRY_CAST(coalesce(sum(a.bytes) FILTER (a.bytes > 0), 0) AS BIGINT) AS allocated
    FROM allocations AS a GROUP BY ALL
), up AS (
    SELECT e.*, o.op_parent_id, o.name, true AS own FROM events AS e LEFT JOIN operators AS o ON o.range_id = e.range_id
    UNION ALL
    SELECT u.run, u.tool, u.profile_id, u.process_id, u.device_type, u.device, o.range_id, u.increase, u.allocations,
        u.allocated, o.op_parent_id, o.name, false
    FROM up AS u JOIN operators AS o ON o.range_id = u.op_parent_id
), calls AS (
    SELECT profile_id, process_id, name, count(*) AS calls FROM operators GROUP BY profile_id, process_id, name
)
SELECT u.run, u.tool, p.rank, u.profile_id, u.process_id, u.device_type, u.device, u.name, any_value(c.calls) AS calls,
    TRY_CAST(sum(u.increase) AS BIGINT) AS increase_bytes, TRY_CAST(coalesce(sum(u.increase) FILTER (u.own), 0) AS BIGINT) AS self_increase_bytes,
    TRY_CAST(sum(u.allocations) AS BIGINT) AS allocations, TRY_CAST(coalesce(sum(u.allocations) FILTER (u.own), 0) AS BIGINT) AS self_allocations,
    TRY_CAST(sum(u.allocated) AS BIGINT) AS allocated_bytes, TRY_CAST(coalesce(sum(u.allocated) FILTER (u.own), 0) AS BIGINT) AS self_allocated_bytes
FROM up AS u
LEFT JOIN calls AS c ON c.profile_id = u.profile_id AND c.process_id IS NOT DISTINCT FROM u.process_id AND c.name = u.name
LEFT JOIN processes AS p ON p.process_id = u.process_id AND p.profile_id = u.profile_id
GROUP BY u.run, u.tool, p.rank, u.profile_id, u.process_id, u.device_type, u.device, u.name
ORDER BY u.run, u.tool, p.rank, u.profile_id, u.process_id, u.device_type, u.device, self_allocated_bytes DESC, u.name;
