-- One row per launch of the run's best undisturbed tool (timeline_kernels), with what the other tools know about it, and how
-- certain that is. Never add up the three durations: they come from different executions. Values of the launch's own row come
-- first; missing ones come from Kineto and ncu. If the launch itself is matched, operator and shapes are Kineto's, as NVTX
-- ranges may show an outer operator. A launch that no other tool recorded keeps its row. metrics repeats the counters of a
-- configuration in each of its launches: leave the column out for long runs.
-- @scope rows
-- @needs timeline
-- @requires timeline_kernels _kineto_known _ncu_known ncu_by_config
-- @assumes The tools of a run saw the same program with the same inputs.
-- @assumes Below grade launch, launches of one kernel key, grid and block do the same.
-- @first name, nsys_duration_ns, kineto_duration_ns, ncu_duration_ns
-- @column run                   Run.
-- @column tool                  Tool of the row: nsys or kineto.
-- @column rank                  Rank; NULL where unknown.
-- @column profile_id            Profile of the row.
-- @column process_id            OS process.
-- @column kernel_id             The launch; key of `kernels`.
-- @column launch_index          Order of launch in the process.
-- @column stream                Stream.
-- @column start_ns              Start in `tool`, relative to the profile's origin.
-- @column duration_ns           Duration in `tool`: the one to quote.
-- @column name                  Kernel name as `tool` prints it.
-- @column kernel_key            Canonical name.
-- @column family                Kernel family.
-- @column grid_x                Grid size, x.
-- @column grid_y                Grid size, y.
-- @column grid_z                Grid size, z.
-- @column block_x               Block size, x.
-- @column block_y               Block size, y.
-- @column block_z               Block size, z.
-- @column nsys_duration_ns      Duration under nsys.
-- @column kineto_duration_ns    Duration under Kineto: of the launch, else the median of its configuration.
-- @column kineto_grade          Where that is from: own, launch, configuration or configuration of any rank.
-- @column kineto_kernel_id      The same launch in Kineto, where one is certain.
-- @column ncu_duration_ns       Duration under ncu: of the launch, else the median of its configuration.
-- @column ncu_kernel_id         The same launch under ncu, where one is certain.
-- @column ncu_configuration_id  The configuration otherwise; key of ncu_by_config.
-- @column clock_control         ncu --clock-control behind it, where known.
-- @column cache_control         ncu --cache-control behind it, where known.
-- @column metrics_grade         Where ncu_duration_ns and metrics are from: launch, configuration or configuration of any rank.
-- @column metrics               ncu's counters: of the launch, else the medians of ncu_by_config.
-- @column step                  Training step.
-- @column step_source           nsys, kineto or kineto launch.
-- @column phase                 forward, backward or optimizer.
-- @column phase_source          nsys, kineto, kineto launch, kineto configuration or kineto configuration of any rank.
-- @column op                    Innermost operator that is known.
-- @column op_shapes             Its input shapes.
-- @column op_source             Where both are from, as above.
-- @column module                Innermost nn.Module.
-- @column module_source         Likewise.
-- @column range_path            Enclosing ranges, outermost first.
-- @column range_path_source     nsys, kineto or kineto launch.
-- @names kernel name, kernel_key
CREATE VIEW kernels_joined AS
SELECT
    k.run, k.tool, k.rank, k.profile_id, k.process_id, k.kernel_id, k.launch_index, k.stream, k.start_ns, k.duration_ns,
    k.name, k.kernel_key, k.family, k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z,
    CASE WHEN k.tool = 'nsys' THEN k.duration_ns END AS nsys_duration_ns,
    CASE WHEN k.tool = 'kineto' THEN k.duration_ns ELSE t.known.duration_ns END AS kineto_duration_ns,
    CASE WHEN k.tool = 'kineto' THEN 'own' ELSE t.grade END AS kineto_grade,
    CASE WHEN k.tool = 'kineto' THEN k.kernel_id ELSE t.kineto_kernel_id END AS kineto_kernel_id,
    CASE n.grade WHEN 'launch' THEN l.duration_ns ELSE c.duration_ns END AS ncu_duration_ns,
    n.ncu_kernel_id, n.configuration_id AS ncu_configuration_id,
    CASE n.grade WHEN 'launch' THEN l.clock_control ELSE c.clock_control END AS clock_control,
    CASE n.grade WHEN 'launch' THEN l.cache_control ELSE c.cache_control END AS cache_control,
    n.grade AS metrics_grade,
    CASE n.grade WHEN 'launch' THEN l.metrics ELSE c.metrics END AS metrics,
    coalesce(k.step, t.known.step) AS step,
    CASE WHEN k.step IS NOT NULL THEN k.tool WHEN t.known.step IS NOT NULL THEN 'kineto ' || t.grade END AS step_source,
    coalesce(k.phase, t.known.phase) AS phase,
    CASE WHEN k.phase IS NOT NULL THEN k.tool WHEN t.known.phase IS NOT NULL THEN 'kineto ' || t.grade END AS phase_source,
    CASE WHEN t.tells_op THEN t.known.op ELSE k.op END AS op,
    CASE WHEN t.tells_op THEN t.known.op_shapes ELSE k.op_shapes END AS op_shapes,
    CASE WHEN t.tells_op THEN 'kineto ' || t.grade WHEN k.op IS NOT NULL THEN k.tool END AS op_source,
    coalesce(k.module, t.known.module) AS module,
    CASE WHEN k.module IS NOT NULL THEN k.tool WHEN t.known.module IS NOT NULL THEN 'kineto ' || t.grade END AS module_source,
    coalesce(k.range_path, t.known.range_path) AS range_path,
    CASE WHEN k.range_path IS NOT NULL THEN k.tool
        WHEN t.known.range_path IS NOT NULL THEN 'kineto ' || t.grade END AS range_path_source
FROM timeline_kernels AS k
LEFT JOIN _kineto_known AS t ON k.kernel_id = t.kernel_id
LEFT JOIN _ncu_known AS n ON k.kernel_id = n.kernel_id
LEFT JOIN kernels AS l ON n.ncu_kernel_id = l.kernel_id AND l.tool = 'ncu'
LEFT JOIN ncu_by_config AS c ON n.configuration_id = c.configuration_id
ORDER BY k.run, k.rank, k.process_id, k.launch_index, k.kernel_id;
