-- The time of each configuration that ncu measured, from an undisturbed tool: how long, of which launches, how sure, or why not.
-- @scope run
-- @requires _true_roofline_time _roofline_clock _ncu_metric
-- @param  timed_by       nsys or kineto; NULL: the best undisturbed tool of each run.
-- @param  over_ranks     'same' or 'each'.
-- @param  worst_place    1, 2 or 3: the worst grade that is taken is configuration, key or short_name.
-- @param  taken          'auto', 'all' or 'matched'.
-- @column configuration_id  Configuration of ncu.
-- @column counters_rank     Its rank.
-- @column rank              Rank of the launches; NULL: all ranks together.
-- @column time_tool         nsys or kineto.
-- @column time_gpu          Product name of their GPU.
-- @column time_grade        launch, configuration, key or short_name.
-- @column time_ranks        same rank, another rank or all ranks.
-- @column time_launches     all, or matched: only those that ncu counted.
-- @column launches          Their number.
-- @column duration_ns       Median.
-- @column min_duration_ns   Shortest.
-- @column max_duration_ns   Longest.
-- @column p5_duration_ns    5th percentile.
-- @column p95_duration_ns   95th percentile.
-- @column clocked           Launches whose clock was sampled; 0: none.
-- @column clock_domain      Whose clock that is: SM or GPC; NULL: none, or of both.
-- @column sampled_hz        Median of their mean clocks, as a clock of the SM: where ncu counted both, that of the GPC is scaled by ncu's.
-- @column min_sampled_hz    Lowest.
-- @column max_sampled_hz    Highest.
-- @column time_reason       Why there is no time, or none that belongs to the counters.
-- @column time_warning      Why the time may mislead.
CREATE MACRO _true_roofline_timed(timed_by := NULL, over_ranks := 'same', worst_place := 1, taken := 'auto') AS TABLE
WITH judged AS (
    SELECT *, grade IS NOT NULL AND place > worst_place AS is_refused,
        coalesce(place = 1 AND took.p95_ns > 1.5 * took.p5_ns, false) AS is_uneven,
        format('{:.1f} to {:.1f} µs (5th to 95th percentile)', took.p5_ns / 1e3, took.p95_ns / 1e3) AS extent
    FROM _true_roofline_time(timed_by := timed_by, over_ranks := over_ranks)
), decided AS (
    SELECT *, taken = 'matched' OR (taken = 'auto' AND is_uneven AND took_matched IS NOT NULL) AS only_matched
    FROM judged
), gpcs AS (  -- The GPC's clock is not the SM's on every GPU.
    SELECT m.configuration_id, max(k.sm_hz) / nullif(max(m.value), 0) AS sm_per_gpc
    FROM _ncu_metric AS m JOIN _roofline_clock AS k ON m.configuration_id = k.configuration_id
    WHERE m.metric = 'gpc__cycles_elapsed.avg.per_second'
    GROUP BY m.configuration_id
), told AS (
    SELECT *, CASE WHEN is_refused THEN NULL WHEN only_matched THEN took_matched ELSE took END AS used
    FROM decided
), clocked AS (
    SELECT *, CASE used.clock_domain WHEN 'SM' THEN 1 WHEN 'GPC' THEN coalesce(sm_per_gpc, 1) END AS to_sm
    FROM told LEFT JOIN gpcs USING (configuration_id)
)
SELECT
    configuration_id, counters_rank, rank, tool AS time_tool, gpu AS time_gpu,
    CASE WHEN (only_matched AND used IS NOT NULL) OR (all_matched AND place = 1) THEN 'launch' ELSE grade END AS time_grade,
    CASE WHEN used IS NULL THEN NULL WHEN rank IS NULL THEN 'all ranks' WHEN rank = counters_rank THEN 'same rank'
        ELSE 'another rank' END AS time_ranks,
    CASE WHEN used IS NOT NULL THEN CASE WHEN only_matched THEN 'matched' ELSE 'all' END END AS time_launches,
    used.launches AS launches, used.median_ns AS duration_ns, used.min_ns AS min_duration_ns, used.max_ns AS max_duration_ns,
    used.p5_ns AS p5_duration_ns, used.p95_ns AS p95_duration_ns,
    used.clocked AS clocked, used.clock_domain AS clock_domain, used.median_hz * to_sm AS sampled_hz,
    used.min_hz * to_sm AS min_sampled_hz, used.max_hz * to_sm AS max_sampled_hz,
    CASE
        WHEN tool IS NULL THEN 'neither nsys nor Kineto recorded kernels of this run'
        WHEN NOT records THEN tool || ' recorded no kernels of this run'
        WHEN grade IS NULL THEN tool || ' recorded no kernel of this name'
        WHEN is_refused THEN format('{0} timed this kernel only {1} (grade {2}, {3} launches): taken if grade {2} is asked for',
            tool, CASE place WHEN 2 THEN 'with another grid or block' ELSE 'in other variants' END, grade, took.launches)
        WHEN only_matched AND used IS NULL THEN 'which of the launches in ' || tool || ' ncu counted is not known'
        WHEN taken = 'auto' AND is_uneven AND NOT only_matched THEN format('its launches in {} take {}: they may differ in '
            || 'work, and which of them ncu counted is not known; ask for launches all to take their median', tool, extent)
    END AS time_reason,
    CASE WHEN used IS NOT NULL THEN nullif(concat_ws('; ',
        CASE WHEN place = 2 THEN 'timed with another grid or block' WHEN place = 3 THEN 'another variant was timed' END,
        CASE WHEN rank <> counters_rank THEN format('counters of rank {}', counters_rank) END,
        CASE WHEN taken = 'all' AND is_uneven THEN format('its launches in {} take {}: they may differ in work', tool, extent) END
    ), '') END AS time_warning
FROM clocked;
