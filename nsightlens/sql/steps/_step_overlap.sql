-- Computation and communication of each step, alone and at once, as the Distributed View of the TensorBoard plugin has them:
-- distributed_overview says what counts, and has its rows from here. Without any kernel that computes the operators stand for
-- computation.
-- @scope profile
-- @requires _step_states
-- @param  communication_pattern  Regex of the kernel names that communicate; NULL: family `collective`.
-- @column run               Run.
-- @column tool              nsys or kineto.
-- @column profile_id        Profile.
-- @column process_id        OS process.
-- @column window_index      Capture window of the process.
-- @column step              Step number; NULL for a process without steps.
-- @column step_id           Range of the step.
-- @column start_ns          Start of the step, relative to the profile's origin.
-- @column end_ns            Its end.
-- @column computation_ns    Computation, no communication.
-- @column overlapping_ns    Both at once.
-- @column communication_ns  Communication, no computation.
-- @column other_ns          Neither.
CREATE MACRO _step_overlap(communication_pattern := NULL) AS TABLE
WITH states AS MATERIALIZED (
    FROM _step_states(communication_pattern := communication_pattern)
), kernels_known AS (
    SELECT profile_id, process_id, window_index, bool_or(compute) AS has_kernels
    FROM states GROUP BY profile_id, process_id, window_index
), summed AS (
    SELECT s.*, CASE WHEN k.has_kernels THEN s.compute ELSE s.cpu_exec END AS computes,
        s.communication OR s.communication_call AS communicates
    FROM states AS s JOIN kernels_known AS k ON k.profile_id = s.profile_id
        AND k.process_id IS NOT DISTINCT FROM s.process_id AND k.window_index IS NOT DISTINCT FROM s.window_index
)
SELECT run, tool, profile_id, process_id, window_index, step, step_id, start_ns, end_ns,
    TRY_CAST(coalesce(sum(total_ns) FILTER (computes AND NOT communicates), 0) AS BIGINT) AS computation_ns,
    TRY_CAST(coalesce(sum(total_ns) FILTER (computes AND communicates), 0) AS BIGINT) AS overlapping_ns,
    TRY_CAST(coalesce(sum(total_ns) FILTER (communicates AND NOT computes), 0) AS BIGINT) AS communication_ns,
    TRY_CAST(coalesce(sum(total_ns) FILTER (NOT computes AND NOT communicates), 0) AS BIGINT) AS other_ns
FROM summed GROUP BY run, tool, profile_id, process_id, window_index, step, step_id, start_ns, end_ns;
