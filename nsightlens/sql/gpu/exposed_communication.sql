-- Communication kernels by name: how much of each one's time no kernel computed on the GPU (or in the process), per capture
-- window. Kernels that communicate at the same time count each for itself: their union stands in comm_compute_overlap.
-- A sweep: the time computed before each start and end of a communication kernel is a running sum over sorted edges.
-- ncu has no timeline and no row.
-- @scope profile
-- @requires _stream_work
-- @assumes A kernel's name says whether it communicates: by its family, `collective`, or by communication_pattern.
-- @assumes Only kernels hide communication: copies and CUDA graphs of unknown kernels do not, which may overstate exposure.
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
    SELECT profile_id, window_index, owner, start_ns AS at_ns, CASE WHEN communicates THEN 0 ELSE 1 END AS weight FROM kernels_at
    UNION ALL
    SELECT profile_id, window_index, owner, end_ns, CASE WHEN communicates THEN 0 ELSE -1 END FROM kernels_at
), instants AS (
    SELECT profile_id, window_index, owner, at_ns, sum(weight) AS change
    FROM edges
    GROUP BY ALL
), lengths AS (
    SELECT *, CASE WHEN sum(change) OVER upto > 0 THEN lead(at_ns) OVER upto - at_ns ELSE 0 END AS computed_ns
    FROM instants
    WINDOW upto AS (PARTITION BY profile_id, window_index, owner ORDER BY at_ns ROWS UNBOUNDED PRECEDING)
), before AS (
    SELECT *, TRY_CAST(sum(computed_ns) OVER (PARTITION BY profile_id, window_index, owner ORDER BY at_ns
        ROWS UNBOUNDED PRECEDING) - computed_ns AS BIGINT) AS before_ns
    FROM lengths
), communication AS (
    SELECT k.*, ended.before_ns - begun.before_ns AS overlapped_ns
    FROM kernels_at AS k
    JOIN before AS begun ON k.profile_id = begun.profile_id AND k.window_index IS NOT DISTINCT FROM begun.window_index
        AND k.owner IS NOT DISTINCT FROM begun.owner AND k.start_ns = begun.at_ns
    JOIN before AS ended ON k.profile_id = ended.profile_id AND k.window_index IS NOT DISTINCT FROM ended.window_index
        AND k.owner IS NOT DISTINCT FROM ended.owner AND k.end_ns = ended.at_ns
    WHERE k.communicates
)
SELECT
    k.run, k.tool, p.rank, k.profile_id, k.window_index, k.process_id, k.device_id, count(*) AS instances,
    TRY_CAST(sum(k.end_ns - k.start_ns) AS BIGINT) AS total_ns, TRY_CAST(sum(k.overlapped_ns) AS BIGINT) AS overlapped_ns,
    TRY_CAST(sum(k.end_ns - k.start_ns - k.overlapped_ns) AS BIGINT) AS exposed_ns,
    round(100.0 * sum(k.end_ns - k.start_ns - k.overlapped_ns) / nullif(sum(k.end_ns - k.start_ns), 0), 2) AS exposed_pct,
    k.name
FROM communication AS k
LEFT JOIN processes AS p ON k.process_id = p.process_id AND k.profile_id = p.profile_id
GROUP BY k.run, k.tool, p.rank, k.profile_id, k.window_index, k.process_id, k.device_id, k.name
ORDER BY k.run, k.tool, p.rank, k.profile_id, k.window_index, k.process_id, k.device_id, exposed_ns DESC, k.name;
