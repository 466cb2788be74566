-- CPU-side ranges by name, per run and tool: the numbers of `nsys stats nvtx_sum`, plus percentiles. On nsys data the
-- NVTX ranges and the directives of OpenACC and OpenMP, on Kineto data the annotations, operators, modules and steps. Marks and GPU-side copies are left out.
-- Ranges nest: their totals are not wall time. A range that was never closed counts as an instance only (nsys itself
-- lets it last to the end of the capture). nsys prints the range as domain:name. Names are without the numbers (op_id,
-- seq, sizes) that PyTorch writes into NVTX texts: nsys has a row for each of those texts.
-- @scope run
-- @needs ranges
-- @alias nvtx_sum
-- @alias nccl_sum only_domain=NCCL
-- @alias openacc_sum only_kind=openacc
-- @alias openmp_sum only_kind=openmp
-- @assumes Names without their numbers name the same thing: ranges that differ in seq, op_id or sizes only are one row.
-- @column run        Run (one workload in one configuration).
-- @column tool       Profiler: nsys or kineto. Never add them up: they saw the same work.
-- @column time_pct   Share of the summed time of all these ranges of this run and tool, to one decimal; of OpenACC and of OpenMP
--     among their own.
-- @column total_ns   Sum of duration_ns.
-- @column instances  Number of ranges.
-- @column avg_ns     Mean duration, to one decimal.
-- @column median_ns  Median duration: the mean of the middle two for an even number of ranges.
-- @column min_ns     Shortest duration.
-- @column max_ns     Longest duration.
-- @column stddev_ns  Sample standard deviation (n - 1), to one decimal; 0 for a single range.
-- @column p5_ns      5th percentile, interpolated linearly between the two nearest ranges.
-- @column p95_ns     95th percentile, interpolated the same way.
-- @column kind       nvtx_push_pop, nvtx_start_end, openacc, openmp, annotation, operator, module or step; see `ranges`.
-- @column domain     NVTX domain; NULL for the default domain and on Kineto data.
-- @column name       Name of the range.
CREATE VIEW nvtx_summary AS
WITH grouped AS (
    SELECT
        run, tool, kind, domain, name,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
        count(*) AS instances,
        count(duration_ns) AS timed,
        avg(duration_ns) AS mean,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        stddev_samp(duration_ns) AS deviation,
        quantile_cont(duration_ns, [0.05, 0.5, 0.95]) AS quantiles
    FROM ranges
    WHERE kind NOT IN ('nvtx_mark', 'gpu_annotation')
    GROUP BY run, tool, kind, domain, name
)
SELECT
    run, tool,
    round(100.0 * total_ns / nullif(sum(total_ns) OVER (
        PARTITION BY run, tool, CASE WHEN kind IN ('openacc', 'openmp') THEN kind END), 0), 1) AS time_pct,
    total_ns, instances,
    round(mean, 1) AS avg_ns,
    quantiles[2] AS median_ns,
    min_ns, max_ns,
    CASE timed WHEN 1 THEN 0.0 ELSE round(deviation, 1) END AS stddev_ns,
    round(quantiles[1], 1) AS p5_ns,
    round(quantiles[3], 1) AS p95_ns,
    kind, domain, name
FROM grouped
ORDER BY run, tool, total_ns DESC NULLS LAST, kind, domain, name;
