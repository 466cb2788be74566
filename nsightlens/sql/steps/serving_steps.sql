-- Every step of an inference server: what it computed (prefill, decode or both), for how many requests and tokens, and how
-- long it took on the host and on the GPU. Steps are ranges with the names that vLLM, SGLang and TensorRT-LLM give them. GPU
-- work belongs to the step that was open in its process when it was launched, on any thread; a step inside another one is a
-- part of that.
-- @scope rows
-- @requires _serving_names, api_calls, processes, _bounded_kernels, memory_ops
-- @assumes The server was recorded with its annotations: vLLM and SGLang name steps while their profiler runs, TensorRT-LLM by NVTX ranges.
-- @assumes Counts are those of the names. vLLM before December 2025 names new and other requests: these are counted as prefill and decode.
-- @column run               Run (one workload in one configuration).
-- @column tool              nsys or kineto. Never add them up: they saw the same work.
-- @column rank              Rank of the process; NULL where unknown.
-- @column profile_id        Profile; key of `profiles`.
-- @column process_id        OS process.
-- @column window_index      Capture window.
-- @column range_id          The step; key of `ranges`.
-- @column engine            vLLM, SGLang or TensorRT-LLM, by the form of the name.
-- @column step              Number that the name has (TensorRT-LLM), else its place in the window, from 0.
-- @column phase             prefill, decode, mixed, or what else the server calls it (SGLang, in small letters); idle: no request.
-- @column requests          Requests in the step; NULL where the name does not say.
-- @column prefill_requests  Requests whose prompt it computed.
-- @column decode_requests   Requests for which it generated.
-- @column prefill_tokens    Tokens of prompts that it computed.
-- @column decode_tokens     Tokens that it computed for requests that generate.
-- @column start_ns          Start of the step on the host, relative to profiles.origin_epoch_ns.
-- @column host_ns           Its duration on the host: a server that works ahead does not wait for the GPU in it.
-- @column launches          Kernels and memory operations that it launched.
-- @column gpu_span_ns       From the start of the first of them to the end of the last; NULL where there are none.
-- @column gpu_work_ns       Sum of their durations.
CREATE VIEW serving_steps AS
WITH steps AS MATERIALIZED (
    SELECT * FROM _serving_names
    QUALIFY start_ns >= coalesce(max(start_ns + duration_ns) OVER (PARTITION BY profile_id, process_id, window_index
        ORDER BY start_ns, duration_ns DESC, range_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns)
), calls AS (
    SELECT c.launch_id, s.range_id
    FROM (SELECT * FROM api_calls WHERE profile_id IN (SELECT profile_id FROM steps)) AS c
    ASOF JOIN steps AS s ON c.profile_id = s.profile_id AND c.process_id = s.process_id AND c.window_index = s.window_index
        AND c.start_ns >= s.start_ns
    WHERE c.start_ns < s.start_ns + s.duration_ns
), work AS (
    SELECT c.range_id, count(*) AS launches, max(w.start_ns + w.duration_ns) - min(w.start_ns) AS span_ns,
        sum(w.duration_ns) AS work_ns
    FROM calls AS c JOIN (
        SELECT launch_id, start_ns, duration_ns FROM _bounded_kernels WHERE tool <> 'ncu'
        UNION ALL SELECT launch_id, start_ns, duration_ns FROM memory_ops
    ) AS w USING (launch_id) GROUP BY c.range_id
)
SELECT s.run, s.tool, p.rank, s.profile_id, s.process_id, s.window_index, s.range_id, s.engine,
    coalesce(s.number, row_number() OVER (PARTITION BY s.profile_id, s.process_id, s.window_index ORDER BY s.start_ns, s.range_id)
        - 1) AS step,
    coalesce(s.mode, CASE WHEN s.ctx > 0 AND s.gen > 0 THEN 'mixed' WHEN s.ctx > 0 THEN 'prefill' WHEN s.gen > 0 THEN 'decode'
        ELSE 'idle' END) AS phase,
    coalesce(s.requests, s.ctx + s.gen) AS requests, s.ctx AS prefill_requests, s.gen AS decode_requests,
    s.ctx_tokens AS prefill_tokens, s.gen_tokens AS decode_tokens, s.start_ns, s.duration_ns AS host_ns,
    coalesce(w.launches, 0) AS launches, w.span_ns AS gpu_span_ns, TRY_CAST(coalesce(w.work_ns, 0) AS BIGINT) AS gpu_work_ns
FROM steps AS s LEFT JOIN work AS w USING (range_id)
LEFT JOIN processes AS p ON p.process_id = s.process_id AND p.profile_id = s.profile_id
ORDER BY s.run, s.tool, p.rank, s.profile_id, s.process_id, s.window_index, s.start_ns, s.range_id;
