-- The roofline: work, traffic, performance and roofs of every kernel that ncu measured, per memory level and precision.
-- @requires _roofline_point _gpu_peak
-- @assumes Launches of one kernel_key, grid and block do the same work; counters of their replays may be joined.
-- @assumes Work is what is counted: integer, conversion and special-function instructions of the CUDA cores are none.
-- @assumes The measured roof is ncu's peak per cycle times the clock it measured; that of the datasheet goes by product name.
-- @param  kernel       Part of the kernel's name (any case); NULL for all.
-- @param  kernel_regex Regular expression that the name matches; NULL for all.
-- @param  assume_gpu   Product name for the datasheet peaks, where the report does not tell it (ncu's CSV does not).
-- @column configuration_id           Configuration; key of ncu_configuration.
-- @column run                        Run.
-- @column rank                       Rank; NULL where unknown.
-- @column gpu                        Product name of the GPU; NULL where unknown.
-- @column compute_capability         Compute capability.
-- @column name                       Kernel name as ncu prints it.
-- @column short_name                 Base name of the kernel.
-- @column kernel_key                 Canonical name, the same in the three tools.
-- @column family                     Family of the kernel.
-- @column grid_x                     Grid size, x.
-- @column grid_y                     Grid size, y.
-- @column grid_z                     Grid size, z.
-- @column block_x                    Block size, x.
-- @column block_y                    Block size, y.
-- @column block_z                    Block size, z.
-- @column clock_control              ncu --clock-control, where known.
-- @column cache_control              ncu --cache-control, where known.
-- @column launches                   Launches measured.
-- @column summarised                 True where only averages over the launches are known.
-- @column simulated                  True where a capture behind it is simulated.
-- @column level                      dram, l2 or l1.
-- @column precision                  fp64, fp32, fp16, tensor_<path>; 'tensor' where tensor work was not counted; NULL: nothing was.
-- @column is_main                    True for one precision of each configuration: the one that does most of the operations.
-- @column placed                     Whether the point can be drawn.
-- @column not_placed_reason          Why not, and what to collect.
-- @column caution                    Why the point may mislead.
-- @column duration_ns                Median duration of a launch under ncu.
-- @column min_duration_ns            Shortest.
-- @column max_duration_ns            Longest.
-- @column work_flop                  Operations of one launch (integer operations for integer paths).
-- @column work_definition            How they were counted.
-- @column traffic_bytes              Bytes that the level moved in one launch.
-- @column traffic_source             Metrics behind them.
-- @column level_definition           Definition of the level's bytes; never compare two.
-- @column performance_flop_per_s     work_flop / duration.
-- @column bandwidth_bytes_per_s      traffic_bytes / duration.
-- @column arithmetic_intensity       work_flop / traffic_bytes, operations per byte.
-- @column chart_flop_per_s           NVIDIA's own chart: operations per cycle times chart_clock_hz.
-- @column chart_bytes_per_s          NVIDIA's own chart: bytes per second as printed.
-- @column chart_intensity            NVIDIA's own chart: chart_flop_per_s / chart_bytes_per_s.
-- @column chart_clock_hz             Clock of that chart.
-- @column measured_flop_per_s        Compute roof of the report: peak per cycle times measured_clock_hz.
-- @column measured_bytes_per_s       Memory roof of the report.
-- @column measured_ridge             Intensity at which the two meet.
-- @column measured_share_pct         Performance in % of the lower of the two; above 100 where the peaks are not the whole truth.
-- @column measured_clock_hz          SM clock while ncu measured.
-- @column measured_memory_clock_hz   Clock of the level while ncu measured.
-- @column datasheet_flop_per_s       Dense compute roof of the datasheet; scaled by SMs for a slice of a GPU.
-- @column datasheet_bytes_per_s      Memory roof of the datasheet; NULL for L1, and for a slice of a GPU.
-- @column datasheet_ridge            Intensity at which the two meet.
-- @column datasheet_share_pct        Performance in % of the lower of the two.
-- @column datasheet_clock_hz         Clock behind the datasheet.
-- @column datasheet_gpu              Row of gpu_peaks.
-- @column datasheet_source           Where the datasheet's numbers come from, and how they were scaled.
CREATE MACRO roofline(kernel := NULL, kernel_regex := NULL, assume_gpu := NULL) AS TABLE
WITH chosen AS MATERIALIZED (
    SELECT *, coalesce(assume_gpu, gpu) AS datasheet_name
    FROM _roofline_point
    WHERE (kernel IS NULL OR contains(lower(name), lower(kernel)) OR contains(lower(kernel_key), lower(kernel)))
        AND (kernel_regex IS NULL OR regexp_matches(name, kernel_regex) OR regexp_matches(kernel_key, kernel_regex))
), sheets AS (
    SELECT datasheet_name, min(name) AS sheet
    FROM (SELECT DISTINCT datasheet_name FROM chosen) JOIN gpu_peaks
        ON regexp_matches(datasheet_name, pattern, 'i') OR lower(datasheet_name) = lower(name)
    GROUP BY datasheet_name
), points AS (
    SELECT c.*, c.not_placed_reason IS NULL AS placed, g.name AS datasheet_gpu, g.source,
        -- A slice of a GPU has its share of the compute peak; its share of the memory is not in a datasheet.
        CASE WHEN c.sm_count = g.sm_count OR g.sm_count IS NULL THEN 1
            WHEN c.sm_count IS NULL THEN CASE WHEN c.datasheet_name ILIKE '%mig%' THEN NULL ELSE 1 END
            WHEN c.sm_count < g.sm_count THEN c.sm_count / g.sm_count END AS share,
        g.dram_bytes_per_s, g.l2_bytes_per_s, k.flop_per_s, k.clock_hz AS datasheet_clock
    FROM chosen AS c
    LEFT JOIN sheets AS s ON s.datasheet_name = c.datasheet_name
    LEFT JOIN gpu_peaks AS g ON g.name = s.sheet
    LEFT JOIN _gpu_peak AS k ON k.name = s.sheet AND k.peak_key = c.peak_key
), roofs AS (
    SELECT *, flop_per_s * share AS datasheet_flop_per_s,
        CASE WHEN share = 1 AND level = 'dram' AND coalesce(compute_capability, '') NOT IN ('8.7', '11.0', '12.1')
                THEN dram_bytes_per_s
            WHEN share = 1 AND level = 'l2' THEN l2_bytes_per_s END AS datasheet_bytes_per_s
    FROM points
)
SELECT configuration_id, run, rank, gpu, compute_capability, name, short_name, kernel_key, family,
    grid_x, grid_y, grid_z, block_x, block_y, block_z, clock_control, cache_control, launches, summarised, simulated,
    level, precision, is_main, placed, not_placed_reason, caution, duration_ns, min_duration_ns, max_duration_ns,
    work_flop, work_definition, traffic_bytes, traffic_source, level_definition,
    1e9 * work_flop / nullif(duration_ns, 0) AS performance_flop_per_s,
    1e9 * traffic_bytes / nullif(duration_ns, 0) AS bandwidth_bytes_per_s,
    work_flop / nullif(traffic_bytes, 0) AS arithmetic_intensity,
    chart_flop_per_s, chart_bytes_per_s, chart_flop_per_s / nullif(chart_bytes_per_s, 0) AS chart_intensity, chart_clock_hz,
    measured_flop_per_s, measured_bytes_per_s, measured_flop_per_s / nullif(measured_bytes_per_s, 0) AS measured_ridge,
    CASE WHEN placed AND measured_flop_per_s > 0 AND measured_bytes_per_s > 0 THEN 1e11 / duration_ns
        * greatest(work_flop / measured_flop_per_s, traffic_bytes / measured_bytes_per_s) END AS measured_share_pct,
    measured_clock_hz, measured_memory_clock_hz, datasheet_flop_per_s, datasheet_bytes_per_s,
    datasheet_flop_per_s / nullif(datasheet_bytes_per_s, 0) AS datasheet_ridge,
    CASE WHEN placed AND datasheet_flop_per_s > 0 AND datasheet_bytes_per_s > 0 THEN 1e11 / duration_ns
        * greatest(work_flop / datasheet_flop_per_s, traffic_bytes / datasheet_bytes_per_s) END AS datasheet_share_pct,
    datasheet_clock AS datasheet_clock_hz,
    datasheet_gpu, source || CASE WHEN share < 1 THEN '; scaled to ' || sm_count || ' SMs' WHEN share IS NULL
        THEN '; not used: the GPU has other SMs' ELSE '' END AS datasheet_source
FROM roofs
ORDER BY run, rank, name, grid_x, grid_y, grid_z, block_x, block_y, block_z, configuration_id, level_order, precision;
