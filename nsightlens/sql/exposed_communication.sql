-- Communication kernels by name: how much of each one's time no kernel computed on the GPU (or in the process), per capture
-- window. Kernels that communicate at the same time count each for itself: their union stands in comm_compute_overlap.
-- A sweep: the time computed before each start and end of a communication kernel is a running sum over sorted edges.
-- ncu has no timeline and no row.
-- @requires _stream_work
-- @param  per                    'device' or 'process': where a computing kernel hides the communication.
-- @param  communication_pattern  Regex of the kernel names that communicate; NULL: family `collective`. HTA takes '^nccl.*Kernel'.
-- @column run                    Run (one workload in one configuration).
-- @column tool                   nsys or kineto. Never add them up: they saw the same work.
-- @column rank                   Rank of the process; NULL where unknown.
-- @column profile_id             Profile; key of `profiles`.
-- @column window_index           Capture window of the process, from 0.
-- @column process_id             OS process.
-- @column device_id              The physical GPU.
-- @column instances              Communication kernels of that name.
-- @column total_ns               Sum of their durations.
-- @column overlapped_ns          Part of it in which a kernel computed.
-- @column exposed_ns             The rest.
-- @column exposed_pct            exposed_ns as a share of total_ns, to two decimals.
-- @column name                   Kernel name as the tool prints it.
-- @balance total_ns = overlapped_ns + exposed_ns
CREATE MACRO exposed_communication(per := 'device', communication_pattern := NULL) AS TABLE
WITH kernels_at AS (
    SELECT
        *,
        CASE per WHEN 'device' THEN device_id WHEN 'process' THEN process_id ELSE error('per is device or process') END AS owner,
        CASE WHEN communication_pattern IS NULL THEN coalesce(family = 'collective', false)
            ELSE coalesce(regexp_matches(name, communication_pattern), false) END AS communicates
    FROM _stream_work
    WHERE kind = 'kernel'
), edges AS (
    SELECT profile_id, window_index, owner, start_ns AS at_ns, CASE WHEN communicates THEN 0 ELSE 1 END AS weight,
        CASE WHEN communicates THEN work_id END AS work_id
    FROM kernels_at
    UNION ALL
    SELECT profile_id, window_index, owner, end_ns, CASE WHEN communicates THEN 0 ELSE -1 END,
        CASE WHEN communicates THEN work_id END
    FROM kernels_at
), lengths AS (
    SELECT *, CASE WHEN sum(weight) OVER upto > 0 THEN lead(at_ns) OVER upto - at_ns ELSE 0 END AS computed_ns
    FROM edges
    WINDOW upto AS (PARTITION BY profile_id, window_index, owner ORDER BY at_ns RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
), before AS (
    SELECT *, coalesce(sum(computed_ns) OVER (PARTITION BY profile_id, window_index, owner ORDER BY at_ns
        RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before_ns
    FROM lengths
), hidden AS (
    SELECT profile_id, work_id, max(before_ns) - min(before_ns) AS overlapped_ns
    FROM before
    WHERE work_id IS NOT NULL
    GROUP BY profile_id, work_id
)
SELECT
    k.run, k.tool, p.rank, k.profile_id, k.window_index, k.process_id, k.device_id, count(*) AS instances,
    TRY_CAST(sum(k.end_ns - k.start_ns) AS BIGINT) AS total_ns, TRY_CAST(sum(o.overlapped_ns) AS BIGINT) AS overlapped_ns,
    TRY_CAST(sum(k.end_ns - k.start_ns) - sum(o.overlapped_ns) AS BIGINT) AS exposed_ns,
    round(100.0 * (sum(k.end_ns - k.start_ns) - sum(o.overlapped_ns)) / nullif(sum(k.end_ns - k.start_ns), 0), 2) AS exposed_pct,
    k.name
FROM kernels_at AS k
JOIN hidden AS o ON k.profile_id = o.profile_id AND k.work_id = o.work_id
LEFT JOIN processes AS p ON k.process_id = p.process_id AND k.profile_id = p.profile_id
GROUP BY k.run, k.tool, p.rank, k.profile_id, k.window_index, k.process_id, k.device_id, k.name
ORDER BY k.run, k.tool, p.rank, k.profile_id, k.window_index, k.process_id, k.device_id, exposed_ns DESC, k.name;
