-- Kernels that page faults of unified memory held up, by name: how much of their time lies in groups of page faults of their GPU.
-- Kernels without a fault have no row. A kernel that runs beside another is charged the same faults.
-- @scope run
-- @needs page_faults
-- @assumes nsys recorded page faults of GPUs (--cuda-um-gpu-page-faults); what a kernel waits for while its GPU handles a group of
--     faults is the whole group.
-- @requires _bounded_kernels, page_faults
-- @first name, fault_pct, fault_ns, total_ns, faults, instances
-- @column run         Run (one workload in one configuration).
-- @column tool        nsys: no other tool records page faults.
-- @column total_ns    Sum of the durations of the kernels of that name, those without faults too.
-- @column fault_ns    Time of them in which a group of page faults was handled on their GPU (a union).
-- @column fault_pct   fault_ns in % of total_ns.
-- @column faults      Page faults of groups that began while one of them ran.
-- @column faulting    Kernels with faults.
-- @column instances   Kernels.
-- @column name        Kernel name.
-- @names kernel name
CREATE VIEW kernel_page_faults AS
WITH groups AS (
    SELECT profile_id, process_id, window_index, device_id, start_ns, start_ns + duration_ns AS end_ns, sum(faults) AS faults
    FROM page_faults WHERE kind = 'gpu' AND duration_ns > 0 GROUP BY ALL
), marked AS (
    SELECT *, coalesce(start_ns > max(end_ns) OVER (PARTITION BY profile_id, process_id, window_index, device_id
        ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), true) AS is_new
    FROM groups
), islands AS (
    SELECT profile_id, process_id, window_index, device_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns, sum(faults) AS faults
    FROM (SELECT *, sum(is_new::BIGINT) OVER (PARTITION BY profile_id, process_id, window_index, device_id
        ORDER BY start_ns, end_ns ROWS UNBOUNDED PRECEDING) AS island FROM marked)
    GROUP BY profile_id, process_id, window_index, device_id, island
), held AS (
    SELECT k.kernel_id, sum(least(k.start_ns + k.duration_ns, i.end_ns) - greatest(k.start_ns, i.start_ns)) AS fault_ns,
        sum(i.faults) FILTER (i.start_ns >= k.start_ns) AS faults
    FROM _bounded_kernels AS k
    JOIN islands AS i ON i.profile_id = k.profile_id AND i.process_id IS NOT DISTINCT FROM k.process_id
        AND i.window_index IS NOT DISTINCT FROM k.window_index AND i.device_id IS NOT DISTINCT FROM k.device_id
        AND k.start_ns < i.end_ns AND k.start_ns + k.duration_ns > i.start_ns
    WHERE k.tool <> 'ncu'
    GROUP BY k.kernel_id
)
SELECT k.run, k.tool, TRY_CAST(sum(k.duration_ns) AS BIGINT) AS total_ns, TRY_CAST(sum(h.fault_ns) AS BIGINT) AS fault_ns,
    round(100.0 * sum(h.fault_ns) / nullif(sum(k.duration_ns), 0), 1) AS fault_pct,
    TRY_CAST(coalesce(sum(h.faults), 0) AS BIGINT) AS faults, count(h.kernel_id) AS faulting, count(*) AS instances, k.name
FROM _bounded_kernels AS k LEFT JOIN held AS h ON h.kernel_id = k.kernel_id
WHERE k.tool <> 'ncu'
GROUP BY k.run, k.tool, k.name
HAVING count(h.kernel_id) > 0
ORDER BY k.run, k.tool, fault_ns DESC, k.name;
