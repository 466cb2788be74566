-- How much each tool changes what it measures, as ratios of one tool to a less disturbing one, and which number to quote for
-- which question. Four quantities: kernel_duration (ncu against nsys and Kineto, Kineto against nsys), launch_gap (Kineto
-- against nsys, between matched neighbours of a stream), step_time (an execution with a profiler against one without, by the
-- workload's own clock; only with rankNNNN.steps.json) and held_up (overhead that the tool recorded itself: the time of all
-- processes against its part in which the profiler held up none of their threads). Grade launch compares the same launches;
-- grade configuration compares medians of each kernel key, grid and block over all ranks (with ncu only if these launches take
-- about the same time, so it does not matter which of them ncu measured).
-- @scope run
-- @requires _duration_pairs _gap_pairs _step_time_pairs profiler_share
-- @assumes The executions did the same work on the same GPUs.
-- @assumes held_up is what the tool recorded of itself: holding up a thread that nothing waits for costs nothing, and time added
--     to calls is not included.
-- @assumes A difference within 2 % (durations, step time) or 10 % (gaps) does not count. nsys has overhead too: only step_time
--     shows it.
-- @column run            Run.
-- @column quantity       kernel_duration, launch_gap, step_time or held_up.
-- @column tool           The tool under test.
-- @column other_tool     What it is compared with: nsys, kineto or none (no profiler).
-- @column clock_control  ncu --clock-control, where known.
-- @column part           all, compute (all but collectives) or a family; of step_time the segment of steps, such as measure.
-- @column grade          launch, configuration, steps, or recorded (held_up).
-- @column samples        Pairs of launches, configurations, gaps, steps under `tool`, or processes.
-- @column launches       Launches of other_tool that they stand for.
-- @column tool_ns        Their time in `tool` (configuration: median times launches); of step_time the mean step; of held_up
--                        all time; rounded to 1 ns.
-- @column other_ns       The same in other_tool.
-- @column ratio          tool_ns over other_ns: weighted by time.
-- @column median_ratio   Median of the ratios of the samples (step_time: ratio of the medians of the host's times).
-- @column p5_ratio       5th percentile of the ratios.
-- @column p95_ratio      95th percentile.
-- @column verdict        Which number may be quoted for which question.
CREATE VIEW profiler_overhead AS
WITH sampled AS (
    SELECT run, 'kernel_duration' AS quantity, tool, other_tool, clock_control, grade, launches, tool_ns, other_ns,
        unnest(list_filter(['all', CASE WHEN family IS DISTINCT FROM 'collective' THEN 'compute' END, family],
            lambda x: x IS NOT NULL)) AS part
    FROM _duration_pairs
    UNION ALL BY NAME
    SELECT run, 'launch_gap' AS quantity, 'kineto' AS tool, 'nsys' AS other_tool, 'launch' AS grade, 1 AS launches,
        kineto_ns AS tool_ns, nsys_ns AS other_ns, 'all' AS part
    FROM _gap_pairs
), compared AS (
    SELECT run, quantity, tool, other_tool, clock_control, part, grade, count(*) AS samples,
        CAST(sum(launches) AS BIGINT) AS launches, CAST(round(sum(tool_ns * launches)) AS BIGINT) AS tool_ns,
        CAST(round(sum(other_ns * launches)) AS BIGINT) AS other_ns,
        quantile_cont(tool_ns / nullif(other_ns, 0), [0.05, 0.5, 0.95]) AS ratios
    FROM sampled
    GROUP BY ALL
), rated AS (
    SELECT *, tool_ns / nullif(other_ns, 0) AS ratio FROM compared
    UNION ALL BY NAME
    SELECT run, 'step_time' AS quantity, profiler AS tool, 'none' AS other_tool, segment_name AS part, 'steps' AS grade,
        steps AS samples, CAST(round(tool_ns) AS BIGINT) AS tool_ns, CAST(round(plain_ns) AS BIGINT) AS other_ns,
        tool_ns / nullif(plain_ns, 0) AS ratio, [NULL, host_ratio, NULL] AS ratios
    FROM _step_time_pairs
    UNION ALL BY NAME
    SELECT run, 'held_up' AS quantity, tool, 'none' AS other_tool, 'all' AS part, 'recorded' AS grade, count(*) AS samples,
        TRY_CAST(sum(span_ns) AS BIGINT) AS tool_ns, TRY_CAST(sum(span_ns - profiler_ns) AS BIGINT) AS other_ns,
        sum(span_ns) / nullif(sum(span_ns - profiler_ns), 0) AS ratio
    FROM profiler_share
    WHERE span_ns > 0
    GROUP BY run, tool
)
SELECT
    run, quantity, tool, other_tool, clock_control, part, grade, samples, launches, tool_ns, other_ns, round(ratio, 4) AS ratio,
    round(ratios[2], 4) AS median_ratio, round(ratios[1], 4) AS p5_ratio, round(ratios[3], 4) AS p95_ratio,
    CASE
        WHEN quantity = 'held_up' AND 50 * (tool_ns - other_ns) <= tool_ns
            THEN format('{} held up threads for at most 2 % of the time: it may be left out of account', tool)
        WHEN quantity = 'held_up' THEN format('{} held up threads for {:.1f} % of the time: up to that much of the host''s time, and '
            'of the idle time of the GPUs, is its own; record less (nsys profile --sample=none --cpuctxsw=none)', tool, 100.0 * (tool_ns - other_ns) / tool_ns)
        WHEN ratio IS NULL THEN NULL
        WHEN part = 'collective' THEN 'cannot tell: a collective lasts as long as it waits for other ranks'
        WHEN tool = 'ncu' AND quantity = 'kernel_duration' THEN format(
            'quote {} for time; ncu for operations, bytes and rates: under it this took {:.2f} times as long', other_tool, ratio)
        WHEN quantity = 'kernel_duration' AND abs(ratio - 1) <= 0.02 AND abs(ratios[2] - 1) <= 0.02
            THEN 'either may be quoted for kernel time: they agree within 2 %'
        WHEN quantity = 'kernel_duration' THEN format(
            'quote nsys for kernel time: under Kineto this took {:.2f} times as long (median {:.2f})', ratio, ratios[2])
        WHEN quantity = 'launch_gap' AND abs(ratio - 1) <= 0.1 AND coalesce(abs(ratios[2] - 1) <= 0.1, true)
            THEN 'either may be quoted for gaps and idle time: they agree within 10 %'
        WHEN quantity = 'launch_gap' THEN format(
            'quote nsys for gaps, idle time and launch overhead: under Kineto gaps took {:.2f} times as long (median {:.2f})',
            ratio, ratios[2])
        WHEN abs(ratio - 1) <= 0.02 THEN format('step time and throughput under {} may be quoted: within 2 % of no profiler', tool)
        ELSE format(
            'quote the execution under no profiler for step time and throughput: under {} a step took {:.2f} times as long', tool, ratio)
    END AS verdict
FROM rated
ORDER BY run, quantity, tool, other_tool, clock_control, array_position(['all', 'compute'], part), part, grade;
