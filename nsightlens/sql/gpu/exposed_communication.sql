-- Communication by name of the kernel, or of the copy that a collective runs as: how much of it ran without a compute kernel on the GPU (or in the process), per capture
-- window. Kernels that communicate at the same time count separately: comm_compute_overlap has their union.
-- ncu has no timeline, so no rows.
-- @scope profile
-- @needs communication
-- @requires _overlap_by_name, processes
-- @assumes A kernel's name says whether it communicates: by its family, `collective`, or by communication_pattern.
-- @assumes Only kernels hide communication: other copies and CUDA graphs of unknown kernels do not, which may overstate exposure.
-- @param  per                    'device' or 'process': where a computing kernel hides the communication.
-- @param  communication_pattern  Regex of the kernel names that communicate; NULL: family `collective`. HTA takes
--     '^nccl.*Kernel'.
-- @first rank, name, exposed_ns, exposed_pct, total_ns, instances
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
-- @names kernel name
-- @balance total_ns = overlapped_ns + exposed_ns
CREATE MACRO exposed_communication(per := 'device', communication_pattern := NULL) AS TABLE
WITH communication AS (
    SELECT k.run, k.tool, p.rank, k.profile_id, k.window_index, k.process_id, k.device_id, k.name,
        TRY_CAST(sum(k.instances) AS BIGINT) AS instances, TRY_CAST(sum(k.total_ns) AS BIGINT) AS total_ns,
        TRY_CAST(sum(k.beside_compute) AS BIGINT) AS overlapped_ns
    FROM _overlap_by_name(per := CASE per WHEN 'process_device' THEN 'neither' ELSE per END,
        communication_pattern := communication_pattern) AS k
    LEFT JOIN processes AS p ON k.process_id = p.process_id AND k.profile_id = p.profile_id
    WHERE k.communicates
    GROUP BY k.run, k.tool, p.rank, k.profile_id, k.window_index, k.process_id, k.device_id, k.name
)
SELECT
    run, tool, rank, profile_id, window_index, process_id, device_id, instances, total_ns, overlapped_ns,
    total_ns - overlapped_ns AS exposed_ns,
    round(100.0 * (total_ns - overlapped_ns) / nullif(total_ns, 0), 2) AS exposed_pct,
    name
FROM communication
ORDER BY run, tool, rank, profile_id, window_index, process_id, device_id, exposed_ns DESC, name;
