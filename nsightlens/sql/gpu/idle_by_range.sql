-- What the host was in while a GPU idled: the gaps of each GPU that fall into ranges of a name, for each process. MPI functions,
-- NVTX ranges, annotations, operators and steps; time in several ranges of one name counts once. Ranges nest, so the times of
-- different names overlap; all ranges together and the row "(in no range)" are the idle time. What a process
-- does before its first work on a GPU (loading, MPI_Init) is in no row: step_breakdown of a process without steps includes it.
-- idle_causes says what held up the work that ended each gap.
-- @scope profile
-- @needs gpu_work, ranges
-- @requires _gaps, _host_ranges, processes
-- @assumes All work of the process was recorded: work that the tool dropped counts as idle. Time before its first work on a GPU,
--     after its last, and between capture windows, is no gap.
-- @assumes A range says nothing of why the GPU idles: other threads may be what it waits for.
-- @param  alike       Names that differ only in numbers are one, with # for each number: IO # for IO 190 and IO 250.
-- @note   Counts only time between the first and the last GPU work. alike=true joins names
--     that differ only in numbers.
-- @column run          Run (one workload in one configuration).
-- @column tool         nsys or kineto. Never add them up: they saw the same work.
-- @column rank         Rank of the process; NULL where unknown.
-- @column profile_id   Profile; key of `profiles`.
-- @column process_id   OS process.
-- @column device_id    The physical GPU.
-- @column kind         mpi (a call that nsys traced as such), nvtx_push_pop, nvtx_start_end, annotation, operator, module or step;
--     NULL in no range.
-- @column domain       NVTX domain; NULL for the default domain and elsewhere.
-- @column name         Name of the range, or the MPI function; (in no range): the rest of the idle time.
-- @column idle_ns      Time in such ranges while the GPU idled between its first and last work for the process.
-- @column idle_pct     Share of all such idle time of that GPU.
-- @column inside_ns    Time in such ranges: their union; NULL in no range.
-- @column gpu_idle_ns  All idle time of the GPU between its first and last work for the process.
-- @column ranges       Number of ranges of that name; NULL in no range.
CREATE MACRO idle_by_range(alike := false) AS TABLE
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
), parted AS NOT MATERIALIZED (
    SELECT *, start_ns > max(end_ns) OVER (PARTITION BY profile_id, process_id, kind, domain, name ORDER BY start_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS is_apart
    FROM (
        SELECT * EXCLUDE (name), CASE WHEN alike THEN regexp_replace(name, '[0-9]+', '#', 'g') ELSE name END AS name
        FROM _host_ranges()
    ) WHERE (profile_id, process_id) IN (SELECT (profile_id, process_id) FROM tracks)
), numbered AS NOT MATERIALIZED (
    -- RANGE: ranges that begin together are of one part
    SELECT *, count(*) FILTER (is_apart) OVER (PARTITION BY profile_id, process_id, kind, domain, name ORDER BY start_ns
        RANGE UNBOUNDED PRECEDING) AS part
    FROM parted
), parts AS NOT MATERIALIZED (
    SELECT run, tool, profile_id, process_id, kind, domain, name, min(start_ns) AS start_ns, max(end_ns) AS end_ns, count(*) AS ranges
    FROM numbered GROUP BY run, tool, profile_id, process_id, kind, domain, name, part
    UNION ALL
    SELECT run, tool, profile_id, process_id, NULL, NULL, '(in no range)', start_ns, end_ns, 0 FROM _host_ranges(united := true)
    UNION ALL
    -- without length, as a process may have no ranges
    SELECT run, tool, profile_id, t.process_id, NULL, NULL, '(in no range)', 0, 0, 0
    FROM tracks AS t JOIN (SELECT DISTINCT run, tool, profile_id FROM _host_ranges()) USING (profile_id)
), placed AS NOT MATERIALIZED (
    SELECT p.*, t.track, t.device_id, t.gpu_idle_ns FROM parts AS p JOIN tracks AS t USING (profile_id, process_id)
), summed AS NOT MATERIALIZED (
    SELECT
        p.run, p.tool, o.rank, p.profile_id, p.process_id, p.device_id, p.kind, p.domain, p.name, p.gpu_idle_ns,
        sum(coalesce(late.idle_until_ns - greatest(late.end_ns - p.end_ns, 0), 0)
            - coalesce(early.idle_until_ns - greatest(early.end_ns - p.start_ns, 0), 0))::BIGINT AS within_ns,
        sum(p.end_ns - p.start_ns)::BIGINT AS inside_ns, sum(p.ranges)::BIGINT AS ranges
    FROM placed AS p
    ASOF LEFT JOIN gaps AS early ON early.track = p.track AND early.start_ns <= p.start_ns
    ASOF LEFT JOIN gaps AS late ON late.track = p.track AND late.start_ns <= p.end_ns
    LEFT JOIN processes AS o ON o.process_id = p.process_id AND o.profile_id = p.profile_id
    GROUP BY p.run, p.tool, o.rank, p.profile_id, p.process_id, p.device_id, p.kind, p.domain, p.name, p.gpu_idle_ns
)
SELECT
    run, tool, rank, profile_id, process_id, device_id, kind, domain, name,
    CASE WHEN kind IS NULL THEN gpu_idle_ns - within_ns ELSE within_ns END AS idle_ns,
    round(100.0 * idle_ns / gpu_idle_ns, 1) AS idle_pct,
    CASE WHEN kind IS NOT NULL THEN inside_ns END AS inside_ns, gpu_idle_ns, CASE WHEN kind IS NOT NULL THEN ranges END AS ranges
FROM summed WHERE idle_ns > 0
ORDER BY run, tool, rank, profile_id, process_id, device_id, idle_ns DESC, kind, domain, name;
