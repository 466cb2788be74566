-- The work of _gpu_work with the API call that launched it. The call is NULL where it was not recorded.
-- @scope rows
-- @requires _gpu_work, api_calls
-- @column run            Run.
-- @column tool           nsys or kineto.
-- @column profile_id     Profile; starts are comparable only within one.
-- @column process_id     OS process.
-- @column window_index   Capture window of the process.
-- @column device_id      The physical GPU.
-- @column context        CUDA context id within the process.
-- @column stream         Stream id within the process.
-- @column kind           kernel, memory or graph.
-- @column work_id        kernel_id, memory_op_id or graph_execution_id.
-- @column start_ns       Start, relative to the profile's origin.
-- @column end_ns         End.
-- @column name           Kernel name, or the label of the memory operation; NULL for graphs.
-- @column family         Kernel family; NULL but for kernels.
-- @column launch_id      The call that launched it.
-- @column call           Name of that call.
-- @column call_start_ns  Start of that call.
-- @column call_end_ns    End of that call.
CREATE VIEW _stream_work AS
SELECT w.* EXCLUDE (launch_id), c.launch_id, c.name AS call, c.start_ns AS call_start_ns, c.start_ns + c.duration_ns AS call_end_ns
FROM _gpu_work AS w
LEFT JOIN api_calls AS c ON w.profile_id = c.profile_id AND w.launch_id = c.launch_id;
