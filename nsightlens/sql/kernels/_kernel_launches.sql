-- The rows of kernel_launch_trace in no order: what sums them up need not sort them.
-- @scope rows
-- @requires kernels, api_calls
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
CREATE VIEW _kernel_launches AS
SELECT
    k.run, k.tool, k.rank, k.profile_id, k.process_id, a.thread, k.device, k.stream, a.name AS api,
    a.start_ns AS api_start_ns,
    a.duration_ns AS api_ns,
    CASE WHEN k.start_ns >= a.start_ns + a.duration_ns THEN k.start_ns - (a.start_ns + a.duration_ns) END AS queue_ns,
    k.start_ns,
    k.duration_ns AS kernel_ns,
    CASE WHEN a.duration_ns IS NOT NULL AND k.duration_ns IS NOT NULL
        THEN greatest(a.start_ns + a.duration_ns, k.start_ns + k.duration_ns) - a.start_ns END AS total_ns,
    k.name, k.kernel_id
FROM kernels AS k
JOIN api_calls AS a ON k.launch_id = a.launch_id
WHERE k.tool <> 'ncu';
