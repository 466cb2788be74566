-- Kernels by the call that launched them, per process, thread and device: the rows of `nsys stats cuda_kern_exec_sum`, plus
-- percentiles of the whole. kernel_launch_trace explains each time. Launches that were not recorded are missing, so the kernel
-- totals can be below those of kernel_summary.
-- @scope run
-- @needs gpu_work
-- @alias cuda_kern_exec_sum
-- @requires _kernel_launches
-- @assumes The launching call is the one with the same correlation id in the process, and the tool put host and GPU on one clock.
-- @assumes A kernel that began before its call had ended did not wait: such launches count in no queue figure.
-- @column run              Run (one workload in one configuration).
-- @column tool             nsys or kineto. Never add them up: they saw the same launches.
-- @column rank             Rank of the process; NULL where unknown.
-- @column process_id       OS process.
-- @column thread           OS thread id of the caller.
-- @column device           Device ordinal within the process.
-- @column instances        Kernels.
-- @column queued           Kernels that began after the call had ended; the queue times are theirs.
-- @column total_avg_ns     Mean of the whole: call, queue and kernel; to one decimal, as all means.
-- @column total_median_ns  Median of the whole.
-- @column total_min_ns     Shortest.
-- @column total_max_ns     Longest.
-- @column total_stddev_ns  Sample standard deviation (n - 1), to one decimal; 0 for a single kernel.
-- @column total_p5_ns      5th percentile, interpolated linearly between the two nearest.
-- @column total_p95_ns     95th percentile, interpolated the same way.
-- @column api_avg_ns       Mean duration of the call.
-- @column api_median_ns    Median duration of the call.
-- @column queue_avg_ns     Mean queue time; NULL where no kernel queued.
-- @column queue_median_ns  Median queue time.
-- @column queue_max_ns     Longest queue time.
-- @column kernel_avg_ns    Mean duration of the kernel.
-- @column kernel_median_ns Median duration of the kernel.
-- @column kernel_ns        Sum of the durations of the kernels.
-- @column api              Function that launched them.
-- @column name             Kernel name as the tool prints it.
-- @names kernel name
CREATE VIEW kernel_launch_summary AS
SELECT
    run, tool, rank, process_id, thread, device,
    count(*) AS instances,
    count(queue_ns) AS queued,
    round(avg(total_ns), 1) AS total_avg_ns,
    quantile_cont(total_ns, [0.05, 0.5, 0.95])[2] AS total_median_ns,
    min(total_ns) AS total_min_ns,
    max(total_ns) AS total_max_ns,
    CASE count(total_ns) WHEN 1 THEN 0.0 ELSE round(stddev_samp(total_ns), 1) END AS total_stddev_ns,
    round(quantile_cont(total_ns, [0.05, 0.5, 0.95])[1], 1) AS total_p5_ns,
    round(quantile_cont(total_ns, [0.05, 0.5, 0.95])[3], 1) AS total_p95_ns,
    round(avg(api_ns), 1) AS api_avg_ns,
    quantile_cont(api_ns, 0.5) AS api_median_ns,
    round(avg(queue_ns), 1) AS queue_avg_ns,
    quantile_cont(queue_ns, 0.5) AS queue_median_ns,
    max(queue_ns) AS queue_max_ns,
    round(avg(kernel_ns), 1) AS kernel_avg_ns,
    quantile_cont(kernel_ns, 0.5) AS kernel_median_ns,
    TRY_CAST(sum(kernel_ns) AS BIGINT) AS kernel_ns,
    api, name
FROM _kernel_launches
GROUP BY run, tool, rank, process_id, thread, device, api, name
ORDER BY run, tool, rank, kernel_ns DESC NULLS LAST, process_id, thread, device, api, name;
