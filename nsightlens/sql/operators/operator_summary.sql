-- The Operator View of the TensorBoard plugin, per process, or per run over all ranks: calls, time on the GPU and on the host, and tensor cores, by
-- operator; with by_shapes by operator and input shapes. Total includes the operators inside an operator; self excludes them.
-- GPU time is a sum of durations of kernels and memory operations (concurrent ones count separately); host self time also
-- excludes CUDA or HIP API calls. If an operator calls itself, its total counts the inner call twice. Left out, as in the
-- plugin: DataParallel.forward, DistributedDataParallel.forward, Optimizer.*, the data loader. GPU time that none of the listed
-- operators launched itself is the row (no operator). GPU figures are NULL if no GPU work of the process has a known operator. An operator is eligible for tensor cores if the plugin's list or newer operators
-- (attention, scaled products) include it, an operator inside it is eligible, or it used them.
-- @scope run
-- @alias operator_view
-- @needs operators
-- @requires _gpu_time, _operators, processes
-- @assumes The capture has operators: Kineto's cpu_op, or NVTX ranges as PyTorch's emit_nvtx writes them.
-- @assumes Work launched inside an operator on its thread belongs to it; a CUDA graph belongs to the operator that replays it.
-- @assumes Host time is wall time of the thread, profiler overhead and waiting included.
-- @param  by_shapes  Group by input shapes too.
-- @param  per        'process', one rank after the other, or 'run': summed over all processes that a tool recorded.
-- @note_across  Operators of collectives include waiting for other ranks: collective_match separates it from transfer. One rank
--     follows the other: per=run adds them up.
-- @first name, device_self_ns, device_self_pct, device_total_ns, calls, host_self_ns, host_total_ns
-- @column run                    Run (one workload in one configuration).
-- @column tool                   nsys or kineto. Never add them up: they saw the same work.
-- @column rank                   Rank of the process; NULL where unknown, and per run.
-- @column profile_id             Profile; key of `profiles`; NULL per run.
-- @column process_id             OS process; NULL per run.
-- @column name                   Operator; (no operator) for the rest of the GPU time.
-- @column shapes                 Input shapes as the tool prints them; NULL without by_shapes.
-- @column calls                  Calls; NULL, as all but GPU time, for (no operator).
-- @column device_self_ns         GPU time launched by the operator itself; per run, NULL where it is unknown of a process.
-- @column device_self_pct        Share of all GPU time of the process (or run), to two decimals; NULL where that is 0.
-- @column device_total_ns        GPU time launched by it and the operators inside it.
-- @column host_self_ns           Host time of its own.
-- @column host_total_ns          Sum of the calls' durations.
-- @column tensor_core_eligible   Can run on tensor cores.
-- @column tensor_core_self_pct   Share on tensor cores of the part of device_self_ns that is known to use them or not, to two
--     decimals; NULL where that is less than half of it.
-- @column tensor_core_total_pct  The same of device_total_ns.
-- @names operator name
CREATE MACRO operator_summary(by_shapes := false, per := 'process') AS TABLE
WITH operators AS MATERIALIZED (
    SELECT o.* EXCLUDE (profile_id, process_id), l.known, CASE WHEN by_shapes THEN shapes END AS given,
        CASE per WHEN 'process' THEN o.profile_id WHEN 'run' THEN NULL ELSE error('per is process or run') END AS profile_id,
        CASE WHEN per = 'process' THEN o.process_id END AS process_id
    FROM _operators AS o JOIN (
        SELECT profile_id, process_id, max(device_self_ns) > 0 AS known FROM _operators GROUP BY profile_id, process_id
    ) AS l ON l.profile_id = o.profile_id AND l.process_id IS NOT DISTINCT FROM o.process_id
    WHERE name NOT IN ('DataParallel.forward', 'DistributedDataParallel.forward') AND NOT starts_with(name, 'Optimizer.')
        AND NOT regexp_matches(name, '^enumerate\(DataLoader\)#.*\.__next__$|^enumerate\(DataPipe\)#')
), summed AS (
    SELECT run, tool, profile_id, process_id, name, given, count(*) AS calls, bool_and(known) AS known,
        TRY_CAST(sum(device_self_ns) AS BIGINT) AS device_self_ns,
        TRY_CAST(sum(device_total_ns) AS BIGINT) AS device_total_ns, TRY_CAST(sum(host_self_ns) AS BIGINT) AS host_self_ns,
        TRY_CAST(sum(host_total_ns) AS BIGINT) AS host_total_ns, bool_or(eligible) AS eligible,
        CASE WHEN 2 * sum(unknown_self_ns) <= sum(device_self_ns) THEN
            round(100.0 * sum(tensor_self_ns) / nullif(sum(device_self_ns) - sum(unknown_self_ns), 0), 2) END AS self_pct,
        CASE WHEN 2 * sum(unknown_total_ns) <= sum(device_total_ns) THEN
            round(100.0 * sum(tensor_total_ns) / nullif(sum(device_total_ns) - sum(unknown_total_ns), 0), 2) END AS total_pct
    FROM operators GROUP BY run, tool, profile_id, process_id, name, given
), whole AS (
    SELECT run, tool, CASE WHEN per = 'process' THEN profile_id END AS profile_id,
        CASE WHEN per = 'process' THEN process_id END AS process_id, sum(total_ns) AS total_ns
    FROM _gpu_time GROUP BY ALL
), listed AS (
    FROM summed
    UNION ALL BY NAME
    SELECT s.run, s.tool, s.profile_id, s.process_id, '(no operator)' AS name, true AS known,
        TRY_CAST(any_value(w.total_ns) - sum(s.device_self_ns) AS BIGINT) AS device_self_ns,
        TRY_CAST(any_value(w.total_ns) - sum(s.device_self_ns) AS BIGINT) AS device_total_ns
    FROM summed AS s JOIN whole AS w ON w.run = s.run AND w.tool = s.tool AND w.profile_id IS NOT DISTINCT FROM s.profile_id
        AND w.process_id IS NOT DISTINCT FROM s.process_id
    GROUP BY s.run, s.tool, s.profile_id, s.process_id
    HAVING bool_or(known) AND any_value(w.total_ns) > sum(s.device_self_ns)
)
SELECT s.run, s.tool, p.rank, s.profile_id, s.process_id, s.name, s.given AS shapes, s.calls,
    CASE WHEN known THEN s.device_self_ns END AS device_self_ns,
    CASE WHEN known THEN round(100.0 * s.device_self_ns
        / nullif(sum(s.device_self_ns) OVER (PARTITION BY s.run, s.tool, s.profile_id, s.process_id), 0), 2) END AS device_self_pct,
    CASE WHEN known THEN s.device_total_ns END AS device_total_ns,
    s.host_self_ns, s.host_total_ns, s.eligible AS tensor_core_eligible,
    CASE WHEN known THEN s.self_pct END AS tensor_core_self_pct, CASE WHEN known THEN s.total_pct END AS tensor_core_total_pct
FROM listed AS s
LEFT JOIN processes AS p ON p.process_id = s.process_id AND p.profile_id = s.profile_id
ORDER BY s.run, s.tool, p.rank, s.profile_id, s.process_id, device_self_ns DESC NULLS LAST, s.host_self_ns DESC, s.name, shapes;
