-- What the host was in while a GPU idled: the gaps of each GPU that fall into ranges of a name, for each process. MPI functions,
-- NVTX ranges, annotations, operators and steps; time in several ranges of one name counts once. Ranges nest: the times of
-- different names overlap, and do not sum to the idle time. idle_causes says what held up the work that ended each gap.
-- @scope profile
-- @needs gpu_work, ranges
-- @requires _gaps, mpi_calls, processes, ranges
-- @assumes All work of the process was recorded: work that the tool dropped counts as idle. Time before its first work on a GPU,
--     after its last, and between capture windows, is no gap.
-- @assumes A range says nothing of why the GPU idles: other threads may be what it waits for.
-- @column run          Run (one workload in one configuration).
-- @column tool         nsys or kineto. Never add them up: they saw the same work.
-- @column rank         Rank of the process; NULL where unknown.
-- @column profile_id   Profile; key of `profiles`.
-- @column process_id   OS process.
-- @column device_id    The physical GPU.
-- @column kind         mpi (a call that nsys traced as such), nvtx_push_pop, nvtx_start_end, annotation, operator, module or step.
-- @column domain       NVTX domain; NULL for the default domain and elsewhere.
-- @column name         Name of the range, or the MPI function.
-- @column idle_ns      Time in such ranges while the GPU idled between its first and last work for the process.
-- @column idle_pct     Share of all such idle time of that GPU.
-- @column inside_ns    Time in such ranges: their union.
-- @column gpu_idle_ns  All idle time of the GPU between its first and last work for the process.
-- @column ranges       Number of ranges of that name.
CREATE VIEW idle_by_range AS
WITH gaps AS MATERIALIZED (
    SELECT
        track, start_ns, end_ns,
        (sum(end_ns - start_ns) OVER (PARTITION BY track ORDER BY start_ns ROWS UNBOUNDED PRECEDING))::BIGINT AS idle_until_ns
    FROM (
        SELECT dense_rank() OVER (ORDER BY profile_id, owner, device_id)::INTEGER AS track, start_ns, end_ns
        FROM _gaps(per := 'process_device')
    )
), tracks AS MATERIALIZED (
    SELECT
        dense_rank() OVER (ORDER BY profile_id, owner, device_id)::INTEGER AS track, profile_id, owner AS process_id, device_id,
        sum(end_ns - start_ns)::BIGINT AS gpu_idle_ns
    FROM _gaps(per := 'process_device')
    GROUP BY profile_id, owner, device_id
), named AS NOT MATERIALIZED (
    SELECT run, tool, profile_id, process_id, kind, domain, name, start_ns, start_ns + duration_ns AS end_ns
    FROM ranges WHERE kind NOT IN ('nvtx_mark', 'gpu_annotation') AND duration_ns > 0
    UNION ALL
    SELECT run, tool, profile_id, process_id, 'mpi', NULL, name, start_ns, start_ns + duration_ns
    FROM mpi_calls WHERE duration_ns > 0
), parted AS NOT MATERIALIZED (
    SELECT *, start_ns > max(end_ns) OVER (PARTITION BY profile_id, process_id, kind, domain, name ORDER BY start_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS is_apart
    FROM named WHERE (profile_id, process_id) IN (SELECT (profile_id, process_id) FROM tracks)
), numbered AS NOT MATERIALIZED (
    -- RANGE: ranges that begin together are of one part
    SELECT *, count(*) FILTER (is_apart) OVER (PARTITION BY profile_id, process_id, kind, domain, name ORDER BY start_ns
        RANGE UNBOUNDED PRECEDING) AS part
    FROM parted
), parts AS NOT MATERIALIZED (
    SELECT run, tool, profile_id, process_id, kind, domain, name, min(start_ns) AS start_ns, max(end_ns) AS end_ns, count(*) AS ranges
    FROM numbered GROUP BY run, tool, profile_id, process_id, kind, domain, name, part
), placed AS NOT MATERIALIZED (
    SELECT p.*, t.track, t.device_id, t.gpu_idle_ns FROM parts AS p JOIN tracks AS t USING (profile_id, process_id)
)
SELECT
    p.run, p.tool, o.rank, p.profile_id, p.process_id, p.device_id, p.kind, p.domain, p.name,
    sum(coalesce(late.idle_until_ns - greatest(late.end_ns - p.end_ns, 0), 0)
        - coalesce(early.idle_until_ns - greatest(early.end_ns - p.start_ns, 0), 0))::BIGINT AS idle_ns,
    round(100.0 * idle_ns / p.gpu_idle_ns, 1) AS idle_pct,
    sum(p.end_ns - p.start_ns)::BIGINT AS inside_ns,
    p.gpu_idle_ns,
    sum(p.ranges)::BIGINT AS ranges
FROM placed AS p
ASOF LEFT JOIN gaps AS early ON early.track = p.track AND early.start_ns <= p.start_ns
ASOF LEFT JOIN gaps AS late ON late.track = p.track AND late.start_ns <= p.end_ns
LEFT JOIN processes AS o ON o.process_id = p.process_id AND o.profile_id = p.profile_id
GROUP BY p.run, p.tool, o.rank, p.profile_id, p.process_id, p.device_id, p.kind, p.domain, p.name, p.gpu_idle_ns
HAVING idle_ns > 0
ORDER BY p.run, p.tool, o.rank, p.profile_id, p.process_id, p.device_id, idle_ns DESC, p.kind, p.domain, p.name;
