-- What was captured: one row per profile, with its tool, ranks, GPUs, rows, span and problems.
-- @scope run
-- @assumes Rows are what could be read: events_lost counts known losses, and is NULL where losses cannot be known.
-- @first tool, ranks, kernels, kernel_ns, gpu_span_ns, memory_ops, errors, warnings
-- @column run              Run (one workload in one configuration).
-- @column tool             Profiler: nsys, ncu or kineto; steps for step times that the workload wrote down itself.
-- @column profile_id       Profile; key of `profiles`.
-- @column format           Format and generation of the file.
-- @column tool_version     Version of the tool that wrote it.
-- @column ranks            Ranks of its processes, in natural order; empty where none is known.
-- @column processes        OS processes.
-- @column hosts            Host names.
-- @column gpus             Product names of the GPUs that worked, `unknown` among them where some have none; NULL where all have none.
-- @column windows          Capture windows.
-- @column kernels          Kernel rows.
-- @column memory_ops       Memory operations.
-- @column api_calls        CUDA or HIP API calls.
-- @column ranges           CPU-side ranges.
-- @column kernel_ns        Sum of the kernel durations; NULL where none is known.
-- @column gpu_span_ns      First start to last end of GPU work, gaps between windows included; NULL for ncu.
-- @column origin_epoch_ns  Epoch time of start_ns = 0; NULL where the file lacks it.
-- @column events_lost      Records known to be damaged beyond recovery; NULL where not countable.
-- @column truncated        A file ends before its end.
-- @column simulated        The capture was simulated.
-- @column errors           Diagnostics of severity error, by number of rows.
-- @column warnings         Diagnostics of severity warning, by number of rows.
-- @column files            Files it was read from.
-- @column file             Name of the first of them.
CREATE VIEW profile_overview AS
WITH process AS (
    SELECT profile_id, list(DISTINCT rank ORDER BY rank) FILTER (rank IS NOT NULL) AS ranks,
        count(*) AS processes, string_agg(DISTINCT host, ', ' ORDER BY host) AS hosts
    FROM processes GROUP BY profile_id
), gpu AS (
    SELECT profile_id, CASE WHEN count(gpu) > 0 THEN string_agg(DISTINCT coalesce(gpu, 'unknown'), ', ' ORDER BY coalesce(gpu, 'unknown')) END AS gpus
    FROM (
        SELECT DISTINCT profile_id, gpu FROM kernels
        UNION SELECT DISTINCT profile_id, gpu FROM memory_ops
        UNION SELECT DISTINCT profile_id, gpu FROM graph_executions
    ) GROUP BY profile_id
), trouble AS (
    SELECT profile_id, count(*) FILTER (severity = 'error') AS errors,
        count(*) FILTER (severity = 'warning') AS warnings
    FROM diagnostics GROUP BY profile_id
), file AS (
    SELECT profile_id, count(*) AS files, regexp_extract(min(path), '[^/]*$') AS file FROM files GROUP BY profile_id
)
SELECT
    run, tool, profile_id, format, tool_version, array_to_string(ranks, ', ') AS ranks,
    coalesce(processes, 0) AS processes, hosts, gpus, windows, kernels, memory_ops, api_calls, ranges, kernel_ns,
    gpu_last_ns - gpu_first_ns AS gpu_span_ns, origin_epoch_ns, events_lost, truncated, simulated,
    coalesce(errors, 0) AS errors, coalesce(warnings, 0) AS warnings, coalesce(files, 0) AS files, file
FROM profiles
LEFT JOIN process USING (profile_id)
LEFT JOIN gpu USING (profile_id)
LEFT JOIN trouble USING (profile_id)
LEFT JOIN file USING (profile_id)
ORDER BY run, tool, ranks, profile_id;
