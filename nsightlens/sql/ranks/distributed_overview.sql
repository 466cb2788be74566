-- The Distributed View of the TensorBoard plugin, per process and step: computation alone, computation overlapped with
-- communication, communication alone, and the rest; they sum to the step. Communication is the union of communication kernels
-- and of the host side of communication operators, as in the plugin (which links fewer kernels: see step_breakdown). Without
-- compute kernels, operators count as computation. Then the time in collective kernels that began in the step, split into data
-- transfer (as long as the fastest process needed for the same collective) and synchronising (waiting for the others); NULL
-- where the processes' collectives cannot be matched.
-- @scope run
-- @alias distributed_view
-- @needs timeline
-- @requires _step_overlap, _collective_waits, processes
-- @assumes A step is a ProfilerStep of Kineto, or an NVTX range named like one (docs/attribution.md): one sequence per process.
-- @assumes A kernel's name says whether it communicates: by its family, `collective`, or by communication_pattern.
-- @assumes The fastest process of a matched collective did not wait. Only durations are compared over processes, no clocks.
-- @assumes CUDA graphs whose kernels are unknown count as computation.
-- @param  communication_pattern  Regex of the kernel names that communicate; NULL: family `collective`.
-- @first rank, step, step_ns, computation_ns, communication_ns, overlapping_ns, synchronizing_ns
-- @column run               Run (one workload in one configuration).
-- @column tool              nsys or kineto. Never add them up: they saw the same work.
-- @column rank              Rank of the process; NULL where unknown.
-- @column profile_id        Profile; key of `profiles`.
-- @column process_id        OS process.
-- @column window_index      Capture window of the process, from 0.
-- @column step              Step number; NULL for a process without steps.
-- @column step_id           Range of the step; key of `ranges`.
-- @column start_ns          Start of the step, relative to the profile's origin.
-- @column step_ns           Length of the step.
-- @column computation_ns    Computation, no communication.
-- @column overlapping_ns    Both at once.
-- @column communication_ns  Communication, no computation.
-- @column other_ns          Neither.
-- @column synchronizing_ns  Collective kernels waiting for other processes.
-- @column transfer_ns       Collective kernels moving data.
-- @balance step_ns = computation_ns + overlapping_ns + communication_ns + other_ns
CREATE MACRO distributed_overview(communication_pattern := NULL) AS TABLE
SELECT s.run, s.tool, p.rank, s.profile_id, s.process_id, s.window_index, s.step, s.step_id, s.start_ns,
    s.end_ns - s.start_ns AS step_ns, computation_ns, overlapping_ns, communication_ns, other_ns,
    w.latency_ns - w.transfer_ns AS synchronizing_ns, w.transfer_ns
FROM _step_overlap(communication_pattern := communication_pattern) AS s
LEFT JOIN _collective_waits AS w ON w.profile_id = s.profile_id AND w.process_id IS NOT DISTINCT FROM s.process_id
    AND w.window_index IS NOT DISTINCT FROM s.window_index AND w.start_ns = s.start_ns
    AND w.step_id IS NOT DISTINCT FROM s.step_id
LEFT JOIN processes AS p ON p.process_id = s.process_id AND p.profile_id = s.profile_id
ORDER BY s.run, s.tool, p.rank, s.profile_id, s.process_id, s.window_index, s.start_ns, s.step_id;
