-- The rules of the TensorBoard plugin: what recommendations has of them.
-- @scope run
-- @requires execution_summary, _gpu_load, gpu_summary, memory_peak, _operators, processes, ranges
-- @column run           Run.
-- @column tool          nsys or kineto.
-- @column rank          Rank of the process; NULL where unknown.
-- @column profile_id    Profile.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process; NULL for rules about the whole process.
-- @column rule          data_loader, communication, gpu_utilization, memory, tensor_cores, ddp_without_nccl or data_parallel.
-- @column subject       GPU it is about; NULL for the process.
-- @column value_pct     The number that fired it; NULL where the rule has none.
-- @column limit_pct     The limit of the rule.
-- @column advice        What could be done.
CREATE VIEW _plugin_rules AS
WITH shares AS (
    SELECT run, tool, rank, profile_id, process_id, window_index, category, 100.0 * total_ns / nullif(steps_ns, 0) AS value
    FROM execution_summary()
), gpus AS (
    SELECT *, coalesce('GPU ' || device, device_id) AS subject FROM gpu_summary
), eligible AS (
    SELECT profile_id, process_id, 100.0 * sum(eligible_ns) / nullif(sum(kernel_self_ns), 0) AS value
    FROM _operators GROUP BY profile_id, process_id
), wrapped AS (
    SELECT run, tool, profile_id, process_id, bool_or(name = 'DataParallel.forward') AS dp,
        bool_or(name = 'DistributedDataParallel.forward') AS ddp, bool_or(starts_with(name, 'nccl:') OR domain = 'NCCL') AS nccl
    FROM ranges GROUP BY run, tool, profile_id, process_id
), used AS (
    SELECT profile_id, process_id, count(DISTINCT device_id) AS gpus FROM _gpu_load GROUP BY profile_id, process_id
), fired AS (
    SELECT run, tool, rank, profile_id, process_id, window_index, category AS rule, NULL AS subject, value,
        CASE category WHEN 'data_loader' THEN 5 ELSE 10 END AS threshold,
        CASE category WHEN 'data_loader' THEN 'Steps wait for input: more DataLoader workers (num_workers), pinned memory, prefetching.'
            ELSE 'Steps wait for communication: overlap it, accumulate or compress gradients, larger batches.' END AS advice
    FROM shares WHERE (category = 'data_loader' AND value > 5) OR (category = 'communication' AND value > 10)
    UNION ALL
    SELECT run, tool, rank, profile_id, process_id, window_index, 'gpu_utilization', subject, utilization_pct, 50,
        'The GPU waits for the host: larger batches, fewer and fused kernels, CUDA graphs.'
    FROM gpus WHERE utilization_pct < 50
    UNION ALL
    SELECT run, tool, rank, profile_id, process_id, window_index, 'memory', 'GPU ' || device, peak_pct, 90,
        'Memory is nearly full: checkpoint activations, lower precision, smaller batches.'
    FROM memory_peak WHERE peak_allocated_bytes > 0.9 * memory_bytes
    UNION ALL
    SELECT g.run, g.tool, g.rank, g.profile_id, g.process_id, g.window_index, 'tensor_cores', g.subject, e.value, 0,
        'Operators that tensor cores could run use none: mixed precision (AMP), TF32.'
    FROM gpus AS g JOIN eligible AS e ON e.profile_id = g.profile_id AND e.process_id = g.process_id
    WHERE TRY_CAST(g.compute_capability AS DOUBLE) >= 7 AND g.tensor_core_pct = 0 AND e.value > 0
    UNION ALL
    SELECT w.run, w.tool, p.rank, w.profile_id, w.process_id, NULL, CASE WHEN w.dp THEN 'data_parallel' ELSE 'ddp_without_nccl' END,
        NULL, NULL, NULL, CASE WHEN w.dp THEN 'DistributedDataParallel is faster than DataParallel on several GPUs.'
            ELSE 'NCCL is the fastest backend for DistributedDataParallel on GPUs.' END
    FROM wrapped AS w JOIN used AS u USING (profile_id, process_id) LEFT JOIN processes AS p USING (profile_id, process_id)
    WHERE (w.dp AND u.gpus > 1) OR (w.ddp AND NOT coalesce(w.nccl, false))
)
SELECT run, tool, rank, profile_id, process_id, window_index, rule, subject, round(value, 2) AS value_pct, threshold AS limit_pct, advice
FROM fired
ORDER BY run, tool, rank, profile_id, process_id, window_index, rule, subject;
