-- How much of the GPU work is attributed: per process, the share with a launching call, a range around that call, an operator,
-- a module, a phase, a step. GPU work: kernels and memory operations; its time is the sum of their durations, not busy time.
-- Kernels that a tool hid inside a graph are not included, nor is ncu, which records no calls.
-- @scope profile
-- @needs timeline
-- @requires _bounded_kernels
-- @assumes The launching call is the one with the same correlation id in the process, and the tool put host and GPU on one clock.
-- @assumes What lies around the start of the launching call, on its thread, caused the work.
-- @column run             Run (one workload in one configuration).
-- @column tool            Profiler: nsys or kineto. Never add them up: they saw the same work.
-- @column rank            Rank of the process; NULL where unknown.
-- @column attributed_to   What it is attributed to: call, range, op, module, phase or step.
-- @column activities      Kernels and memory operations that have it.
-- @column all_activities  Kernels and memory operations.
-- @column activities_pct  Share of those that have it.
-- @column gpu_ns          Sum of the durations of those that have it.
-- @column all_gpu_ns      Sum of all their durations.
-- @column gpu_time_pct    Share of the durations; NULL where there is no duration.
-- @column profile_id      Profile; key of `profiles`.
-- @column process_id      Process; key of `processes`.
CREATE VIEW attribution_coverage AS
WITH work AS (
    SELECT run, tool, rank, profile_id, process_id, duration_ns, launch_id, range_id, op_range_id, module, phase, step_id
    FROM _bounded_kernels
    UNION ALL
    SELECT run, tool, rank, profile_id, process_id, duration_ns, launch_id, range_id, op_range_id, module, phase, step_id
    FROM memory_ops
), total AS (
    SELECT
        run, tool, rank, profile_id, process_id, count(*) AS all_activities, coalesce(sum(duration_ns), 0) AS all_gpu_ns,
        [
            {attributed_to_order: 1, attributed_to: 'call', activities: count(launch_id), gpu_ns: sum(duration_ns) FILTER (launch_id IS NOT NULL)},
            {attributed_to_order: 2, attributed_to: 'range', activities: count(range_id), gpu_ns: sum(duration_ns) FILTER (range_id IS NOT NULL)},
            {attributed_to_order: 3, attributed_to: 'op', activities: count(op_range_id), gpu_ns: sum(duration_ns) FILTER (op_range_id IS NOT NULL)},
            {attributed_to_order: 4, attributed_to: 'module', activities: count(module), gpu_ns: sum(duration_ns) FILTER (module IS NOT NULL)},
            {attributed_to_order: 5, attributed_to: 'phase', activities: count(phase), gpu_ns: sum(duration_ns) FILTER (phase IS NOT NULL)},
            {attributed_to_order: 6, attributed_to: 'step', activities: count(step_id), gpu_ns: sum(duration_ns) FILTER (step_id IS NOT NULL)}
        ] AS shares
    FROM work WHERE tool <> 'ncu' GROUP BY ALL
), share AS (
    SELECT * EXCLUDE (shares), unnest(shares) AS share FROM total
)
SELECT
    run, tool, rank, share.attributed_to AS attributed_to, share.activities AS activities, all_activities, 100 * share.activities / all_activities AS activities_pct,
    TRY_CAST(coalesce(share.gpu_ns, 0) AS BIGINT) AS gpu_ns, TRY_CAST(all_gpu_ns AS BIGINT) AS all_gpu_ns,
    CASE WHEN all_gpu_ns > 0 THEN 100 * coalesce(share.gpu_ns, 0) / all_gpu_ns END AS gpu_time_pct, profile_id, process_id
FROM share
ORDER BY run, tool, rank, profile_id, process_id, share.attributed_to_order;
