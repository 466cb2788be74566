-- Kernels whose duration cannot be true: a stream runs one kernel after the other, and these still run when the second kernel
-- after them begins. Some drivers end a kernel late, or never, where the GPU stalls (seen on AMD's MI355): sums of durations
-- and busy time then count the time of others as theirs. A trace without such kernels has no row.
-- @scope rows
-- @requires kernels
-- @assumes One kernel may begin while the one before it ends (programmatic dependent launch): only the second one after it is proof.
-- @assumes Kernels of one launch (CUDA and HIP graphs) may run side by side in a stream, and are left out.
-- @param  margin_ns      Time in ns by which clocks may err; Kineto wrote whole microseconds until 2024.
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
CREATE MACRO kernel_overruns(margin_ns := 1000) AS TABLE
WITH placed AS (
    SELECT
        run, tool, rank, profile_id, window_index, process_id, device_id, context, stream, kernel_id, name, start_ns, duration_ns,
        start_ns + duration_ns AS end_ns,
        lead(start_ns) OVER later AS next_start_ns,
        graph_node_id IS NOT NULL OR count(nullif(correlation_id, 0)) OVER (
            PARTITION BY profile_id, window_index, process_id, correlation_id
        ) > 1 AS is_of_graph
    FROM kernels
    WHERE start_ns IS NOT NULL AND stream IS NOT NULL AND tool <> 'ncu'
    WINDOW later AS (
        PARTITION BY profile_id, window_index, process_id, device_id, context, stream ORDER BY start_ns, duration_ns, kernel_id
    )
), followed AS (
    -- The second after it is the next of the next: DuckDB before 2.0 cannot open a catalog that says lead(start_ns, 2).
    SELECT *, lead(next_start_ns) OVER (
        PARTITION BY profile_id, window_index, process_id, device_id, context, stream ORDER BY start_ns, duration_ns, kernel_id
    ) AS second_start_ns
    FROM placed
)
SELECT
    run, tool, rank, profile_id, window_index, process_id, device_id, stream, kernel_id, name, start_ns, duration_ns,
    next_start_ns, end_ns - next_start_ns AS overrun_ns
FROM followed
WHERE end_ns > second_start_ns + margin_ns AND NOT is_of_graph
ORDER BY run, tool, overrun_ns DESC, profile_id, kernel_id;
