-- Every configuration, memory level and precision: what was measured, and whether it makes a point of a roofline.
-- @scope run
-- @requires _ncu_by_config _roofline_work _roofline_traffic
-- @column configuration_id       Configuration: run, rank, kernel_key, grid, block, clock and cache settings, GPU.
-- @column run                    Run.
-- @column rank                   Rank; NULL where unknown.
-- @column gpu                    Product name of the GPU; NULL where no report has it.
-- @column compute_capability     Compute capability, such as '9.0'.
-- @column sm_count               Streaming multiprocessors, where known.
-- @column name                   Kernel name as ncu prints it.
-- @column short_name             Base name of the kernel.
-- @column kernel_key             Canonical name, the same in the three tools.
-- @column family                 Family of the kernel.
-- @column grid_x                 Grid size, x.
-- @column grid_y                 Grid size, y.
-- @column grid_z                 Grid size, z.
-- @column block_x                Block size, x.
-- @column block_y                Block size, y.
-- @column block_z                Block size, z.
-- @column clock_control          ncu --clock-control, where known.
-- @column cache_control          ncu --cache-control, where known.
-- @column summarised             True where ncu --print-summary printed averages: single launches are not known then.
-- @column simulated              True where a capture behind it is marked as simulated.
-- @column launches               Launches measured, over all reports.
-- @column duration_ns            Median duration under ncu, rounded to 1 ns.
-- @column min_duration_ns        Shortest.
-- @column max_duration_ns        Longest.
-- @column duration_definition    The counter behind duration_ns.
-- @column level                  dram, l2 or l1.
-- @column level_order            1, 2, 3: outermost first.
-- @column precision              As in _roofline_work.
-- @column peak_key               Key of _gpu_peak.
-- @column is_main                True for one precision of each configuration: the one that does most of the operations.
-- @column not_plottable_reason   Why there is no point, and what to collect; NULL where there is one.
-- @column warning                Why the point may mislead.
-- @column work_flop              Operations of one launch.
-- @column rate_flop_per_s        Operations per second where rates alone give them; NULL where they were counted otherwise.
-- @column least_flop_per_s       The same of the least rates over the launches.
-- @column greatest_flop_per_s    The same of the greatest rates.
-- @column least_bytes_per_s      Least rate of the bytes over the launches; NULL where they were counted otherwise.
-- @column greatest_bytes_per_s   Greatest rate of them.
-- @column work_definition        How they were counted.
-- @column traffic_bytes          Bytes that the level moved in one launch.
-- @column traffic_source         Metrics behind them.
-- @column level_definition       Definition of the level's bytes.
-- @column ncu_chart_flop_per_s   Height in the roofline chart of Nsight Compute: operations per cycle times ncu_chart_clock_hz.
-- @column ncu_chart_bytes_per_s  Bytes per second in that chart, as printed.
-- @column ncu_chart_clock_hz     Clock of that chart.
-- @column peak_flop_per_s        Compute roof: ncu's peak per cycle times roof_clock_hz.
-- @column peak_bytes_per_s       Memory roof: the peak bandwidth of the level, at roof_memory_clock_hz.
-- @column roof_clock_hz          SM clock that peak_flop_per_s holds for: the one during ncu's measurement.
-- @column roof_memory_clock_hz   Clock of the level that peak_bytes_per_s holds for, as above.
CREATE VIEW _roofline_point AS
WITH joined AS (
    SELECT c.*, w.* EXCLUDE (configuration_id), l.level, l.level_order, t.level_definition, t.traffic_source,
        t.traffic_bytes, t.least_bytes_per_s, t.greatest_bytes_per_s, t.ncu_chart_bytes_per_s, t.peak_bytes_per_s, t.clock_hz AS memory_clock_hz,
        t.traffic_bytes IS NULL AND t.ncu_chart_bytes_per_s IS NULL AS has_no_bytes,
        -- Parts whose memory is the host's: ncu has no dram__ counters there.
        printf('its tensor pipe is %.1f %% busy: operations of tensor cores cannot be excluded, and ', slight_pct) AS slight,
        l.level = 'dram' AND c.compute_capability IN ('8.7', '11.0', '12.1') AS has_no_dram
    FROM _roofline_work AS w
    JOIN _ncu_by_config AS c USING (configuration_id)
    CROSS JOIN (VALUES ('dram', 1), ('l2', 2), ('l1', 3)) AS l(level, level_order)
    LEFT JOIN _roofline_traffic AS t ON t.configuration_id = w.configuration_id AND t.level = l.level
)
SELECT
    configuration_id, run, rank, gpu, compute_capability, sm_count, name, short_name, kernel_key, family, grid_x, grid_y,
    grid_z, block_x, block_y, block_z, clock_control, cache_control, summarised, simulated, launches, duration_ns,
    min_duration_ns, max_duration_ns, duration_definition,
    level, level_order, precision, peak_key, is_main,
    CASE
        WHEN is_uncounted_tensor AND is_main THEN CASE WHEN slight_pct IS NULL
                THEN 'this kernel runs on the tensor cores and their operations were not counted, so that its CUDA-core operations '
                    || 'are not its performance'
                ELSE slight || 'were not counted' || coalesce(' (--precision ' || counted || ' or --precision all shows what was)', '') END
            || ': collect --set roofline or --metrics ' || CASE compute_capability
                WHEN '7.0' THEN 'sm__inst_executed_pipe_tensor.sum' ELSE 'sm__ops_path_tensor_src_{bf16_dst_fp32,fp16,'
                || 'fp16_dst_fp16,fp16_dst_fp32,tf32_dst_fp32,fp64,int8}.sum (a name that the GPU lacks prints n/a)' END
        WHEN precision IS NULL THEN 'no operations were counted: collect --set roofline (and ingest the report, .ncu-rep, or '
            || 'print the details page with --print-details all)'
        WHEN work_flop IS NULL AND rate_flop_per_s IS NULL THEN precision || ' ' || coalesce(missing, 'add, mul, fma')
            || ' not counted: collect --set roofline, or .sum of smsp__sass_thread_inst_executed_op_{'
            || CASE precision WHEN 'fp64' THEN 'dadd,dmul,dfma' WHEN 'fp16' THEN 'hadd,hmul,hfma' ELSE 'fadd,fmul,ffma' END
            || '}_pred_on, gpu__time_duration and smsp__cycles_elapsed.avg.per_second'
        WHEN has_no_bytes AND has_no_dram THEN 'integrated memory: ncu has no DRAM counters on compute capability '
            || compute_capability || ', so that there is no DRAM roof; use level l2 or l1'
        WHEN has_no_bytes THEN 'no ' || upper(level) || ' traffic was counted: collect ' || CASE level
            WHEN 'dram' THEN 'dram__bytes.sum' WHEN 'l2' THEN 'lts__lts2xbar_cycles_active.sum (--set roofline)'
            ELSE 'the l1tex__lsu_writeback_active counters (--set roofline)' END
        -- Rates of both need no duration.
        WHEN NOT coalesce(duration_ns > 0, false) AND (rate_flop_per_s IS NULL OR ncu_chart_bytes_per_s IS NULL)
            THEN 'no duration: collect gpu__time_duration.sum'
        WHEN coalesce(work_flop, rate_flop_per_s) = 0 THEN '0 ' || precision
            || ' operations: it has a bandwidth, but no place on a logarithmic axis'
        WHEN coalesce(traffic_bytes, ncu_chart_bytes_per_s) = 0 THEN '0 bytes at ' || upper(level) || ': the intensity is infinite'
    END AS not_plottable_reason,
    nullif(concat_ws('; ', CASE WHEN is_doubtful AND precision IS NOT NULL
            THEN 'may run on tensor cores: neither its name nor its counters tell' END,
        CASE WHEN is_uncounted_tensor AND NOT is_main AND slight_pct IS NOT NULL THEN slight || 'were not counted: this may not be its performance'
            WHEN is_uncounted_tensor AND NOT is_main
            THEN 'runs on the tensor cores, whose operations were not counted: this is not its performance' END,
        CASE WHEN summarised THEN 'averages over the launches' END), '') AS warning,
    work_flop, rate_flop_per_s, least_flop_per_s, greatest_flop_per_s, least_bytes_per_s, greatest_bytes_per_s,
    work_definition, traffic_bytes, traffic_source, level_definition,
    ncu_chart_flop_per_s, ncu_chart_bytes_per_s, ncu_chart_clock_hz, peak_flop_per_s, peak_bytes_per_s, clock_hz AS roof_clock_hz,
    memory_clock_hz AS roof_memory_clock_hz
FROM joined;
