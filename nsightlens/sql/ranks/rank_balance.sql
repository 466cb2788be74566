-- How evenly the ranks share the work: GPU time of each kernel family, operator and step over the ranks of a run. A row is one
-- family, operator or step under one tool; the largest possible gain comes first. Durations are compared, never start times,
-- so clocks do not matter. A rank without the item does not count as zero: ranks is the number that have it. Communication
-- time includes waits: the rank with the most waited longest, and is not the slow one (see straggler); communication_pct is
-- the share of communication in an item.
-- @scope run
-- @needs ranks
-- @requires _rank_work
-- @assumes Ranks are known and were captured over the same part of the work: all of a rank's profiles of a tool are summed.
-- @assumes A step is a ProfilerStep of Kineto, or an NVTX range named like one (docs/attribution.md): one sequence per process.
-- @first item, imbalance_ns, cv_pct, max_rank, item_kind, ranks
-- @column run           Run (one workload in one configuration).
-- @column tool          nsys or kineto. Never add them up: they saw the same work.
-- @column item_kind     all, family, op or step.
-- @column item          The family, operator or step number; all for all kernels.
-- @column ranks         Ranks that have it.
-- @column all_ranks     Ranks of the run under this tool.
-- @column min_ns        Smallest sum of kernel durations over these ranks.
-- @column median_ns     Median.
-- @column max_ns        Largest.
-- @column imbalance_ns  max_ns minus median_ns: what the slowest rank costs, at most.
-- @column cv_pct        Coefficient of variation: standard deviation (of these ranks, not a sample) over mean.
-- @column max_rank      The rank of the largest, the lowest of several: the slowest one, or for communication who waited longest.
-- @column communication_pct Share of the item's time, over all ranks, that is communication with its waiting, to one decimal.
CREATE VIEW rank_balance AS
WITH sums AS (
    SELECT run, tool, item_kind, item, rank, TRY_CAST(sum(total_ns) AS BIGINT) AS total_ns, sum(communication_ns) AS communication_ns
    FROM _rank_work GROUP BY ALL
    UNION ALL
    SELECT run, tool, 'all', 'all', rank, TRY_CAST(sum(total_ns) AS BIGINT), sum(communication_ns)
    FROM _rank_work WHERE item_kind = 'family' GROUP BY ALL
), known AS (
    SELECT run, tool, count(DISTINCT rank) AS all_ranks FROM _rank_work GROUP BY ALL
)
SELECT
    run, tool, item_kind, item, count(*) AS ranks, any_value(all_ranks) AS all_ranks,
    min(total_ns) AS min_ns, round(median(total_ns))::BIGINT AS median_ns, max(total_ns) AS max_ns,
    max(total_ns) - round(median(total_ns))::BIGINT AS imbalance_ns,
    round(100 * stddev_pop(total_ns) / nullif(avg(total_ns), 0), 1) AS cv_pct,
    arg_max(rank, (total_ns, -rank)) AS max_rank,
    round(100.0 * sum(communication_ns) / nullif(sum(total_ns), 0), 1) AS communication_pct
FROM sums JOIN known USING (run, tool)
GROUP BY run, tool, item_kind, item
HAVING count(*) > 1
ORDER BY run, tool, array_position(['all', 'step', 'family', 'op'], item_kind), imbalance_ns DESC, item;
