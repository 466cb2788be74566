-- For each kernel, how long other kernels of its process ran on the same GPU meanwhile: ones that communicate, and ones
-- that compute. Unions of intervals, exact to the ns. A sweep over starts and ends: the time up to each edge during which
-- at least one or two kernels of a class ran is summed; what fell on a kernel is the difference of its two edges.
-- @scope rows
-- @requires _bounded_kernels
-- @param  communication_pattern  Regex of the kernel names that communicate; NULL: family `collective`.
-- @column run                    Run.
-- @column tool                   nsys or kineto.
-- @column rank                   Rank of the process.
-- @column profile_id             Profile.
-- @column window_index           Capture window.
-- @column process_id             OS process.
-- @column device_id              The physical GPU.
-- @column kernel_id              The kernel.
-- @column name                   Its name.
-- @column communicates           It is a kernel that communicates.
-- @column duration_ns            Its duration.
-- @column beside_communication   Time (ns) in which another kernel that communicates ran.
-- @column beside_compute         Time (ns) in which another kernel that does not communicate ran.
CREATE MACRO _kernel_overlap(communication_pattern := NULL) AS TABLE
WITH work AS (
    SELECT run, tool, rank, profile_id, window_index, process_id, device_id, kernel_id, name, start_ns, duration_ns,
        coalesce(CASE WHEN communication_pattern IS NULL THEN family = 'collective'
            ELSE regexp_matches(name, communication_pattern) END, false) AS communicates
    FROM _bounded_kernels
    WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns > 0
), edges AS (
    SELECT *, start_ns AS at_ns, 1 AS change FROM work
    UNION ALL
    SELECT *, start_ns + duration_ns, -1 FROM work
), counted AS (
    -- all edges of one instant see the same counts; the last of them holds the length up to the next instant
    SELECT *,
        coalesce(sum(change) FILTER (communicates) OVER instants, 0) AS communicating,
        coalesce(sum(change) FILTER (NOT communicates) OVER instants, 0) AS computing,
        lead(at_ns) OVER edge_by_edge - at_ns AS length_ns
    FROM edges
    WINDOW instants AS (PARTITION BY profile_id, window_index, process_id, device_id ORDER BY at_ns),
        edge_by_edge AS (PARTITION BY profile_id, window_index, process_id, device_id ORDER BY at_ns, kernel_id, change)
), summed AS (
    SELECT *,
        coalesce(sum(length_ns) FILTER (communicating > 0) OVER earlier, 0) AS one_communicated,
        coalesce(sum(length_ns) FILTER (communicating > 1) OVER earlier, 0) AS two_communicated,
        coalesce(sum(length_ns) FILTER (computing > 0) OVER earlier, 0) AS one_computed,
        coalesce(sum(length_ns) FILTER (computing > 1) OVER earlier, 0) AS two_computed
    FROM counted
    WINDOW earlier AS (PARTITION BY profile_id, window_index, process_id, device_id ORDER BY at_ns, kernel_id, change
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
SELECT run, tool, rank, profile_id, window_index, process_id, device_id, kernel_id, name, communicates, duration_ns,
    TRY_CAST(sum(-change * CASE WHEN communicates THEN two_communicated ELSE one_communicated END) AS BIGINT) AS beside_communication,
    TRY_CAST(sum(-change * CASE WHEN communicates THEN one_computed ELSE two_computed END) AS BIGINT) AS beside_compute
FROM summed
GROUP BY ALL;
