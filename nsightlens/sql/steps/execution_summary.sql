-- The Execution Summary of the TensorBoard plugin: mean time per step and share of each category, per process and
-- capture window, in the plugin's order of priority. Categories are exclusive and sum to the steps: step_breakdown has
-- what each means, where it differs from the plugin and when it is NULL. Steps have equal weight, none is left out.
-- @scope profile
-- @alias overview_view
-- @needs timeline
-- @requires step_breakdown
-- @assumes The steps of a window are alike: a warm-up step in it weighs as much as the others.
-- @assumes A step is a ProfilerStep of Kineto, or an NVTX range named like one (docs/attribution.md): one sequence per process.
-- @assumes A kernel's name says whether it communicates: by its family, `collective`, or by communication_pattern.
-- @assumes CUDA graphs whose kernels are unknown count as kernels that compute.
-- @param  communication_pattern  Regex of the kernel names that communicate; NULL: family `collective`.
-- @column run           Run (one workload in one configuration).
-- @column tool          nsys or kineto. Never add them up: they saw the same work.
-- @column rank          Rank of the process; NULL where unknown.
-- @column profile_id    Profile; key of `profiles`.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process, from 0.
-- @column category      kernel, memcpy, memset, communication, runtime, data_loader, cpu_exec or other.
-- @column time_pct      Share of the steps' time, to two decimals.
-- @column avg_ns        Mean per step, to one decimal.
-- @column total_ns      Sum over the steps.
-- @column min_ns        In the step with least.
-- @column max_ns        In the step with most.
-- @column steps         Steps summed.
-- @column steps_ns      Length of all steps together.
-- @balance steps_ns = total_ns per profile_id, process_id, window_index
CREATE MACRO execution_summary(communication_pattern := NULL) AS TABLE
WITH tall AS (
    SELECT run, tool, rank, profile_id, process_id, window_index, step_ns, category, part_ns
    FROM (
        SELECT run, tool, rank, profile_id, process_id, window_index, step_ns,
            kernel_ns AS kernel, memcpy_ns AS memcpy, memset_ns AS memset, communication_ns AS communication,
            runtime_ns AS runtime, data_loader_ns AS data_loader, cpu_exec_ns AS cpu_exec, other_ns AS other
        FROM step_breakdown(communication_pattern := communication_pattern)
    ) UNPIVOT INCLUDE NULLS (part_ns FOR category IN (
        kernel, memcpy, memset, communication, runtime, data_loader, cpu_exec, other))
)
SELECT run, tool, rank, profile_id, process_id, window_index, category,
    round(100.0 * sum(part_ns) / nullif(sum(step_ns), 0), 2) AS time_pct,
    round(avg(part_ns), 1) AS avg_ns, TRY_CAST(sum(part_ns) AS BIGINT) AS total_ns, min(part_ns) AS min_ns, max(part_ns) AS max_ns,
    count(*) AS steps, TRY_CAST(sum(step_ns) AS BIGINT) AS steps_ns
FROM tall
JOIN (SELECT unnest(['kernel', 'memcpy', 'memset', 'communication', 'runtime', 'data_loader', 'cpu_exec', 'other']) AS category,
    unnest(range(8)) AS category_order) USING (category)
GROUP BY run, tool, rank, profile_id, process_id, window_index, category, category_order
ORDER BY run, tool, rank, profile_id, process_id, window_index, category_order;
