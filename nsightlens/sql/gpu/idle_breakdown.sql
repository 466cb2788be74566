-- Why streams (or GPUs, or processes) were idle, per capture window: HTA's idle time breakdown, exact to the ns. A gap is host
-- wait if the next work was launched only after the gap began: the CPU was late. If it was launched in time, a short gap is
-- kernel wait and a long one is other (mostly waits for events of other streams). A gap is unlinked if the launching call was
-- not recorded. A gap ends with the next work of the stream, device or process; overlapping work leaves no gap. ncu has no
-- timeline, so no rows.
-- @scope profile
-- @alias get_idle_time_breakdown
-- @needs gpu_work
-- @requires _gpu_work, _stream_work, processes
-- @assumes The launching call is the one with the same correlation id in the process, and the tool put host and GPU on one clock.
-- @assumes After a launch in time, a gap below kernel_wait_below_ns is GPU overhead: the limit is HTA's, not measured.
-- @assumes All work in the window was recorded: work that the tool dropped, or that another report of the GPU holds, counts as idle.
-- @param  per                   'stream', 'device' or 'process': whose gaps.
-- @param  kernel_wait_below_ns  Gaps shorter than this, in ns, are kernel wait where the launch was in time.
-- @note   Counts only time between the first and the last GPU work.
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
-- @first idle_ns, host_wait_ns, kernel_wait_ns, other_ns, stream, unlinked_ns, span_ns, busy_ns
-- @balance span_ns = busy_ns + idle_ns
-- @balance idle_ns = host_wait_ns + kernel_wait_ns + other_ns + unlinked_ns
CREATE MACRO idle_breakdown(per := 'stream', kernel_wait_below_ns := 30000) AS TABLE
WITH tracks AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY profile_id, window_index, by_process, by_device, context, stream) AS track
    FROM (
        SELECT run, tool, profile_id, window_index,
            CASE WHEN per IN ('stream', 'process') THEN process_id WHEN per <> 'device'
                THEN error('per is stream, device or process') END AS by_process,
            CASE WHEN per IN ('stream', 'device') THEN device_id END AS by_device,
            CASE WHEN per = 'stream' THEN context END AS context, CASE WHEN per = 'stream' THEN stream END AS stream,
            CASE WHEN min(process_id) = max(process_id) THEN min(process_id) END AS process_id,
            CASE WHEN min(device_id) = max(device_id) THEN min(device_id) END AS device_id
        FROM _gpu_work
        GROUP BY ALL
    )
), work AS NOT MATERIALIZED (
    SELECT t.track, w.start_ns, w.end_ns, w.call_start_ns
    FROM _stream_work AS w
    JOIN tracks AS t ON t.profile_id = w.profile_id AND t.run = w.run AND t.tool = w.tool
        AND t.window_index IS NOT DISTINCT FROM w.window_index
        AND t.by_process IS NOT DISTINCT FROM CASE WHEN per IN ('stream', 'process') THEN w.process_id END
        AND t.by_device IS NOT DISTINCT FROM CASE WHEN per IN ('stream', 'device') THEN w.device_id END
        AND t.context IS NOT DISTINCT FROM CASE WHEN per = 'stream' THEN w.context END
        AND t.stream IS NOT DISTINCT FROM CASE WHEN per = 'stream' THEN w.stream END
    ORDER BY t.track, w.start_ns, w.end_ns, w.kind, w.work_id
), reached AS NOT MATERIALIZED (
    -- streaming windows, as in _gpu_states: the track above the end, so that each track begins with a greater one
    SELECT *, max((track::HUGEINT << 64) + end_ns) OVER (ROWS UNBOUNDED PRECEDING) AS reach FROM work
), gaps AS NOT MATERIALIZED (
    SELECT track, start_ns, end_ns, call_start_ns,
        CASE WHEN lag(track) OVER () = track THEN (lag(reach) OVER () - (track::HUGEINT << 64))::BIGINT END AS busy_until_ns
    FROM reached
), reasoned AS NOT MATERIALIZED (
    SELECT track, start_ns, end_ns, greatest(start_ns - busy_until_ns, 0) AS gap_ns,
        CASE
            WHEN busy_until_ns IS NULL OR start_ns <= busy_until_ns THEN NULL
            WHEN call_start_ns IS NULL THEN 4
            WHEN call_start_ns > busy_until_ns THEN 1
            WHEN start_ns - busy_until_ns < kernel_wait_below_ns THEN 2
            ELSE 3
        END AS reason
    FROM gaps
), summed AS (
    SELECT
        track, max(end_ns) - min(start_ns) AS span_ns, TRY_CAST(coalesce(sum(gap_ns), 0) AS BIGINT) AS idle_ns,
        TRY_CAST(coalesce(sum(gap_ns) FILTER (reason = 1), 0) AS BIGINT) AS host_wait_ns,
        TRY_CAST(coalesce(sum(gap_ns) FILTER (reason = 2), 0) AS BIGINT) AS kernel_wait_ns,
        TRY_CAST(coalesce(sum(gap_ns) FILTER (reason = 3), 0) AS BIGINT) AS other_ns,
        TRY_CAST(coalesce(sum(gap_ns) FILTER (reason = 4), 0) AS BIGINT) AS unlinked_ns,
        count(reason) AS gaps
    FROM reasoned
    GROUP BY track
)
SELECT
    t.run, t.tool, p.rank, t.profile_id, t.window_index, t.process_id, t.device_id, t.context, t.stream,
    span_ns, span_ns - idle_ns AS busy_ns, idle_ns, host_wait_ns, kernel_wait_ns, other_ns, unlinked_ns, gaps
FROM summed AS s
JOIN tracks AS t USING (track)
LEFT JOIN processes AS p ON t.process_id = p.process_id AND t.profile_id = p.profile_id
ORDER BY t.run, t.tool, p.rank, t.profile_id, t.window_index, t.process_id, t.device_id, t.context, t.stream;
