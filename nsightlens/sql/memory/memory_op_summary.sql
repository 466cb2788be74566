-- Memory copies, sets and unified-memory migrations, per run and tool: time and bytes by kind and direction.
-- @scope run
-- @needs memory_ops
-- @alias cuda_gpu_mem_time_sum
-- @assumes Durations are those of the copy engines as recorded: concurrent operations count separately, so totals are not wall
--     time.
-- @assumes Rates are bytes over time of the operations that have both.
-- @first kind, direction, total_ns, operations, total_bytes, bytes_per_s
-- @column run                 Run (one workload in one configuration).
-- @column tool                Profiler: nsys or kineto. Never add them up: they saw the same operations.
-- @column kind                memcpy, memset, migration (unified memory) or decompression (its bytes are the compressed ones).
-- @column direction           HtoD, DtoH, ...; NULL for memset.
-- @column source_memory       pageable, pinned, device, ...; NULL where the tool does not record it.
-- @column destination_memory  As source_memory, for the destination.
-- @column time_pct            Share of the summed time of memory operations of this run and tool, to one decimal.
-- @column total_ns            Sum of duration_ns.
-- @column operations          Number of operations.
-- @column avg_ns              Mean duration, to one decimal.
-- @column median_ns           Median duration.
-- @column min_ns              Shortest duration.
-- @column max_ns              Longest duration.
-- @column stddev_ns           Sample standard deviation (n - 1), to one decimal; 0 for a single operation.
-- @column total_bytes         Bytes moved or set.
-- @column bytes_per_s         Bytes divided by time (the finer duration where there is one), where both are known.
CREATE VIEW memory_op_summary AS
WITH grouped AS (
    SELECT
        run, tool, kind, direction, source_memory, destination_memory,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
        count(*) AS operations,
        count(duration_ns) AS timed,
        avg(duration_ns) AS mean,
        quantile_cont(duration_ns, 0.5) AS median_ns,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        stddev_samp(duration_ns) AS deviation,
        TRY_CAST(sum(bytes) AS BIGINT) AS total_bytes,
        1e9 * sum(bytes) FILTER (duration_ns IS NOT NULL)
            / nullif(sum(coalesce(bandwidth_duration_ns, duration_ns)) FILTER (bytes IS NOT NULL), 0) AS bytes_per_s
    FROM memory_ops
    GROUP BY run, tool, kind, direction, source_memory, destination_memory
)
SELECT
    run, tool, kind, direction, source_memory, destination_memory,
    round(100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY run, tool), 0), 1) AS time_pct,
    total_ns, operations,
    round(mean, 1) AS avg_ns,
    median_ns, min_ns, max_ns,
    CASE timed WHEN 1 THEN 0.0 ELSE round(deviation, 1) END AS stddev_ns,
    total_bytes, bytes_per_s
FROM grouped
ORDER BY run, tool, total_ns DESC NULLS LAST, kind, direction, source_memory, destination_memory;
