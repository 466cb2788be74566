-- CPU-side ranges of one style by name, per run: the numbers of `nsys stats nvtx_pushpop_sum`, and with style := 'start_end' those
-- of nvtx_startend_sum. Shares are of the ranges of that style. Names are without the numbers (op_id, seq, sizes) that PyTorch
-- writes into NVTX texts: nsys has a row for each of those texts.
-- @scope run
-- @needs nvtx
-- @alias nvtx_pushpop_sum
-- @alias nvtx_startend_sum style=start_end
-- @assumes Names without their numbers name the same thing: ranges that differ in seq, op_id or sizes only are one row.
-- @assumes Ranges that stand for an operator, module or step are push/pop, as PyTorch's are.
-- @assumes A range that was never closed is an instance without duration; nsys lets it last to the end of the capture.
-- @param  style  push_pop or start_end.
-- @column run        Run (one workload in one configuration).
-- @column tool       nsys: the PyTorch profiler has no NVTX ranges.
-- @column time_pct   Share of the summed time of all these ranges of this run, to one decimal.
-- @column total_ns   Sum of duration_ns.
-- @column instances  Number of ranges.
-- @column avg_ns     Mean duration, to one decimal.
-- @column median_ns  Median duration: the mean of the middle two for an even number.
-- @column min_ns     Shortest duration.
-- @column max_ns     Longest duration.
-- @column stddev_ns  Sample standard deviation (n - 1), to one decimal; 0 for a single one.
-- @column domain     NVTX domain; NULL for the default domain.
-- @column name       Name of the range.
CREATE MACRO nvtx_style_summary(style := 'push_pop') AS TABLE
WITH chosen AS (
    SELECT *
    FROM ranges
    WHERE tool = 'nsys' AND kind NOT IN ('nvtx_mark', 'gpu_annotation') AND CASE style
        WHEN 'push_pop' THEN kind <> 'nvtx_start_end' WHEN 'start_end' THEN kind = 'nvtx_start_end'
        ELSE error('style is push_pop or start_end') END
), grouped AS (
    SELECT
        run, tool, domain, name,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
        count(*) AS instances,
        count(duration_ns) AS timed,
        avg(duration_ns) AS mean,
        quantile_cont(duration_ns, 0.5) AS median_ns,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        stddev_samp(duration_ns) AS deviation
    FROM chosen
    GROUP BY run, tool, domain, name
)
SELECT
    run, tool,
    round(100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY run, tool), 0), 1) AS time_pct,
    total_ns, instances,
    round(mean, 1) AS avg_ns,
    median_ns, min_ns, max_ns,
    CASE timed WHEN 1 THEN 0.0 ELSE round(deviation, 1) END AS stddev_ns,
    domain, name
FROM grouped
ORDER BY run, tool, total_ns DESC NULLS LAST, domain, name;
