-- The expert rules of nsys that hold of a process as a whole, with the share of time that they are about. That is the time from the
-- first to the last GPU work of the process, in all its windows; calls are summed over threads.
-- @scope run
-- @requires _gpu_work, _idle_by_call, cuda_memcpy_async, cuda_memcpy_sync, cuda_memset_sync, _gaps, gpu_time_util, processes, devices
-- @column run           Run.
-- @column tool          nsys or kineto.
-- @column rank          Rank of the process; NULL where unknown.
-- @column profile_id    Profile.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process; NULL for rules about the whole process.
-- @column rule          cuda_memcpy_async, cuda_memcpy_sync, cuda_memset_sync, cuda_api_sync, gpu_gaps or gpu_time_util.
-- @column subject       GPU it is about; NULL for the process.
-- @column value_pct     The number that fired it.
-- @column limit_pct     The limit of the rule.
-- @column advice        What could be done.
CREATE VIEW _nsys_rules AS
WITH rules (rule, threshold, advice) AS (
    VALUES ('cuda_memcpy_async', 1, 'Asynchronous copies from or to pageable memory hold up the host: pin the memory (pin_memory=True).'),
        ('cuda_memcpy_sync', 1, 'Copies hold up the host until they are done: cudaMemcpyAsync with pinned memory.'),
        ('cuda_memset_sync', 1, 'Sets of host memory hold up the host until they are done: cudaMemsetAsync.'),
        ('cuda_api_sync', 1, 'The GPU idles while the host waits for it: synchronise less, or with events (idle_causes has what it costs).'),
        ('gpu_gaps', 0, 'The GPU idles for 0.5 s or more at a time: gpu_gaps has when, idle_causes why.'),
        ('gpu_time_util', 10, 'The GPU is under 50 % busy for long stretches: gpu_time_util has when.')
), windows AS (
    SELECT run, tool, profile_id, process_id, max(end_ns) - min(start_ns) AS span_ns
    FROM _gpu_work GROUP BY run, tool, profile_id, process_id, window_index
), spans AS (
    SELECT run, tool, profile_id, process_id, sum(span_ns) AS span_ns FROM windows GROUP BY run, tool, profile_id, process_id
), seen AS (
    SELECT profile_id, process_id, NULL AS device_id, 'cuda_memcpy_async' AS rule, call_ns AS lasted_ns FROM cuda_memcpy_async
    UNION ALL
    SELECT profile_id, process_id, NULL, 'cuda_memcpy_sync', call_ns FROM cuda_memcpy_sync
    UNION ALL
    SELECT profile_id, process_id, NULL, 'cuda_memset_sync', call_ns FROM cuda_memset_sync
    UNION ALL
    SELECT profile_id, process_id, NULL, 'cuda_api_sync', idle_ns FROM _idle_by_call
    WHERE regexp_matches(name, '^(cuda|cu|hip)(device|ctx|stream)synchronize', 'i')
    UNION ALL
    SELECT profile_id, owner, device_id, 'gpu_gaps', end_ns - start_ns FROM _gaps(per := 'process_device', min_gap_ns := 500000000)
    UNION ALL
    SELECT profile_id, process_id, device_id, 'gpu_time_util', duration_ns FROM gpu_time_util()
), summed AS (
    SELECT profile_id, process_id, device_id, rule, sum(lasted_ns) AS total_ns FROM seen
    GROUP BY profile_id, process_id, device_id, rule
), named AS (
    SELECT profile_id, process_id, device_id, min(device) AS device FROM devices GROUP BY profile_id, process_id, device_id
)
SELECT s.run, s.tool, p.rank, s.profile_id, s.process_id, NULL::INTEGER AS window_index, r.rule,
    coalesce('GPU ' || n.device, f.device_id) AS subject, round(100.0 * f.total_ns / s.span_ns, 2) AS value_pct,
    r.threshold AS limit_pct, r.advice
FROM summed AS f
JOIN spans AS s ON s.profile_id = f.profile_id AND s.process_id = f.process_id
JOIN rules AS r ON r.rule = f.rule
LEFT JOIN named AS n ON n.profile_id = f.profile_id AND n.process_id = f.process_id AND n.device_id = f.device_id
LEFT JOIN processes AS p ON p.profile_id = s.profile_id AND p.process_id = s.process_id
WHERE s.span_ns > 0 AND 100.0 * f.total_ns > r.threshold * s.span_ns
ORDER BY s.run, s.tool, p.rank, s.profile_id, s.process_id, r.rule, subject;
