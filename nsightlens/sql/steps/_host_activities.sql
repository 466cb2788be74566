-- What the host did, as far as ranges and tables of MPI calls say it, under the category that the TensorBoard plugin would count
-- it in. Of operators only the outermost of a thread stand here: those inside them add nothing to a union. Calls of MPI, NCCL and
-- NVSHMEM that set up or take down processes, groups, types and memory move no data: they are no communication.
-- @scope rows
-- @requires mpi_calls, ranges
-- @column run           Run.
-- @column tool          nsys or kineto.
-- @column profile_id    Profile.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process.
-- @column start_ns      Start, relative to the profile's origin.
-- @column end_ns        End.
-- @column category      data_loader, communication_call or cpu_exec.
CREATE VIEW _host_activities AS
SELECT *
FROM (
    SELECT run, tool, profile_id, process_id, window_index, start_ns, start_ns + duration_ns AS end_ns,
        CASE
            WHEN regexp_matches(name, '^enumerate\(DataLoader\)#.*\.__next__$|^enumerate\(DataPipe\)#') THEN 'data_loader'
            WHEN regexp_matches(name, '^(nccl|gloo|mpi|ucc|xccl|hccl|rccl):') THEN 'communication_call'
            WHEN kind LIKE 'nvtx%' AND domain IN ('NCCL', 'MPI', 'UCX', 'NVSHMEM') AND NOT regexp_matches(name,
                '^P?MPI_(Init|Finalize|Session_|Comm_|Group_|Type_|Info_|Op_|Win_(create|allocate|free))'
                || '|^p?ncclComm|^nvshmemx?_(init|finalize|malloc|calloc|align|free)') THEN 'communication_call'
            WHEN kind = 'operator' AND op_parent_id IS NULL THEN 'cpu_exec'
        END AS category
    FROM ranges
    WHERE kind IN ('operator', 'annotation', 'nvtx_push_pop', 'nvtx_start_end') AND duration_ns > 0
    UNION ALL
    -- nsys's own tables of MPI calls say what the NVTX ranges of its MPI interposition say
    SELECT run, tool, profile_id, process_id, window_index, start_ns, start_ns + duration_ns, 'communication_call'
    FROM mpi_calls
    WHERE duration_ns > 0 AND NOT regexp_matches(name,
        '^P?MPI_(Init|Finalize|Session_|Comm_|Group_|Type_|Info_|Op_|Win_(create|allocate|free))')
)
WHERE category IS NOT NULL;
