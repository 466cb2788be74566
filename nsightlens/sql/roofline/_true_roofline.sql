-- The rows of true_roofline whose work and traffic are from ncu's counters.
-- @scope run
-- @requires roofline _true_roofline_timed _true_roofline_clock
-- @param  kernel         As in roofline.
-- @param  kernel_regex   As in roofline.
-- @param  assume_gpu     As in roofline.
-- @param  force_gpu      As in roofline.
-- @param  timed_by       As `time` of true_roofline.
-- @param  worst_place    1, 2 or 3: the worst grade that is taken is configuration, key or short_name.
-- @param  over_ranks     As `ranks` of true_roofline.
-- @param  taken          As `launches` of true_roofline.
-- @column configuration_id            Configuration of the counters; key of ncu_by_config.
-- @column run                         Run.
-- @column rank                        Rank of the launches whose time it is; NULL: all ranks together.
-- @column counters_rank               Rank that ncu measured; NULL where unknown.
-- @column gpu                         Product name of the GPU that ncu measured; NULL where unknown.
-- @column compute_capability          Its compute capability.
-- @column name                        Kernel name as ncu prints it.
-- @column short_name                  Base name of the kernel.
-- @column kernel_key                  Canonical name, the same in the three tools.
-- @column family                      Family of the kernel.
-- @column grid_x                      Grid size, x.
-- @column grid_y                      Grid size, y.
-- @column grid_z                      Grid size, z.
-- @column block_x                     Block size, x.
-- @column block_y                     Block size, y.
-- @column block_z                     Block size, z.
-- @column clock_control               ncu --clock-control, where known.
-- @column cache_control               ncu --cache-control, where known.
-- @column summarised                  True where only averages over ncu's launches are known.
-- @column simulated                   True where a capture behind it is simulated.
-- @column level                       dram, l2 or l1.
-- @column precision                   As in roofline.
-- @column is_main                     True for one precision of each configuration: the one that does most of the operations.
-- @column plottable                   Whether the kernel has a point: work, traffic and duration are known and above 0.
-- @column not_plottable_reason        Why not: what to collect, or what keeps the time from belonging to the counters.
-- @column warning                     Why the point may mislead.
-- @column time_tool                   Tool whose time it is: nsys or kineto.
-- @column time_grade                  How sure the launches are those of the counters: launch, configuration, key or short_name.
-- @column time_ranks                  same rank, another rank (than ncu measured) or all ranks.
-- @column time_launches               all launches of the configuration, or matched: only those that ncu counted.
-- @column launches                    Launches behind the time.
-- @column duration_ns                 Their median duration, rounded to 1 ns.
-- @column min_duration_ns             Shortest.
-- @column max_duration_ns             Longest.
-- @column p5_duration_ns              5th percentile, interpolated linearly between the two nearest launches, rounded to 1 ns.
-- @column p95_duration_ns             95th percentile, interpolated the same way.
-- @column work_source                 counters, or shapes: from those of the operator, where nothing counted.
-- @column work_flop                   Operations of one launch (integer operations for integer paths).
-- @column work_definition             How they were counted.
-- @column traffic_bytes               Bytes that the level moved in one launch.
-- @column traffic_source              Metrics behind them.
-- @column level_definition            Definition of the level's bytes; never compare two.
-- @column achieved_flop_per_s         work_flop / duration: what the kernel achieved.
-- @column achieved_bytes_per_s        traffic_bytes / duration: what the kernel achieved.
-- @column arithmetic_intensity        work_flop / traffic_bytes, operations per byte.
-- @column ncu_launches                Launches that ncu measured.
-- @column ncu_duration_ns             Their median duration under ncu.
-- @column ncu_achieved_flop_per_s     work_flop / ncu_duration: ncu's own point, of the same intensity.
-- @column peak_flop_per_s             Compute roof: ncu's peak per cycle times roof_clock_hz.
-- @column peak_bytes_per_s            Memory roof: the peak bandwidth of ncu's report; that of L1 scaled to roof_clock_hz.
-- @column ridge_point                 peak_flop_per_s / peak_bytes_per_s: the intensity at which the two roofs meet.
-- @column roof_pct                    Achieved performance in % of the roof at this intensity; can exceed 100 (boost clocks).
-- @column roof_clock_hz               SM clock that peak_flop_per_s holds for; roof_clock_source says whose.
-- @column roof_clock_source           Whose clock that is: sampled, rated, highest (with who states it), or ncu's, locked or not.
-- @column min_roof_clock_hz           Where it was sampled: the lowest of a launch; roof_clock_hz is their median.
-- @column max_roof_clock_hz           The highest.
-- @column sampled_launches            Launches whose clock was sampled; NULL where roof_clock_source is another.
-- @column ncu_clock_hz                SM clock while ncu measured.
-- @column datasheet_peak_flop_per_s   Dense compute peak of the datasheet; scaled by SMs for a slice of a GPU.
-- @column datasheet_peak_bytes_per_s  Peak bandwidth of the datasheet; NULL for L1, and for a slice of a GPU.
-- @column datasheet_ridge_point       The same of the two peaks of the datasheet.
-- @column datasheet_roof_pct          Achieved performance in % of the datasheet's roof at this intensity, scaled to roof_clock_hz.
-- @column datasheet_clock_hz          Clock that the datasheet's compute peak holds for.
-- @column datasheet_gpu               Row of gpu_peaks.
-- @column datasheet_source            Where the datasheet's numbers come from, and how they were scaled.
CREATE MACRO _true_roofline(
    kernel := NULL, kernel_regex := NULL, assume_gpu := NULL, force_gpu := false, timed_by := NULL, worst_place := 1, over_ranks := 'same',
    taken := 'auto'
) AS TABLE
WITH joined AS (
    SELECT
        r.* EXCLUDE (rank, launches, duration_ns, min_duration_ns, max_duration_ns, warning), t.* EXCLUDE (configuration_id),
        r.launches AS ncu_launches, r.duration_ns AS ncu_duration_ns, r.roof_clock_hz AS ncu_clock_hz, c.stated,
        c.rated_hz, coalesce(lower(r.gpu) <> lower(t.time_gpu), false) AS is_other_gpu, r.warning AS counters_warning,
        -- ncu's own duration is not needed here.
        CASE WHEN r.plottable AND (work_flop IS NULL OR traffic_bytes IS NULL)
                THEN 'ncu gave rates without a duration, so that the work of a launch is unknown: collect gpu__time_duration.sum'
            WHEN NOT (starts_with(r.not_plottable_reason, 'no duration:') AND work_flop > 0 AND traffic_bytes > 0)
            THEN r.not_plottable_reason END AS counters_reason,
        t.sampled_hz / r.roof_clock_hz IS NOT NULL AND NOT is_other_gpu AS is_sampled,
        -- A clock that ncu measured may be above the rated one: the GPU can run at it.
        CASE WHEN is_sampled THEN t.sampled_hz / r.roof_clock_hz
            WHEN c.rated_hz > r.roof_clock_hz AND NOT is_other_gpu THEN c.rated_hz / r.roof_clock_hz ELSE 1 END AS faster
    FROM roofline(kernel := kernel, kernel_regex := kernel_regex, assume_gpu := assume_gpu, force_gpu := force_gpu) AS r
    JOIN _true_roofline_timed(timed_by := timed_by, over_ranks := over_ranks, worst_place := worst_place, taken := taken) AS t
        ON r.configuration_id = t.configuration_id
    LEFT JOIN _true_roofline_clock AS c ON r.run = c.run AND t.time_gpu = c.gpu
), roofs AS (
    SELECT
        * REPLACE (coalesce(CASE WHEN time_grade IS NULL THEN time_reason END, counters_reason, time_reason) AS not_plottable_reason,
            peak_flop_per_s * faster AS peak_flop_per_s,
            peak_bytes_per_s * CASE level WHEN 'l1' THEN faster ELSE 1 END AS peak_bytes_per_s,
            CASE WHEN is_sampled THEN sampled_hz WHEN faster > 1 THEN rated_hz ELSE roof_clock_hz END AS roof_clock_hz),
        CASE WHEN time_reason IS NULL THEN duration_ns END AS ns
    FROM joined
)
SELECT
    configuration_id, run, rank, counters_rank, gpu, compute_capability, name, short_name, kernel_key, family,
    grid_x, grid_y, grid_z, block_x, block_y, block_z, clock_control, cache_control, summarised, simulated, level, precision, is_main,
    not_plottable_reason IS NULL AS plottable, not_plottable_reason,
    nullif(concat_ws('; ', counters_warning, time_warning,
        CASE WHEN is_other_gpu AND ns > 0 THEN 'timed on another GPU, ' || time_gpu END,
        -- No kernel moves bytes faster than the roof: some of those that ncu counted were not moved.
        CASE WHEN not_plottable_reason IS NULL AND 1e9 * traffic_bytes / ns > 1.02 * peak_bytes_per_s
            THEN 'more ' || upper(level) || ' traffic than the roof allows: caches keep what ncu flushes between launches' END
    ), '') AS warning,
    time_tool, time_grade, time_ranks, time_launches, launches, duration_ns, min_duration_ns, max_duration_ns, p5_duration_ns,
    p95_duration_ns, 'counters' AS work_source, work_flop, work_definition, traffic_bytes, traffic_source, level_definition,
    1e9 * work_flop / ns AS achieved_flop_per_s, 1e9 * traffic_bytes / ns AS achieved_bytes_per_s,
    work_flop / nullif(traffic_bytes, 0) AS arithmetic_intensity,
    ncu_launches, ncu_duration_ns, 1e9 * work_flop / nullif(ncu_duration_ns, 0) AS ncu_achieved_flop_per_s,
    peak_flop_per_s, peak_bytes_per_s, peak_flop_per_s / nullif(peak_bytes_per_s, 0) AS ridge_point,
    CASE WHEN not_plottable_reason IS NULL AND peak_flop_per_s > 0 AND peak_bytes_per_s > 0 THEN 1e11 / ns
        * greatest(work_flop / peak_flop_per_s, traffic_bytes / peak_bytes_per_s) END AS roof_pct,
    roof_clock_hz, CASE WHEN is_sampled THEN format('sampled {} clock of these launches, by {}', clock_domain, time_tool)
        WHEN ncu_clock_hz IS NULL THEN NULL WHEN faster > 1 THEN stated
        WHEN clock_control = 'base' THEN 'locked clock of ncu' WHEN clock_control = 'none' THEN 'clock under ncu, not locked'
        ELSE 'clock under ncu' END AS roof_clock_source,
    CASE WHEN is_sampled THEN min_sampled_hz END AS min_roof_clock_hz, CASE WHEN is_sampled THEN max_sampled_hz END AS max_roof_clock_hz,
    CASE WHEN is_sampled THEN clocked END AS sampled_launches, ncu_clock_hz, datasheet_peak_flop_per_s, datasheet_peak_bytes_per_s, datasheet_ridge_point,
    CASE WHEN not_plottable_reason IS NULL AND datasheet_peak_flop_per_s * roof_clock_hz / datasheet_clock_hz > 0 AND datasheet_peak_bytes_per_s > 0
        THEN 1e11 / ns * greatest(work_flop / (datasheet_peak_flop_per_s * roof_clock_hz / datasheet_clock_hz), traffic_bytes / (datasheet_peak_bytes_per_s * CASE level WHEN 'dram' THEN 1 ELSE roof_clock_hz / datasheet_clock_hz END)) END AS datasheet_roof_pct,
    datasheet_clock_hz, datasheet_gpu, datasheet_source
FROM roofs
ORDER BY run, rank, name, grid_x, grid_y, grid_z, block_x, block_y, block_z, configuration_id, counters_rank, level = 'l1', level, precision;
