-- The kernels and memory operations that take the most time, by kind and process: HTA's kernel breakdown. Durations are
-- summed: concurrent work counts separately. The names after the first how_many of a kind are
-- one row without a name. ncu has no row: its durations are those of replays.
-- @scope profile
-- @alias get_gpu_kernel_breakdown
-- @needs gpu_work
-- @requires _bounded_kernels
-- @assumes A kernel's name says whether it communicates: by its family, `collective`, or by communication_pattern.
-- @assumes Kernels that a tool hid in CUDA graphs are unknown and have no row.
-- @param  how_many               Names to list for each kind and process; NULL for all.
-- @param  communication_pattern  Regex of the kernel names that communicate; NULL: family `collective`. HTA takes
--     '^nccl.*Kernel'.
-- @first kernel_type, name, total_ns, time_pct, instances, avg_ns
-- @column run                    Run (one workload in one configuration).
-- @column tool                   nsys or kineto. Never add them up: they saw the same work.
-- @column rank                   Rank of the process; NULL where unknown.
-- @column profile_id             Profile; key of `profiles`.
-- @column process_id             OS process.
-- @column kernel_type            compute, communication or memory.
-- @column position               1 for the name with the largest total; NULL for the row of all the others.
-- @column time_pct               total_ns as a share of type_ns, to one decimal.
-- @column total_ns               Sum of the durations.
-- @column instances              Kernels or memory operations.
-- @column avg_ns                 Mean duration, to one decimal.
-- @column stddev_ns              Sample standard deviation of the durations; NULL for a single one.
-- @column min_ns                 Shortest.
-- @column max_ns                 Longest.
-- @column type_ns                Sum of the durations of this kind in this process.
-- @column names                  Names in the row: 1, or how many the row of the others holds.
-- @column name                   Kernel name, or label of the memory operation, as the tool prints it.
-- @names kernel name
-- @balance type_ns = total_ns per run, tool, profile_id, process_id, kernel_type
CREATE MACRO kernel_breakdown(how_many := 10, communication_pattern := NULL) AS TABLE
WITH work AS (
    SELECT run, tool, profile_id, process_id, name, duration_ns,
        CASE WHEN CASE WHEN communication_pattern IS NULL THEN family = 'collective'
            ELSE regexp_matches(name, communication_pattern) END THEN 'communication' ELSE 'compute' END AS kernel_type
    FROM _bounded_kernels WHERE tool <> 'ncu' AND duration_ns >= 0
    UNION ALL
    SELECT run, tool, profile_id, process_id, name, duration_ns,
        CASE WHEN communication_pattern IS NULL AND collective IS NOT NULL THEN 'communication' ELSE 'memory' END
    FROM memory_ops WHERE tool <> 'ncu' AND duration_ns >= 0
), named AS (
    -- whole numbers: the deviation is the same whatever the order; of squares beyond 52 days it is unknown
    SELECT run, tool, profile_id, process_id, kernel_type, name, sum(duration_ns) AS total_ns, count(*) AS instances,
        sum(CASE WHEN duration_ns < 1::BIGINT << 52 THEN duration_ns::HUGEINT * duration_ns END) AS squares,
        min(duration_ns) AS min_ns, max(duration_ns) AS max_ns
    FROM work
    GROUP BY run, tool, profile_id, process_id, kernel_type, name
), ordered AS (
    SELECT *, row_number() OVER (PARTITION BY profile_id, process_id, kernel_type ORDER BY total_ns DESC, name) AS place
    FROM named
), grouped AS (
    SELECT run, tool, profile_id, process_id, kernel_type, position, CASE WHEN position IS NOT NULL THEN name END AS listed,
        TRY_CAST(sum(total_ns) AS BIGINT) AS total_ns, TRY_CAST(sum(instances) AS BIGINT) AS instances,
        sum(total_ns) / sum(instances) AS mean, sum(squares) AS squares, min(min_ns) AS min_ns, max(max_ns) AS max_ns, count(*) AS names
    FROM (SELECT *, CASE WHEN how_many IS NULL OR place <= how_many THEN place END AS position FROM ordered)
    GROUP BY run, tool, profile_id, process_id, kernel_type, position, listed
), deviating AS (
    SELECT *, CASE WHEN max_ns < 1::BIGINT << 52 AND instances > 1 AND instances * squares::DOUBLE < 1.7e38
        THEN sqrt((instances * squares - total_ns::HUGEINT * total_ns)::DOUBLE / instances / (instances - 1)) END AS stddev_ns
    FROM grouped
)
SELECT
    g.run, g.tool, p.rank, g.profile_id, g.process_id, g.kernel_type, position,
    round(100.0 * total_ns / nullif(sum(total_ns) OVER types, 0), 1) AS time_pct,
    total_ns, instances, round(mean, 1) AS avg_ns, stddev_ns, min_ns, max_ns,
    TRY_CAST(sum(total_ns) OVER types AS BIGINT) AS type_ns, names, g.listed AS name
FROM deviating AS g
LEFT JOIN processes AS p ON g.process_id = p.process_id AND g.profile_id = p.profile_id
WINDOW types AS (PARTITION BY g.profile_id, g.process_id, g.kernel_type)
ORDER BY g.run, g.tool, p.rank, g.profile_id, g.process_id, g.kernel_type, position NULLS LAST;
