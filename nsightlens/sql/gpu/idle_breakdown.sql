-- Why streams (or GPUs, or processes) were idle, per capture window: HTA's idle time breakdown, exact to the ns. A gap is
-- host wait where the next work was launched only after the gap had begun (the CPU was late), kernel wait where it was
-- launched in time and the gap is short, other where it is long (waiting for events of other streams, mostly), unlinked
-- where the launching call was not recorded. A gap ends with the next work of the stream, device or process; work that
-- overlaps leaves no gap. ncu has no timeline and no row.
-- @scope profile
-- @requires _gaps
-- @assumes The launching call is the one with the same correlation id in the process, and the tool put host and GPU on one clock.
-- @assumes A launch in time, and a gap below kernel_wait_below_ns, is the GPU's own overhead: the limit is HTA's, no measurement.
-- @assumes All work of the window was recorded: what the tool dropped, or another report of the same GPU holds, counts as idle.
-- @param  per                   'stream', 'device' or 'process': whose gaps.
-- @param  kernel_wait_below_ns  Gaps shorter than this, in ns, are kernel wait where the launch was in time.
-- @column run                   Run (one workload in one configuration).
-- @column tool                  nsys or kineto. Never add them up: they saw the same work.
-- @column rank                  Rank of the process; NULL where unknown or where processes share the device.
-- @column profile_id            Profile; key of `profiles`.
-- @column window_index          Capture window of the process, from 0.
-- @column process_id            OS process; NULL where several share the device.
-- @column device_id             The physical GPU; NULL where the process used several.
-- @column context               CUDA context id within the process; NULL but per stream.
-- @column stream                Stream id within the process; NULL but per stream, and for work outside streams.
-- @column span_ns               First start to last end of the work.
-- @column busy_ns               Union of the work.
-- @column idle_ns               span_ns minus busy_ns.
-- @column host_wait_ns          Idle because the next work was launched after the gap had begun.
-- @column kernel_wait_ns        Idle between two pieces of work, both launched in time, for less than kernel_wait_below_ns.
-- @column other_ns              Idle for longer, though the next work was launched in time.
-- @column unlinked_ns           Idle before work whose launching call was not recorded.
-- @column gaps                  Number of gaps.
-- @balance span_ns = busy_ns + idle_ns
-- @balance idle_ns = host_wait_ns + kernel_wait_ns + other_ns + unlinked_ns
CREATE MACRO idle_breakdown(per := 'stream', kernel_wait_below_ns := 30000) AS TABLE
WITH summed AS (
    SELECT
        run, tool, profile_id, window_index, by_context AS context, by_stream AS stream, by_process, by_device,
        CASE WHEN min(process_id) = max(process_id) THEN min(process_id) END AS process_id,
        CASE WHEN min(device_id) = max(device_id) THEN min(device_id) END AS device_id,
        max(end_ns) - min(start_ns) AS span_ns,
        TRY_CAST(sum(gap_ns) AS BIGINT) AS idle_ns,
        TRY_CAST(coalesce(sum(gap_ns) FILTER (reason = 'host_wait'), 0) AS BIGINT) AS host_wait_ns,
        TRY_CAST(coalesce(sum(gap_ns) FILTER (reason = 'kernel_wait'), 0) AS BIGINT) AS kernel_wait_ns,
        TRY_CAST(coalesce(sum(gap_ns) FILTER (reason = 'other'), 0) AS BIGINT) AS other_ns,
        TRY_CAST(coalesce(sum(gap_ns) FILTER (reason = 'unlinked'), 0) AS BIGINT) AS unlinked_ns,
        count(reason) AS gaps
    FROM _gaps(per := per, kernel_wait_below_ns := kernel_wait_below_ns)
    GROUP BY run, tool, profile_id, window_index, by_process, by_device, by_context, by_stream
)
SELECT
    s.run, s.tool, p.rank, s.profile_id, s.window_index, s.process_id, s.device_id, s.context, s.stream,
    span_ns, span_ns - idle_ns AS busy_ns, idle_ns, host_wait_ns, kernel_wait_ns, other_ns, unlinked_ns, gaps
FROM summed AS s
LEFT JOIN processes AS p ON s.process_id = p.process_id AND s.profile_id = p.profile_id
ORDER BY s.run, s.tool, p.rank, s.profile_id, s.window_index, s.process_id, s.device_id, s.context, s.stream;
