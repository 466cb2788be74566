-- What the names of ranges say of the steps of an inference server: a row per range that vLLM, SGLang or TensorRT-LLM named so.
-- @scope rows
-- @requires ranges
-- @column run           Run.
-- @column tool          nsys or kineto.
-- @column profile_id    Profile.
-- @column process_id    OS process.
-- @column window_index  Capture window.
-- @column range_id      The range; key of `ranges`.
-- @column start_ns      Its start.
-- @column duration_ns   Its duration.
-- @column engine        vLLM, SGLang or TensorRT-LLM.
-- @column mode          Phase, where the name says it.
-- @column number        Number of the step, where the name says it.
-- @column ctx           Requests of prefill.
-- @column gen           Requests of decode.
-- @column ctx_tokens    Tokens of prefill.
-- @column gen_tokens    Tokens of decode.
-- @column requests      Requests of both, where the name says only that.
CREATE VIEW _serving_names AS
WITH named AS (
    SELECT run, tool, profile_id, process_id, window_index, range_id, start_ns, duration_ns,
        regexp_extract(name, '^execute_(?:\d+_)?context_(\d{1,9})\((?:sq)?(\d{0,15})[^)]*\)_generation_(\d{1,9})\((?:sq)?(\d{0,15})',
            ['ctx', 'ctx_tokens', 'gen', 'gen_tokens']) AS vllm,
        regexp_extract(name, '^execute_new_(\d{1,9})_cached_(\d{1,9})$', ['ctx', 'gen']) AS vllm_old,
        regexp_extract(name, '^step\[(\w+) bs=(\d{1,9})(?: toks=(\d{1,15}))?', ['mode', 'requests', 'tokens']) AS sglang,
        regexp_extract(name, '^\[Executor\] _forward_step (\d{1,15}): (\d{1,9}) ctx reqs, (?:(\d{1,15}) ctx tokens, )?(\d{1,9}) gen reqs',
            ['step', 'ctx', 'ctx_tokens', 'gen']) AS trt
    FROM ranges
    WHERE (starts_with(name, 'execute_') OR starts_with(name, 'step[') OR starts_with(name, '[Executor] _forward_step '))
        AND kind <> 'gpu_annotation' AND duration_ns >= 0
)
SELECT run, tool, profile_id, process_id, window_index, range_id, start_ns, duration_ns, 'vLLM' AS engine, NULL AS mode,
    NULL::BIGINT AS number, CAST(vllm.ctx AS BIGINT) AS ctx, CAST(vllm.gen AS BIGINT) AS gen,
    TRY_CAST(vllm.ctx_tokens AS BIGINT) AS ctx_tokens, TRY_CAST(vllm.gen_tokens AS BIGINT) AS gen_tokens, NULL::BIGINT AS requests
FROM named WHERE vllm.ctx <> ''
UNION ALL
SELECT run, tool, profile_id, process_id, window_index, range_id, start_ns, duration_ns, 'vLLM', NULL, NULL,
    CAST(vllm_old.ctx AS BIGINT), CAST(vllm_old.gen AS BIGINT), NULL, NULL, NULL
FROM named WHERE vllm_old.ctx <> ''
UNION ALL
SELECT run, tool, profile_id, process_id, window_index, range_id, start_ns, duration_ns, 'TensorRT-LLM', NULL,
    CAST(trt.step AS BIGINT), CAST(trt.ctx AS BIGINT), CAST(trt.gen AS BIGINT), TRY_CAST(trt.ctx_tokens AS BIGINT), NULL, NULL
FROM named WHERE trt.step <> ''
UNION ALL
SELECT run, tool, profile_id, process_id, window_index, range_id, start_ns, duration_ns, 'SGLang',
    CASE sglang.mode WHEN 'DECODE' THEN 'decode' WHEN 'EXTEND' THEN 'prefill' WHEN 'PREFILL' THEN 'prefill'
        WHEN 'SPLIT_PREFILL' THEN 'prefill' ELSE lower(sglang.mode) END, NULL,
    CASE WHEN sglang.mode IN ('EXTEND', 'PREFILL', 'SPLIT_PREFILL') THEN CAST(sglang.requests AS BIGINT)
        WHEN sglang.mode = 'DECODE' THEN 0 END,
    CASE WHEN sglang.mode IN ('EXTEND', 'PREFILL', 'SPLIT_PREFILL') THEN 0
        WHEN sglang.mode = 'DECODE' THEN CAST(sglang.requests AS BIGINT) END,
    CASE WHEN sglang.mode = 'DECODE' THEN 0
        WHEN sglang.mode IN ('EXTEND', 'PREFILL', 'SPLIT_PREFILL') THEN TRY_CAST(sglang.tokens AS BIGINT) END,
    CASE WHEN sglang.mode = 'DECODE' THEN coalesce(TRY_CAST(sglang.tokens AS BIGINT), CAST(sglang.requests AS BIGINT))
        WHEN sglang.mode IN ('EXTEND', 'PREFILL', 'SPLIT_PREFILL') THEN 0 END,
    CAST(sglang.requests AS BIGINT)
FROM named WHERE sglang.mode <> '';
