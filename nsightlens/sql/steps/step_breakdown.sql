-- Where each training step went: exclusive categories in the priority order of the TensorBoard plugin (Kernel, Memcpy, Memset,
-- Communication, Runtime, DataLoader, CPU Exec, Other), exact to the ns; they sum to the step. Time shared by several
-- categories counts only for the first of them. A step lasts from its range's start, or the end of the step before it, to the
-- end of its range and of the GPU work launched in it. A process without steps has one row: its whole capture (operators, API
-- calls and GPU work). It differs from the plugin in four points. That row spans only the operators there. Here all recognised
-- communication kernels count as communication; the plugin links them through External id to five nccl and gloo operators and
-- counts all others as Kernel (all_kernels_ns is that figure, communication_pattern := '^$' gives its whole breakdown).
-- Data-loader ranges count here whether operator or annotation; the plugin sees only operators. No step is dropped here; the
-- plugin drops a last step whose GPU work is missing. If the capture holds no GPU work of the process at all, or no API call,
-- those figures are NULL.
-- @scope profile
-- @needs timeline
-- @requires _step_states, _gpu_work, api_calls, processes
-- @assumes A step is a ProfilerStep of Kineto, or an NVTX range named like one (docs/attribution.md): one sequence per process.
-- @assumes A kernel's name says whether it communicates: by its family, `collective`, or by communication_pattern.
-- @assumes GPU work belongs to the step that launched it. CUDA graphs whose kernels are unknown count as kernels that compute.
-- @assumes Data loaders, and communication on the host, are recognised by the names that PyTorch and NCCL give their ranges.
-- @param  communication_pattern  Regex of the kernel names that communicate; NULL: family `collective`.
-- @first rank, step, step_ns, kernel_ns, communication_ns, cpu_exec_ns, data_loader_ns, other_ns, runtime_ns, memcpy_ns
-- @column run               Run (one workload in one configuration).
-- @column tool              nsys or kineto. Never add them up: they saw the same work.
-- @column rank              Rank of the process; NULL where unknown.
-- @column profile_id        Profile; key of `profiles`.
-- @column process_id        OS process.
-- @column window_index      Capture window of the process, from 0.
-- @column step              Step number; NULL for a process without steps.
-- @column step_id           Range of the step; key of `ranges`.
-- @column start_ns          Start of the step, relative to the profile's origin.
-- @column step_ns           Length of the step, with the GPU work launched in it, less what the step before overlaps.
-- @column kernel_ns         Kernels that do not communicate, and graphs whose kernels are unknown.
-- @column memcpy_ns         Copies, migrations and decompressions, outside kernels.
-- @column memset_ns         Memsets, outside all before.
-- @column communication_ns  Kernels that communicate and the host side of communication operators, outside all before.
-- @column runtime_ns        CUDA or HIP API calls, outside all before.
-- @column data_loader_ns    Waiting for the data loader, outside all before.
-- @column cpu_exec_ns       Operators on the host, outside all before.
-- @column other_ns          The rest of the step.
-- @column all_kernels_ns    Union of all kernels, those that communicate included.
-- @column gpu_activities    Pieces of GPU work launched inside the step's range; few where the capture ended.
-- @balance step_ns = kernel_ns + memcpy_ns + memset_ns + communication_ns + runtime_ns + data_loader_ns + cpu_exec_ns + other_ns
CREATE MACRO step_breakdown(communication_pattern := NULL) AS TABLE
WITH gpu AS (
    SELECT DISTINCT profile_id, process_id, true AS recorded FROM _gpu_work
), api AS (
    SELECT DISTINCT profile_id, process_id, true AS recorded FROM api_calls
), ranked AS (
    SELECT run, tool, profile_id, process_id, window_index, step, step_id, start_ns, end_ns, gpu_activities,
        coalesce(total_ns, 0) AS total_ns, compute OR communication AS any_kernel,
        CASE WHEN compute THEN 'kernel' WHEN memcpy THEN 'memcpy' WHEN memset THEN 'memset'
            WHEN communication OR communication_call THEN 'communication' WHEN runtime THEN 'runtime'
            WHEN data_loader THEN 'data_loader' WHEN cpu_exec THEN 'cpu_exec' ELSE 'other' END AS category
    FROM _step_states(communication_pattern := communication_pattern)
), summed AS (
    SELECT run, tool, profile_id, process_id, window_index, step, step_id, start_ns, end_ns, gpu_activities,
        TRY_CAST(coalesce(sum(total_ns) FILTER (category = 'kernel'), 0) AS BIGINT) AS kernel_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (category = 'memcpy'), 0) AS BIGINT) AS memcpy_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (category = 'memset'), 0) AS BIGINT) AS memset_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (category = 'communication'), 0) AS BIGINT) AS communication_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (category = 'runtime'), 0) AS BIGINT) AS runtime_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (category = 'data_loader'), 0) AS BIGINT) AS data_loader_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (category = 'cpu_exec'), 0) AS BIGINT) AS cpu_exec_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (category = 'other'), 0) AS BIGINT) AS other_ns,
        TRY_CAST(coalesce(sum(total_ns) FILTER (any_kernel), 0) AS BIGINT) AS all_kernels_ns
    FROM ranked
    GROUP BY run, tool, profile_id, process_id, window_index, step, step_id, start_ns, end_ns, gpu_activities
)
SELECT s.run, s.tool, p.rank, s.profile_id, s.process_id, s.window_index, s.step, s.step_id, s.start_ns,
    s.end_ns - s.start_ns AS step_ns, CASE WHEN g.recorded THEN kernel_ns END AS kernel_ns,
    CASE WHEN g.recorded THEN memcpy_ns END AS memcpy_ns, CASE WHEN g.recorded THEN memset_ns END AS memset_ns, communication_ns,
    CASE WHEN a.recorded THEN runtime_ns END AS runtime_ns, data_loader_ns, cpu_exec_ns, other_ns,
    CASE WHEN g.recorded THEN all_kernels_ns END AS all_kernels_ns, s.gpu_activities
FROM summed AS s
LEFT JOIN gpu AS g ON g.profile_id = s.profile_id AND g.process_id IS NOT DISTINCT FROM s.process_id
LEFT JOIN api AS a ON a.profile_id = s.profile_id AND a.process_id IS NOT DISTINCT FROM s.process_id
LEFT JOIN processes AS p ON p.process_id = s.process_id AND p.profile_id = s.profile_id
ORDER BY s.run, s.tool, p.rank, s.profile_id, s.process_id, s.window_index, s.start_ns, s.step_id;
