-- The roofline: work, traffic, performance and roofs of every kernel that ncu measured, per memory level and precision.
-- @scope run
-- @needs counters
-- @requires _roofline_point _gpu_peak _datasheet _datasheet_misfit
-- @assumes Launches of one kernel_key, grid and block do the same work; counters of their replays may be joined.
-- @assumes Work is what is counted: integer, conversion and special-function instructions of the CUDA cores do not count.
-- @assumes The compute roof is ncu's peak per cycle times the clock it measured; the datasheet's is looked up by product name.
-- @param  kernel       Part of the kernel's name (any case); NULL for all.
-- @param  kernel_regex Regular expression that the name matches; NULL for all.
-- @param  assume_gpu   Product name for the datasheet peaks, where the report lacks it (ncu's CSV does) and its compute
--                      capability and SMs are the GPU's.
-- @param  force_gpu    Whether assume_gpu is taken for every kernel, unchecked.
-- @first name, roof_pct, precision, duration_ns, achieved_flop_per_s, arithmetic_intensity, launches
-- @column configuration_id                Configuration; key of ncu_by_config.
-- @column run                             Run.
-- @column rank                            Rank; NULL where unknown.
-- @column gpu                             Product name of the GPU; NULL where unknown.
-- @column compute_capability              Compute capability.
-- @column name                            Kernel name as ncu prints it.
-- @column short_name                      Base name of the kernel.
-- @column kernel_key                      Canonical name, the same in the three tools.
-- @column family                          Family of the kernel.
-- @column grid_x                          Grid size, x.
-- @column grid_y                          Grid size, y.
-- @column grid_z                          Grid size, z.
-- @column block_x                         Block size, x.
-- @column block_y                         Block size, y.
-- @column block_z                         Block size, z.
-- @column clock_control                   ncu --clock-control, where known.
-- @column cache_control                   ncu --cache-control, where known.
-- @column launches                        Launches measured.
-- @column summarised                      True where only averages over the launches are known.
-- @column simulated                       True where a capture behind it is simulated.
-- @column level                           dram, l2 or l1.
-- @column precision                       fp64, fp32, fp16, tensor_<path>; 'tensor' where tensor work was not counted; NULL:
--                                         nothing was.
-- @column is_main                         True for one precision of each configuration: the one that does most of the operations.
-- @column plottable                       Whether the kernel has a point: work and traffic of one launch and its duration, or
--                                         both as rates, are known and above 0.
-- @column not_plottable_reason            Why not, and what to collect.
-- @column warning                         Why the point may mislead.
-- @column duration_ns                     Median duration of a launch under ncu; NULL where ncu gave rates only.
-- @column min_duration_ns                 Shortest.
-- @column max_duration_ns                 Longest.
-- @column work_flop                       Operations of one launch (integer operations for integer paths).
-- @column work_definition                 How they were counted.
-- @column traffic_bytes                   Bytes that the level moved in one launch.
-- @column traffic_source                  Metrics behind them.
-- @column level_definition                Definition of the level's bytes; never compare two.
-- @column achieved_flop_per_s             work_flop / duration: what the kernel achieved; ncu's rate where the duration is
--                                         unknown.
-- @column achieved_bytes_per_s            traffic_bytes / duration, as above.
-- @column min_achieved_flop_per_s         No launch achieved less: of the least rates, else over the longest duration.
-- @column max_achieved_flop_per_s         No launch achieved more: of the greatest rates, else over the shortest duration.
-- @column min_achieved_bytes_per_s        No launch moved less, as above.
-- @column max_achieved_bytes_per_s        No launch moved more, as above.
-- @column arithmetic_intensity            work_flop / traffic_bytes, operations per byte; of the rates where the duration is
--                                         unknown.
-- @column ncu_chart_flop_per_s            Height in the roofline chart of Nsight Compute: operations per cycle times
--                                         ncu_chart_clock_hz.
-- @column ncu_chart_bytes_per_s           Bytes per second in that chart, as printed.
-- @column ncu_chart_arithmetic_intensity  ncu_chart_flop_per_s / ncu_chart_bytes_per_s.
-- @column ncu_chart_clock_hz              Clock of that chart.
-- @column peak_flop_per_s                 Compute roof: ncu's peak per cycle times roof_clock_hz.
-- @column peak_bytes_per_s                Memory roof: the peak bandwidth of the level, at roof_memory_clock_hz.
-- @column ridge_point                     peak_flop_per_s / peak_bytes_per_s: the intensity at which the two roofs meet.
-- @column roof_pct                        Achieved performance in % of the roof at this intensity; can exceed 100 (boost clocks).
--                                         Of a kernel of 0 operations: bandwidth in % of the memory roof.
-- @column roof_clock_hz                   SM clock that peak_flop_per_s holds for: the one during ncu's measurement.
-- @column roof_memory_clock_hz            Clock of the level that peak_bytes_per_s holds for, as above.
-- @column datasheet_peak_flop_per_s       Dense compute peak of the datasheet; scaled by SMs for a slice of a GPU.
-- @column datasheet_peak_bytes_per_s      Peak bandwidth of the datasheet; NULL for L1, and for a slice of a GPU.
-- @column datasheet_ridge_point           The same of the two peaks of the datasheet.
-- @column datasheet_roof_pct              The same of the datasheet's roof, scaled (but for DRAM) to roof_clock_hz; NULL where that is
--                                         unknown.
-- @column datasheet_clock_hz              Clock that the datasheet's compute peak holds for.
-- @column datasheet_gpu                   Row of gpu_peaks.
-- @column datasheet_source                Where the datasheet's numbers come from, and how they were scaled; or why assume_gpu
--                                         is not used.
-- @names kernel name, kernel_key
CREATE MACRO roofline(kernel := NULL, kernel_regex := NULL, assume_gpu := NULL, force_gpu := false) AS TABLE
WITH chosen AS MATERIALIZED (
    SELECT *, CASE WHEN force_gpu THEN coalesce(assume_gpu, gpu) ELSE coalesce(gpu, assume_gpu) END AS datasheet_name,
        -- Operations of all SMs in one cycle, which each GPU's datasheet has per SM.
        max(CASE WHEN precision = 'fp32' THEN peak_flop_per_s / roof_clock_hz END) OVER (PARTITION BY configuration_id) AS fp32_per_cycle
    FROM _roofline_point
    WHERE (kernel IS NULL OR contains(lower(name), lower(kernel)) OR contains(lower(kernel_key), lower(kernel)))
        AND (kernel_regex IS NULL OR regexp_matches(name, kernel_regex) OR regexp_matches(kernel_key, kernel_regex))
), sheets AS (
    SELECT datasheet_name, (SELECT datasheet FROM _datasheet(product := datasheet_name)) AS sheet FROM (SELECT DISTINCT datasheet_name FROM chosen)
), fitted AS (
    SELECT c.*, s.sheet, CASE WHEN c.gpu IS NULL AND NOT force_gpu THEN (SELECT misfit FROM _datasheet_misfit(
        sheet := s.sheet, product := c.datasheet_name, measured_cc := c.compute_capability, measured_sms := c.sm_count,
        fp32_per_cycle := c.fp32_per_cycle)) END AS misfit
    FROM chosen AS c LEFT JOIN sheets AS s ON s.datasheet_name = c.datasheet_name
), points AS (
    SELECT f.*, f.not_plottable_reason IS NULL AS plottable, g.name AS datasheet_gpu, g.source,
        -- A slice of a GPU has its share of the compute peak; its share of the memory is not in a datasheet.
        CASE WHEN f.sm_count = g.sm_count OR g.sm_count IS NULL OR force_gpu AND assume_gpu IS NOT NULL THEN 1
            WHEN f.sm_count IS NULL THEN CASE WHEN f.datasheet_name ILIKE '%mig%' THEN NULL ELSE 1 END
            WHEN f.sm_count < g.sm_count THEN f.sm_count / g.sm_count END AS share,
        g.dram_bytes_per_s, g.l2_bytes_per_s, k.flop_per_s, k.clock_hz AS datasheet_clock
    FROM fitted AS f
    LEFT JOIN gpu_peaks AS g ON g.name = f.sheet AND f.misfit IS NULL
    LEFT JOIN _gpu_peak AS k ON k.name = g.name AND k.peak_key = f.peak_key
), roofs AS (
    SELECT *, flop_per_s * share AS datasheet_peak_flop_per_s,
        CASE WHEN share = 1 AND level = 'dram' AND coalesce(compute_capability, '') NOT IN ('8.7', '11.0', '12.1') THEN dram_bytes_per_s
            WHEN share = 1 AND level = 'l2' THEN l2_bytes_per_s END AS datasheet_peak_bytes_per_s,
        coalesce(1e9 * work_flop / nullif(duration_ns, 0), rate_flop_per_s) AS achieved_flop_per_s,
        coalesce(1e9 * traffic_bytes / nullif(duration_ns, 0), ncu_chart_bytes_per_s) AS achieved_bytes_per_s,
        plottable OR coalesce(work_flop, rate_flop_per_s) = 0 AS has_share,
        roof_clock_hz / datasheet_clock AS slower, CASE level WHEN 'dram' THEN 1 ELSE slower END AS slower_level  -- it has its own clock
    FROM points
)
SELECT configuration_id, run, rank, gpu, compute_capability, name, short_name, kernel_key, family,
    grid_x, grid_y, grid_z, block_x, block_y, block_z, clock_control, cache_control, launches, summarised, simulated,
    level, precision, is_main, plottable, not_plottable_reason, warning, duration_ns, min_duration_ns, max_duration_ns,
    work_flop, work_definition, traffic_bytes, traffic_source, level_definition, achieved_flop_per_s, achieved_bytes_per_s,
    coalesce(least_flop_per_s, 1e9 * work_flop / nullif(max_duration_ns, 0)) AS min_achieved_flop_per_s,
    coalesce(greatest_flop_per_s, 1e9 * work_flop / nullif(min_duration_ns, 0)) AS max_achieved_flop_per_s,
    coalesce(least_bytes_per_s, 1e9 * traffic_bytes / nullif(max_duration_ns, 0)) AS min_achieved_bytes_per_s,
    coalesce(greatest_bytes_per_s, 1e9 * traffic_bytes / nullif(min_duration_ns, 0)) AS max_achieved_bytes_per_s,
    coalesce(work_flop / nullif(traffic_bytes, 0), rate_flop_per_s / nullif(ncu_chart_bytes_per_s, 0)) AS arithmetic_intensity,
    ncu_chart_flop_per_s, ncu_chart_bytes_per_s,
    ncu_chart_flop_per_s / nullif(ncu_chart_bytes_per_s, 0) AS ncu_chart_arithmetic_intensity, ncu_chart_clock_hz,
    peak_flop_per_s, peak_bytes_per_s, peak_flop_per_s / nullif(peak_bytes_per_s, 0) AS ridge_point,
    CASE WHEN has_share AND peak_bytes_per_s > 0 AND (peak_flop_per_s > 0 OR achieved_flop_per_s = 0)
        THEN 100 * greatest(achieved_flop_per_s / peak_flop_per_s, achieved_bytes_per_s / peak_bytes_per_s) END AS roof_pct,
    roof_clock_hz, roof_memory_clock_hz, datasheet_peak_flop_per_s, datasheet_peak_bytes_per_s,
    datasheet_peak_flop_per_s / nullif(datasheet_peak_bytes_per_s, 0) AS datasheet_ridge_point,
    CASE WHEN has_share AND datasheet_peak_bytes_per_s * slower_level > 0 AND (datasheet_peak_flop_per_s * slower > 0 OR achieved_flop_per_s = 0)
        THEN 100 * greatest(achieved_flop_per_s / (datasheet_peak_flop_per_s * slower), achieved_bytes_per_s / (datasheet_peak_bytes_per_s * slower_level))
        END AS datasheet_roof_pct,
    datasheet_clock AS datasheet_clock_hz, datasheet_gpu,
    coalesce(source || CASE WHEN share < 1 THEN '; scaled to ' || sm_count || ' SMs' WHEN share IS NULL
        THEN '; not used: the GPU has other SMs' WHEN force_gpu AND assume_gpu IS NOT NULL THEN '; forced' ELSE '' END,
        sheet || ' not used: ' || misfit) AS datasheet_source
FROM roofs
ORDER BY run, rank, name, grid_x, grid_y, grid_z, block_x, block_y, block_z, configuration_id, level_order, precision;
