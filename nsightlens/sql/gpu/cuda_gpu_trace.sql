-- Each kernel, copy and set on the GPUs, in order: the rows of `nsys stats cuda_gpu_trace`, without green contexts.
-- Rates are exact, where nsys rounds the bytes per second of each ns down. ncu has no timeline, so no rows.
-- @scope rows
-- @needs gpu_work
-- @requires kernels, memory_ops
-- @assumes A row is what the tool recorded: CUDA graphs that it recorded whole are in `graph_executions`, not here.
-- @first start_ns, duration_ns, name, stream
-- @column run             Run (one workload in one configuration).
-- @column tool            nsys or kineto. Never add them up: they saw the same work.
-- @column rank            Rank of the process; NULL where unknown.
-- @column profile_id      Profile; starts are comparable only within one.
-- @column process_id      OS process.
-- @column device_id       The physical GPU.
-- @column device          Device ordinal within the process.
-- @column gpu             Product name of the GPU.
-- @column context         CUDA context id within the process.
-- @column stream          Stream id within the process.
-- @column start_ns        Start, relative to the profile's origin.
-- @column duration_ns     Duration.
-- @column correlation_id  CUPTI correlation id.
-- @column grid            Grid, as x,y,z; NULL for memory operations.
-- @column block           Block, as x,y,z, as above.
-- @column registers_per_thread   Registers per thread.
-- @column static_shared_bytes    Static shared memory per block.
-- @column dynamic_shared_bytes   Dynamic shared memory per block.
-- @column bytes           Bytes moved or set; NULL for kernels.
-- @column bytes_per_s     Bytes over duration.
-- @column source_memory   Memory that a copy goes from, such as pageable.
-- @column destination_memory     Memory that it goes to.
-- @column kind            kernel, memcpy, memset, migration or decompression.
-- @column work_id         Key of `kernels` or `memory_ops`.
-- @column name            Kernel name, or label of the memory operation.
-- @names kernel name
CREATE VIEW cuda_gpu_trace AS
WITH work AS (
    SELECT run, tool, rank, profile_id, process_id, device_id, device, gpu, context, stream, start_ns, duration_ns, correlation_id,
        concat_ws(',', grid_x, grid_y, grid_z) AS grid, concat_ws(',', block_x, block_y, block_z) AS block,
        registers_per_thread, static_shared_bytes, dynamic_shared_bytes, NULL::BIGINT AS bytes, NULL::DOUBLE AS bytes_per_s,
        NULL::VARCHAR AS source_memory, NULL::VARCHAR AS destination_memory, 'kernel' AS kind, kernel_id AS work_id, name
    FROM kernels
    UNION ALL
    SELECT run, tool, rank, profile_id, process_id, device_id, device, gpu, context, stream, start_ns, duration_ns, correlation_id,
        NULL, NULL, NULL, NULL, NULL, bytes, 1e9 * bytes / nullif(duration_ns, 0),
        source_memory, destination_memory, kind, memory_op_id, name
    FROM memory_ops
)
FROM work
WHERE tool <> 'ncu' AND start_ns IS NOT NULL
ORDER BY run, tool, profile_id, start_ns, kind, work_id;
