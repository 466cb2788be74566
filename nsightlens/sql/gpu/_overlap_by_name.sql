-- How long other kernels ran while the kernels of each name did, per process and GPU: ones that communicate, and ones that
-- compute. Copies that a collective runs as are kernels here. Unions of intervals, exact to the ns. A sweep over starts and ends:
-- the time up to each edge during which at least
-- one or two kernels of a class ran is summed; what fell on a kernel is the difference of its two edges, and what fell on all
-- kernels of a name the sum over their edges. nccl_overlap and exposed_communication have their rows from here.
-- @scope profile
-- @requires _bounded_kernels, memory_ops
-- @param  per                    Where kernels meet: 'process_device', 'device' or 'process'.
-- @param  communication_pattern  Regex of the kernel names that communicate; NULL: family `collective`.
-- @column run                    Run.
-- @column tool                   nsys or kineto.
-- @column rank                   Rank of the process.
-- @column profile_id             Profile.
-- @column window_index           Capture window.
-- @column process_id             OS process.
-- @column device_id              The physical GPU.
-- @column name                   Kernel name.
-- @column communicates           They are kernels that communicate.
-- @column instances              Kernels.
-- @column lasting                Those whose duration is above 0.
-- @column total_ns               Sum of their durations.
-- @column beside_communication   Time (ns) in which another kernel that communicates ran, summed over them.
-- @column beside_compute         Time (ns) in which another kernel that does not communicate ran, as above.
CREATE MACRO _overlap_by_name(per := 'process_device', communication_pattern := NULL) AS TABLE
WITH work AS NOT MATERIALIZED (
    SELECT run, tool, rank, profile_id, window_index, process_id, device_id, name, family, start_ns, duration_ns FROM _bounded_kernels
    UNION ALL SELECT run, tool, rank, profile_id, window_index, process_id, device_id, name, 'collective', start_ns, duration_ns
    FROM memory_ops WHERE collective IS NOT NULL AND communication_pattern IS NULL
), named AS MATERIALIZED (
    -- an odd code says that the kernels communicate, so that an edge needs no more than the code
    SELECT * EXCLUDE (family), dense_rank() OVER (ORDER BY profile_id, window_index, by_process, by_device)::INTEGER AS track,
        (2 * row_number() OVER (ORDER BY profile_id, window_index, process_id, device_id, rank, name, family)
            + communicates::INTEGER)::INTEGER AS code, family
    FROM (
        SELECT run, tool, rank, profile_id, window_index, process_id, device_id, name, family, count(*) AS instances,
            count(*) FILTER (duration_ns > 0) AS lasting, sum(duration_ns) AS total_ns,
            CASE WHEN per IN ('process_device', 'process') THEN process_id WHEN per <> 'device'
                THEN error('per is device or process') END AS by_process,
            CASE WHEN per IN ('process_device', 'device') THEN device_id END AS by_device,
            coalesce(CASE WHEN communication_pattern IS NULL THEN family = 'collective'
                ELSE regexp_matches(name, communication_pattern) END, false) AS communicates
        FROM work
        WHERE tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns >= 0
        GROUP BY run, tool, rank, profile_id, window_index, process_id, device_id, name, family
    )
), edges AS NOT MATERIALIZED (
    SELECT n.track, unnest([start_ns, start_ns + duration_ns]) AS at_ns, unnest([n.code, -n.code]) AS edge
    FROM work AS k
    JOIN named AS n ON n.profile_id = k.profile_id AND n.window_index IS NOT DISTINCT FROM k.window_index
        AND n.process_id IS NOT DISTINCT FROM k.process_id AND n.device_id IS NOT DISTINCT FROM k.device_id
        AND n.rank IS NOT DISTINCT FROM k.rank AND n.name IS NOT DISTINCT FROM k.name AND n.family IS NOT DISTINCT FROM k.family
    WHERE k.tool <> 'ncu' AND k.start_ns IS NOT NULL AND k.duration_ns > 0
    ORDER BY track, at_ns
), counted AS NOT MATERIALIZED (
    -- a streaming window, as in _gpu_states
    SELECT edge, CASE WHEN lead(track) OVER () = track THEN lead(at_ns) OVER () - at_ns ELSE 0 END AS length_ns,
        sum(CASE WHEN edge & 1 = 1 THEN sign(edge) ELSE 0 END) OVER (ROWS UNBOUNDED PRECEDING) AS communicating,
        sum(CASE WHEN edge & 1 = 0 THEN sign(edge) ELSE 0 END) OVER (ROWS UNBOUNDED PRECEDING) AS computing
    FROM edges
), lengths AS NOT MATERIALIZED (
    SELECT edge, CASE WHEN communicating > 0 THEN length_ns ELSE 0 END AS one_communicates,
        CASE WHEN communicating > 1 THEN length_ns ELSE 0 END AS two_communicate,
        CASE WHEN computing > 0 THEN length_ns ELSE 0 END AS one_computes, CASE WHEN computing > 1 THEN length_ns ELSE 0 END AS two_compute
    FROM counted
), summed AS (
    SELECT abs(edge) AS code, sum(-sign(edge) * CASE WHEN edge & 1 = 1 THEN two_communicated ELSE one_communicated END) AS beside_communication,
        sum(-sign(edge) * CASE WHEN edge & 1 = 1 THEN one_computed ELSE two_computed END) AS beside_compute
    FROM (
        -- before each edge, the time after it left out: of the edges of one instant only the last has some
        SELECT edge, sum(one_communicates) OVER (ROWS UNBOUNDED PRECEDING) - one_communicates AS one_communicated,
            sum(two_communicate) OVER (ROWS UNBOUNDED PRECEDING) - two_communicate AS two_communicated,
            sum(one_computes) OVER (ROWS UNBOUNDED PRECEDING) - one_computes AS one_computed,
            sum(two_compute) OVER (ROWS UNBOUNDED PRECEDING) - two_compute AS two_computed
        FROM lengths
    ) GROUP BY abs(edge)
)
SELECT n.run, n.tool, n.rank, n.profile_id, n.window_index, n.process_id, n.device_id, n.name, n.communicates,
    TRY_CAST(sum(n.instances) AS BIGINT) AS instances, TRY_CAST(sum(n.lasting) AS BIGINT) AS lasting,
    TRY_CAST(sum(n.total_ns) AS BIGINT) AS total_ns,
    TRY_CAST(coalesce(sum(s.beside_communication), 0) AS BIGINT) AS beside_communication,
    TRY_CAST(coalesce(sum(s.beside_compute), 0) AS BIGINT) AS beside_compute
FROM named AS n LEFT JOIN summed AS s USING (code)
GROUP BY n.run, n.tool, n.rank, n.profile_id, n.window_index, n.process_id, n.device_id, n.name, n.communicates;
