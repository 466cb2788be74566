-- Each piece of GPU work with the time before it in which its stream (or device, or process) had nothing to do, and why.
-- @scope rows
-- @requires _stream_work
-- @param  per                   'stream', 'device' or 'process': whose work ends a gap.
-- @param  kernel_wait_below_ns  A gap shorter than this, whose work was launched in time, is the wait between two kernels.
-- @column run                   Run.
-- @column tool                  nsys or kineto.
-- @column profile_id            Profile.
-- @column window_index          Capture window.
-- @column by_process            OS process; NULL per device.
-- @column by_device             The physical GPU; NULL per process.
-- @column by_context            CUDA context; NULL but per stream.
-- @column by_stream             Stream; NULL but per stream.
-- @column process_id            OS process of the work.
-- @column device_id             GPU of the work.
-- @column start_ns              Start of the work.
-- @column end_ns                End of the work.
-- @column before_end_ns         End of the work that began last before it.
-- @column gap_ns                Time without work before it; 0 where there was none.
-- @column reason                host_wait, kernel_wait, other or unlinked; NULL where there is no gap.
CREATE MACRO _gaps(per := 'stream', kernel_wait_below_ns := 30000) AS TABLE
WITH owned AS (
    SELECT
        *,
        CASE WHEN per IN ('stream', 'process') THEN process_id WHEN per <> 'device'
            THEN error('per is stream, device or process') END AS by_process,
        CASE WHEN per IN ('stream', 'device') THEN device_id END AS by_device,
        CASE WHEN per = 'stream' THEN context END AS by_context,
        CASE WHEN per = 'stream' THEN stream END AS by_stream
    FROM _stream_work
), preceded AS (
    SELECT
        *,
        max(end_ns) OVER (earlier ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until_ns,
        lag(end_ns) OVER earlier AS before_end_ns
    FROM owned
    WINDOW earlier AS (PARTITION BY profile_id, window_index, by_process, by_device, by_context, by_stream
        ORDER BY start_ns, end_ns, kind, work_id)
)
SELECT
    run, tool, profile_id, window_index, by_process, by_device, by_context, by_stream, process_id, device_id,
    start_ns, end_ns, before_end_ns,
    greatest(start_ns - coalesce(busy_until_ns, start_ns), 0) AS gap_ns,
    CASE
        WHEN busy_until_ns IS NULL OR start_ns <= busy_until_ns THEN NULL
        WHEN call_start_ns IS NULL THEN 'unlinked'
        WHEN call_start_ns > busy_until_ns THEN 'host_wait'
        WHEN start_ns - busy_until_ns < kernel_wait_below_ns THEN 'kernel_wait'
        ELSE 'other'
    END AS reason
FROM preceded;
