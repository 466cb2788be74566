-- API calls, kernels and memory operations in one list by name, per run and tool: the numbers of `nsys stats cuda_api_gpu_sum`,
-- and with with_calls := false those of cuda_gpu_sum. All ranks, processes and threads of a run are pooled. Calls wait for work
-- in the same list, so totals are not wall time.
-- @scope run
-- @needs gpu_work
-- @alias cuda_api_gpu_sum
-- @alias cuda_gpu_sum with_calls=false
-- @assumes The tool recorded the calls: nsys those of its --trace, Kineto a subset. Their counts are not comparable.
-- @assumes Durations of concurrent kernels and copies all count in full.
-- @param  with_calls  Whether the list and the shares include API calls.
-- @column run        Run (one workload in one configuration).
-- @column tool       Profiler: nsys or kineto. Never add them up: they saw the same work.
-- @column time_pct   Share of the summed time of this run and tool's list, to one decimal.
-- @column total_ns   Sum of duration_ns.
-- @column instances  Calls, kernels or memory operations.
-- @column avg_ns     Mean duration, to one decimal.
-- @column median_ns  Median duration: the mean of the middle two for an even number.
-- @column min_ns     Shortest duration.
-- @column max_ns     Longest duration.
-- @column stddev_ns  Sample standard deviation (n - 1), to one decimal; 0 for a single one.
-- @column category   call, kernel or memory: nsys's CUDA_API, CUDA_KERNEL and MEMORY_OPER.
-- @column name       Kernel name, label of the memory operation, or function, as the tool prints it.
-- @names kernel name
CREATE MACRO cuda_work_summary(with_calls := true) AS TABLE
WITH work AS (
    SELECT run, tool, 'kernel' AS category, name, duration_ns FROM kernels WHERE tool <> 'ncu'
    UNION ALL
    SELECT run, tool, 'memory', name, duration_ns FROM memory_ops WHERE tool <> 'ncu'
    UNION ALL
    SELECT run, tool, 'call', name, duration_ns FROM api_calls WHERE with_calls
), grouped AS (
    SELECT
        run, tool, category, name,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
        count(*) AS instances,
        count(duration_ns) AS timed,
        avg(duration_ns) AS mean,
        quantile_cont(duration_ns, 0.5) AS median_ns,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        stddev_samp(duration_ns) AS deviation
    FROM work
    GROUP BY run, tool, category, name
)
SELECT
    run, tool,
    round(100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY run, tool), 0), 1) AS time_pct,
    total_ns, instances,
    round(mean, 1) AS avg_ns,
    median_ns, min_ns, max_ns,
    CASE timed WHEN 1 THEN 0.0 ELSE round(deviation, 1) END AS stddev_ns,
    category, name
FROM grouped
ORDER BY run, tool, total_ns DESC NULLS LAST, category, name;
