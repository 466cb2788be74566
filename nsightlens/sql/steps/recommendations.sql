-- The rules of the TensorBoard plugin and the expert rules of nsys, per process: a row per rule that fires, with its value and
-- its limit. They know no causes (a GPU that copies counts as unused): findings does, and is what summary shows. Time in the data loader above 5 % of the steps; in communication above 10 %; a GPU used for less
-- than 50 % of the time; memory above 90 % of the device; a GPU with tensor cores that no kernel uses, while operators
-- that could use them launch kernels; DistributedDataParallel without NCCL, DataParallel on several GPUs. Communication
-- counts wherever its kernels are recognised, and tensor cores by newer names than the plugin's: step_breakdown, gpu_summary.
-- The rules of nsys are about the time from the first to the last GPU work of the process: calls of asynchronous copies of pageable
-- memory, of synchronous copies and of sets of host memory (1 % each, summed over threads), synchronising calls while no work
-- ran on the GPU (1 %), gaps of 500 ms or more, chunks of a 30th in which a GPU works less than half of the time (10 %).
-- @scope run
-- @requires _plugin_rules, _nsys_rules
-- @assumes The limits are the TensorBoard plugin's and, of nsys's rules, which list all, ours: no row does not mean that there is no problem.
-- @assumes A step is a ProfilerStep of Kineto, or an NVTX range named like one (docs/attribution.md): one sequence per process.
-- @assumes A kernel's name says whether it communicates: by its family, `collective`, or by communication_pattern.
-- @assumes Memory is what PyTorch's allocator recorded; tensor-core use is known by counters or by name.
-- @first rank, rule, advice, value_pct, limit_pct
-- @column run           Run (one workload in one configuration).
-- @column tool          nsys or kineto.
-- @column rank          Rank of the process; NULL where unknown.
-- @column profile_id    Profile; key of `profiles`.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process, from 0; NULL for rules about the whole process.
-- @column rule          data_loader, communication, gpu_utilization, memory, tensor_cores, ddp_without_nccl, data_parallel; of nsys
--                       cuda_memcpy_async, cuda_memcpy_sync, cuda_memset_sync, cuda_api_sync, gpu_gaps or gpu_time_util.
-- @column subject       GPU it is about; NULL for the process.
-- @column value_pct     The number that fired it; NULL where the rule has none.
-- @column limit_pct     The limit of the rule.
-- @column advice        What could be done.
CREATE VIEW recommendations AS
SELECT * FROM (SELECT * FROM _plugin_rules UNION ALL BY NAME SELECT * FROM _nsys_rules)
ORDER BY run, tool, rank, profile_id, process_id, window_index, rule, subject;
