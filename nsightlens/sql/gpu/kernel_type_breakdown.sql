-- What kinds of work each GPU (or process) ran at the same time: the seven exclusive classes of compute, communication and
-- memory, CUDA graphs whose kernels are unknown, and idle, per capture window. The nine rows of a window sum to its span;
-- a class that did not occur has 0 ns. HTA's kernel type table, exact to the ns. ncu has no timeline, so no rows.
-- @scope profile
-- @needs gpu_work
-- @requires _gpu_states
-- @assumes All work in the window was recorded: work that the tool dropped, or that another report of the GPU holds, counts as idle.
-- @assumes A kernel's name says whether it communicates: by its family, `collective`, or by communication_pattern.
-- @assumes Kernels that a tool hid in CUDA graphs are unknown: their time is neither computation nor communication.
-- @param  per                    'device' or 'process': what the intervals are united over.
-- @param  communication_pattern  Regex of the kernel names that communicate; NULL: family `collective`. HTA takes '^nccl.*Kernel'.
-- @column run                    Run (one workload in one configuration).
-- @column tool                   nsys or kineto. Never add them up: they saw the same work.
-- @column rank                   Rank of the process; NULL where unknown or where processes share the device.
-- @column profile_id             Profile; key of `profiles`.
-- @column window_index           Capture window of the process, from 0.
-- @column process_id             OS process; NULL where several share the device.
-- @column device_id              The physical GPU; NULL where the process used several.
-- @column class                  compute, communication, memory, all that ran at once joined by +; unknown (only graphs); idle.
-- @column total_ns               Time in which exactly that was running.
-- @column span_ns                First start to last end of all work of the window.
-- @column span_pct               total_ns as a share of span_ns, to two decimals.
-- @column busy_pct               total_ns as a share of span_ns without idle, to two decimals; NULL for idle.
-- @balance span_ns = total_ns per run, tool, profile_id, window_index, process_id, device_id
CREATE MACRO kernel_type_breakdown(per := 'device', communication_pattern := NULL) AS TABLE
WITH classes AS (
    SELECT
        *,
        CASE
            WHEN compute OR communication OR memory THEN concat_ws('+', CASE WHEN compute THEN 'compute' END,
                CASE WHEN communication THEN 'communication' END, CASE WHEN memory THEN 'memory' END)
            WHEN graph THEN 'unknown' ELSE 'idle'
        END AS class
    FROM _gpu_states(per := per, communication_pattern := communication_pattern)
), owners AS (
    SELECT run, tool, profile_id, window_index, process_id, device_id, TRY_CAST(sum(total_ns) AS BIGINT) AS span_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (class <> 'idle'), 0) AS BIGINT) AS busy_ns
    FROM classes
    GROUP BY ALL
), named(class_order, class) AS (
    VALUES (1, 'compute'), (2, 'communication'), (3, 'memory'), (4, 'compute+communication'), (5, 'compute+memory'),
        (6, 'communication+memory'), (7, 'compute+communication+memory'), (8, 'unknown'), (9, 'idle')
), filled AS (
    SELECT o.*, n.class_order, n.class, TRY_CAST(coalesce(sum(c.total_ns), 0) AS BIGINT) AS total_ns
    FROM owners AS o
    CROSS JOIN named AS n
    LEFT JOIN classes AS c ON c.class = n.class AND c.profile_id IS NOT DISTINCT FROM o.profile_id
        AND c.window_index IS NOT DISTINCT FROM o.window_index AND c.process_id IS NOT DISTINCT FROM o.process_id
        AND c.device_id IS NOT DISTINCT FROM o.device_id
    GROUP BY ALL
)
SELECT
    f.run, f.tool, p.rank, f.profile_id, f.window_index, f.process_id, f.device_id, f.class, f.total_ns, f.span_ns,
    round(100.0 * f.total_ns / nullif(f.span_ns, 0), 2) AS span_pct,
    CASE WHEN f.class <> 'idle' THEN round(100.0 * f.total_ns / nullif(f.busy_ns, 0), 2) END AS busy_pct
FROM filled AS f
LEFT JOIN processes AS p ON f.process_id = p.process_id AND f.profile_id = p.profile_id
ORDER BY f.run, f.tool, p.rank, f.profile_id, f.window_index, f.process_id, f.device_id, f.class_order;
