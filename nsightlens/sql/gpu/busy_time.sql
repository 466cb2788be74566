-- Span, busy and idle time of each GPU, exact to the ns, per capture window: unions of intervals, never sums.
-- A row is a device within a window of a profile; with per := 'process', a process. ncu has no timeline, so no rows.
-- The span is from the first to the last work on the GPU; of the steps, or of all that was captured, gpu_summary has the shares.
-- busy = compute + exposed communication + what memory operations and graphs add; span = busy + idle.
-- @scope profile
-- @needs gpu_work
-- @requires _gpu_states
-- @assumes All work in the window was recorded: work that the tool dropped, or that another report of the GPU holds, counts as idle.
-- @assumes A kernel's name says whether it communicates: by its family, `collective`, or by communication_pattern.
-- @assumes Kernels that a tool hid in CUDA graphs are unknown: their time is neither computation nor communication.
-- @param  per                       'device' or 'process': what the intervals are united over.
-- @param  communication_pattern     Regex of the kernel names that communicate; NULL: family `collective`.
-- @note   Counts only time between the first and the last GPU work.
-- @column run                       Run (one workload in one configuration).
-- @column tool                      nsys or kineto. Never add them up: they saw the same work.
-- @column rank                      Rank of the process; NULL where unknown or where processes share the device.
-- @column profile_id                Profile; key of `profiles`.
-- @column window_index              Capture window of the process, from 0.
-- @column process_id                OS process; NULL where several share the device.
-- @column device_id                 The physical GPU; NULL where the process used several.
-- @column span_ns                   First start to last end of kernels, memory operations and graph executions.
-- @column busy_ns                   Union of all of them.
-- @column idle_ns                   span_ns minus busy_ns.
-- @column compute_ns                Union of the kernels that do not communicate.
-- @column communication_ns          Union of the kernels that do.
-- @column overlap_ns                Time when both were running.
-- @column exposed_communication_ns  communication_ns minus overlap_ns.
-- @column memory_ns                 Union of the memory operations.
-- @column graph_ns                  Union of the graph executions whose kernels the tool did not record.
-- @balance span_ns = busy_ns + idle_ns
-- @balance communication_ns = overlap_ns + exposed_communication_ns
-- @column busy_pct                  busy_ns as a share of span_ns, to one decimal.
CREATE MACRO busy_time(per := 'device', communication_pattern := NULL) AS TABLE
WITH states AS (
    FROM _gpu_states(per := per, communication_pattern := communication_pattern)
), united AS (
    SELECT
        run, tool, profile_id, window_index, process_id, device_id,
        TRY_CAST(sum(total_ns) AS BIGINT) AS span_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (compute OR communication OR memory OR graph), 0) AS BIGINT) AS busy_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (compute), 0) AS BIGINT) AS compute_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (communication), 0) AS BIGINT) AS communication_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (compute AND communication), 0) AS BIGINT) AS overlap_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (memory), 0) AS BIGINT) AS memory_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (graph), 0) AS BIGINT) AS graph_ns
    FROM states
    GROUP BY ALL
)
SELECT
    u.run, u.tool, p.rank, u.profile_id, u.window_index, u.process_id, u.device_id,
    span_ns, busy_ns, span_ns - busy_ns AS idle_ns, compute_ns, communication_ns, overlap_ns,
    communication_ns - overlap_ns AS exposed_communication_ns, memory_ns, graph_ns,
    round(100.0 * busy_ns / nullif(span_ns, 0), 1) AS busy_pct
FROM united AS u
LEFT JOIN processes AS p ON u.process_id = p.process_id AND u.profile_id = p.profile_id
ORDER BY u.run, u.tool, p.rank, u.profile_id, u.window_index, u.process_id, u.device_id;
