-- Sizes of memory copies, sets and migrations by operation, per run and tool: the numbers of
-- `nsys stats cuda_gpu_mem_size_sum` (which prints MB of 1,000,000 bytes), plus percentiles.
-- All ranks, devices and processes of a run are pooled. Where no size was recorded, the sizes are NULL.
-- @scope run
-- @needs memory_ops
-- @alias cuda_gpu_mem_size_sum
-- @assumes The tool recorded the bytes of each operation; ranks and devices of a run are alike enough to be pooled.
-- @first kind, direction, total_bytes, operations, avg_bytes, max_bytes
-- @column run           Run (one workload in one configuration).
-- @column tool          Profiler: nsys or kineto. Never add them up: they saw the same operations.
-- @column total_bytes   Sum of the bytes moved or set.
-- @column operations    Number of operations.
-- @column avg_bytes     Mean size, to one decimal.
-- @column median_bytes  Median size: the mean of the middle two for an even number of operations.
-- @column min_bytes     Smallest size.
-- @column max_bytes     Largest size.
-- @column stddev_bytes  Sample standard deviation (n - 1), to one decimal; 0 for a single operation.
-- @column p5_bytes      5th percentile, interpolated linearly between the two nearest operations.
-- @column p95_bytes     95th percentile, interpolated the same way.
-- @column kind          memcpy, memset, migration (unified memory) or decompression (its bytes are the compressed ones).
-- @column direction     HtoD, DtoH, ...; NULL for memset.
CREATE VIEW memory_op_size_summary AS
WITH grouped AS (
    SELECT
        run, tool, kind, direction,
        TRY_CAST(sum(bytes) AS BIGINT) AS total_bytes,
        count(*) AS operations,
        count(bytes) AS sized,
        avg(bytes) AS mean,
        min(bytes) AS min_bytes,
        max(bytes) AS max_bytes,
        stddev_samp(bytes) AS deviation,
        quantile_cont(bytes, [0.05, 0.5, 0.95]) AS quantiles
    FROM memory_ops
    GROUP BY run, tool, kind, direction
)
SELECT
    run, tool, total_bytes, operations,
    round(mean, 1) AS avg_bytes,
    quantiles[2] AS median_bytes,
    min_bytes, max_bytes,
    CASE sized WHEN 1 THEN 0.0 ELSE round(deviation, 1) END AS stddev_bytes,
    round(quantiles[1], 1) AS p5_bytes,
    round(quantiles[3], 1) AS p95_bytes,
    kind, direction
FROM grouped
ORDER BY run, tool, total_bytes DESC NULLS LAST, kind, direction;
