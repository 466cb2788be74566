-- Kernels whose duration cannot be true: a stream runs one kernel after the other, but these still run when the second kernel
-- after them begins (kernels.overrun_ns). Some drivers record a late end, or none, if the GPU stalls (seen on AMD's MI355):
-- sums of durations then count the time of other kernels twice. Busy time, steps and shares end such a kernel where the next
-- one begins; kernel totals are shown both ways (clipped_ns). A trace without such kernels has no row.
-- @scope rows
-- @assumes One kernel may begin while the one before it ends (programmatic dependent launch): only the second one after it is
--     proof.
-- @assumes Kernels of one launch (CUDA and HIP graphs) may run side by side in a stream, and are left out.
-- @assumes Clocks may err by 1 µs: Kineto wrote whole microseconds until 2024.
-- @column run            Run (one workload in one configuration).
-- @column tool           nsys or kineto. Never add them up: they saw the same launches.
-- @column rank           Rank; NULL where unknown.
-- @column profile_id     Profile; starts are comparable only within one.
-- @column window_index   Capture window of the process.
-- @column process_id     OS process.
-- @column device_id      The physical GPU.
-- @column stream         Stream of the kernel.
-- @column kernel_id      The kernel.
-- @column name           Its name as the tool prints it.
-- @column start_ns       Its start, relative to the profile's origin.
-- @column duration_ns    Its duration as recorded.
-- @column next_start_ns  Start of the next kernel in the stream.
-- @column overrun_ns     What it lasts beyond that.
CREATE VIEW kernel_overruns AS
SELECT
    run, tool, rank, profile_id, window_index, process_id, device_id, stream, kernel_id, name, start_ns, duration_ns,
    start_ns + duration_ns - overrun_ns AS next_start_ns, overrun_ns
FROM kernels
WHERE overrun_ns > 0
ORDER BY run, tool, overrun_ns DESC, profile_id, kernel_id;
