-- How much of the communication ran while kernels computed, per GPU (or process) and capture window: unions of intervals,
-- exact to the ns. HTA's communication computation overlap. ncu has no timeline, so no rows.
-- @scope profile
-- @alias get_comm_comp_overlap
-- @needs gpu_work
-- @requires busy_time
-- @assumes A kernel's name says whether it communicates: by its family, `collective`, or by communication_pattern. A copy is
--     communication under an operator or range that communicates, where there is no pattern.
-- @assumes Kernels that a tool hid in CUDA graphs are unknown: their time is neither computation nor communication.
-- @assumes Concurrent kernels overlap even if they slow each other down: that cost is not known.
-- @param  per                       'device' or 'process': what the intervals are united over.
-- @param  communication_pattern     Regex of the kernel names that communicate; NULL: family `collective`. HTA takes
--     '^nccl.*Kernel'.
-- @note   Of kernels alone, waiting for other ranks included: distributed_overview separates waiting from transfer, and also counts
--     operators that communicate, so that more overlaps.
-- @column run                       Run (one workload in one configuration).
-- @column tool                      nsys or kineto. Never add them up: they saw the same work.
-- @column rank                      Rank of the process; NULL where unknown or where processes share the device.
-- @column profile_id                Profile; key of `profiles`.
-- @column window_index              Capture window of the process, from 0.
-- @column process_id                OS process; NULL where several share the device.
-- @column device_id                 The physical GPU; NULL where the process used several.
-- @column compute_ns                Union of the kernels that do not communicate.
-- @column communication_ns          Union of the kernels that do.
-- @column overlap_ns                Time when both were running.
-- @column exposed_communication_ns  Time when only communication was running, of the two.
-- @column overlap_pct               overlap_ns as a share of communication_ns, to two decimals; NULL where nothing communicated.
-- @column exposed_pct               exposed_communication_ns as a share of the window's span, to two decimals.
-- @balance communication_ns = overlap_ns + exposed_communication_ns
CREATE MACRO comm_compute_overlap(per := 'device', communication_pattern := NULL) AS TABLE
SELECT
    run, tool, rank, profile_id, window_index, process_id, device_id,
    compute_ns, communication_ns, overlap_ns, exposed_communication_ns,
    round(100.0 * overlap_ns / nullif(communication_ns, 0), 2) AS overlap_pct,
    round(100.0 * exposed_communication_ns / nullif(span_ns, 0), 2) AS exposed_pct
FROM busy_time(per := per, communication_pattern := communication_pattern)
ORDER BY run, tool, rank, profile_id, window_index, process_id, device_id;
