-- Each kernel with the call that launched it, in order of launch: the rows of `nsys stats cuda_kern_exec_trace`.
-- total = api + queue + kernel time where the kernel began after the call had ended. A kernel that began earlier did
-- not queue: queue_ns is NULL. One graph launch has a row for each of its kernels. Kernels whose launch was not
-- recorded (sliced captures) are not here: kernels.launch_id is NULL. ncu has no timeline, so no rows.
-- @scope rows
-- @needs gpu_work
-- @alias cuda_kern_exec_trace
-- @requires _kernel_launches
-- @assumes The launching call is the one with the same correlation id in the process, and the tool put host and GPU on one clock.
-- @first name, start_ns, queue_ns, kernel_ns, api_ns, total_ns
-- @column run           Run (one workload in one configuration).
-- @column tool          nsys or kineto. Never add them up: they saw the same launches.
-- @column rank          Rank of the process; NULL where unknown.
-- @column profile_id    Profile; starts are comparable only within one.
-- @column process_id    OS process.
-- @column thread        OS thread id of the caller.
-- @column device        Device ordinal within the process.
-- @column stream        Stream id within the process.
-- @column api           Function that launched it.
-- @column api_start_ns  Start of the call, relative to the profile's origin.
-- @column api_ns        Duration of the call.
-- @column queue_ns      End of the call to start of the kernel; NULL where the kernel began before that end.
-- @column start_ns      Start of the kernel, relative to the profile's origin.
-- @column kernel_ns     Duration of the kernel.
-- @column total_ns      Start of the call to the later of the two ends.
-- @column name          Kernel name as the tool prints it.
-- @column kernel_id     The kernel; key of `kernels`.
CREATE VIEW kernel_launch_trace AS
FROM _kernel_launches
ORDER BY run, tool, profile_id, api_start_ns, start_ns, kernel_id;
