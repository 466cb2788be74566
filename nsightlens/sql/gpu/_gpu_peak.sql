-- Dense datasheet peaks, one row per GPU and precision, from the table gpu_peaks.
-- @scope run
-- @column name              GPU.
-- @column pattern           Regular expression that the product name matches.
-- @column sm_count          Streaming multiprocessors of the whole GPU.
-- @column peak_key          Precision: fp64, fp32, fp16, tensor_<input>, tensor_<input>_dst_fp16.
-- @column flop_per_s        Dense peak, operations per second.
-- @column clock_hz          Clock behind it, where the datasheet states it.
-- @column dram_bytes_per_s  Peak bandwidth of the memory.
-- @column l2_bytes_per_s    Peak bandwidth of the L2 cache, where published.
-- @column source            Where the numbers come from.
CREATE VIEW _gpu_peak AS
SELECT name, pattern, sm_count, peak_key, flop_per_s,
    CASE WHEN starts_with(peak_key, 'tensor') THEN coalesce(tensor_clock_hz, boost_clock_hz) ELSE boost_clock_hz END AS clock_hz,
    dram_bytes_per_s, l2_bytes_per_s, source
FROM gpu_peaks CROSS JOIN LATERAL (VALUES
    ('fp64', fp64_flop_per_s), ('fp32', fp32_flop_per_s), ('fp16', fp16_flop_per_s),
    ('tensor_fp64', fp64_tensor_flop_per_s), ('tensor_tf32', tf32_tensor_flop_per_s), ('tensor_bf16', bf16_tensor_flop_per_s),
    ('tensor_fp16', fp16_tensor_flop_per_s), ('tensor_fp16_dst_fp16', fp16_tensor_acc16_flop_per_s),
    ('tensor_fp8', fp8_tensor_flop_per_s), ('tensor_fp8_dst_fp16', fp8_tensor_acc16_flop_per_s),
    ('tensor_fp4', fp4_tensor_flop_per_s), ('tensor_int8', int8_tensor_flop_per_s), ('tensor_int4', int4_tensor_flop_per_s)
) AS peak(peak_key, flop_per_s);
