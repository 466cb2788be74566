-- The Module View of the TensorBoard plugin, per process: calls, operators, and time on the host and on the GPU of each
-- nn.Module. Self excludes the modules inside a module; total includes them. GPU time is a sum of kernel durations (concurrent
-- ones count separately), including backward kernels, which belong to the module of their forward operators; backward_total_ns
-- and backward_self_ns are their part. A call inside several modules counts once for each of these names.
-- @scope profile
-- @alias module_view
-- @needs modules
-- @requires ranges, processes, _module_work
-- @assumes The capture names modules: Kineto with with_stack=True, nsys with NVTX ranges `nn.Module: NAME`. Others have no row.
-- @assumes A backward kernel belongs to the module of the forward operator with the same autograd sequence number.
-- @assumes Module names distinguish calls: modules of one class that share a name are one row.
-- @first module, device_total_ns, device_self_ns, calls, host_total_ns
-- @column run                Run (one workload in one configuration).
-- @column tool               nsys or kineto. Never add them up: they saw the same work.
-- @column rank               Rank of the process; NULL where unknown.
-- @column profile_id         Profile; key of `profiles`.
-- @column process_id         OS process.
-- @column module             Module, as the tool names it.
-- @column parent             Module around it, the first by name where calls differ; NULL for the outermost.
-- @column calls              Calls of its forward.
-- @column operators          Operators called in it, those inside other operators or modules not counted.
-- @column host_total_ns      Sum of the calls' durations.
-- @column host_self_ns       That, less the calls of the modules inside it.
-- @column device_total_ns    Kernels launched in it and in the modules inside it; NULL where no kernel has a known module.
-- @column device_self_ns     Kernels launched in it.
-- @column backward_total_ns  The part of device_total_ns that is backward.
-- @column backward_self_ns   The part of device_self_ns that is backward.
CREATE VIEW module_summary AS
WITH RECURSIVE modules AS MATERIALIZED (
    SELECT run, tool, profile_id, process_id, range_id, parent_id, name, duration_ns
    FROM ranges WHERE kind = 'module' AND duration_ns >= 0
), climb AS (
    -- from each module, and each outermost operator, up to the module around it
    SELECT range_id, parent_id AS up_id, true AS is_module FROM modules
    UNION ALL
    SELECT range_id, parent_id, false FROM ranges WHERE kind = 'operator' AND op_parent_id IS NULL
        AND process_id IN (SELECT process_id FROM modules)
    UNION ALL
    SELECT c.range_id, r.parent_id, c.is_module
    FROM climb AS c JOIN ranges AS r ON r.range_id = c.up_id WHERE r.kind <> 'module'
), around AS MATERIALIZED (
    SELECT c.range_id, c.is_module, m.range_id AS module_id
    FROM climb AS c JOIN modules AS m ON m.range_id = c.up_id
), inner_calls AS (
    SELECT a.module_id, sum(m.duration_ns) FILTER (a.is_module) AS inner_ns, count(*) FILTER (NOT a.is_module) AS operators
    FROM around AS a LEFT JOIN modules AS m ON m.range_id = a.range_id GROUP BY a.module_id
), named AS (
    SELECT m.run, m.tool, m.profile_id, m.process_id, m.name, min(o.name) AS parent, count(*) AS calls,
        TRY_CAST(coalesce(sum(i.operators), 0) AS BIGINT) AS operators, TRY_CAST(sum(m.duration_ns) AS BIGINT) AS host_total_ns,
        TRY_CAST(sum(m.duration_ns) - coalesce(sum(i.inner_ns), 0) AS BIGINT) AS host_self_ns
    FROM modules AS m LEFT JOIN inner_calls AS i ON i.module_id = m.range_id
    LEFT JOIN around AS a ON a.range_id = m.range_id LEFT JOIN modules AS o ON o.range_id = a.module_id
    GROUP BY m.run, m.tool, m.profile_id, m.process_id, m.name
), work AS MATERIALIZED (
    FROM _module_work
), launched AS (
    SELECT profile_id, process_id, name, TRY_CAST(sum(self_ns) AS BIGINT) AS self_ns,
        TRY_CAST(coalesce(sum(backward_ns), 0) AS BIGINT) AS backward_ns
    FROM work GROUP BY profile_id, process_id, name
), within AS (
    SELECT module_id, module_id AS up_id FROM work WHERE module_id IS NOT NULL
    UNION ALL
    SELECT w.module_id, a.module_id FROM within AS w JOIN around AS a ON a.range_id = w.up_id
), total AS (
    SELECT profile_id, process_id, name, TRY_CAST(sum(self_ns) AS BIGINT) AS total_ns,
        TRY_CAST(coalesce(sum(backward_ns), 0) AS BIGINT) AS backward_ns
    FROM (
        SELECT DISTINCT m.profile_id, m.process_id, m.name, k.module_id, k.self_ns, k.backward_ns
        FROM work AS k JOIN within AS w USING (module_id) JOIN modules AS m ON m.range_id = w.up_id
        UNION ALL
        SELECT profile_id, process_id, name, NULL, self_ns, backward_ns FROM work WHERE module_id IS NULL
    ) GROUP BY profile_id, process_id, name
)
SELECT n.run, n.tool, p.rank, n.profile_id, n.process_id, n.name AS module, n.parent, n.calls, n.operators, n.host_total_ns,
    n.host_self_ns, CASE WHEN k.any_ns THEN coalesce(t.total_ns, 0) END AS device_total_ns,
    CASE WHEN k.any_ns THEN coalesce(l.self_ns, 0) END AS device_self_ns,
    CASE WHEN k.any_ns THEN coalesce(t.backward_ns, 0) END AS backward_total_ns,
    CASE WHEN k.any_ns THEN coalesce(l.backward_ns, 0) END AS backward_self_ns
FROM named AS n
LEFT JOIN launched AS l USING (profile_id, process_id, name)
LEFT JOIN total AS t ON t.profile_id = n.profile_id AND t.process_id = n.process_id AND t.name = n.name
LEFT JOIN (SELECT DISTINCT profile_id, process_id, true AS any_ns FROM launched) AS k USING (profile_id, process_id)
LEFT JOIN processes AS p ON p.process_id = n.process_id AND p.profile_id = n.profile_id
ORDER BY n.run, n.tool, p.rank, n.profile_id, n.process_id, device_total_ns DESC NULLS LAST, n.host_total_ns DESC, module;
