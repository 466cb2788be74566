-- Steps of an inference server by phase, per process: how many, for how many requests and tokens, and how long they took on the
-- host and on the GPU: median and 99th percentile of the steps, each a step that occurred.
-- @scope profile
-- @requires serving_steps
-- @assumes The server was recorded with its annotations: vLLM and SGLang name steps while their profiler runs, TensorRT-LLM by
--     NVTX ranges.
-- @assumes A step is not a request: what a user waits for (time to first token) includes queueing, which no capture shows.
-- @column run               Run (one workload in one configuration).
-- @column tool              nsys or kineto. Never add them up: they saw the same work.
-- @column rank              Rank of the process; NULL where unknown.
-- @column profile_id        Profile; key of `profiles`.
-- @column process_id        OS process.
-- @column engine            vLLM, SGLang or TensorRT-LLM.
-- @column phase             prefill, decode, mixed, idle, or what else the server calls it.
-- @column steps             Steps.
-- @column requests          Requests, each step's counted; NULL where a name does not say.
-- @column prefill_tokens    Tokens of prompts; NULL where a name does not say.
-- @column decode_tokens     Tokens of requests that generate; NULL where a name does not say.
-- @column host_p50_ns       Median duration on the host.
-- @column host_p99_ns       99th percentile of it.
-- @column gpu_p50_ns        Median of gpu_span_ns, over the steps that launched something.
-- @column gpu_p99_ns        99th percentile of it.
-- @column gpu_work_ns       GPU work of all these steps; a sum of durations.
CREATE VIEW serving_summary AS
SELECT run, tool, rank, profile_id, process_id, engine, phase, count(*) AS steps,
    CASE WHEN count(requests) = count(*) THEN TRY_CAST(sum(requests) AS BIGINT) END AS requests,
    CASE WHEN count(prefill_tokens) = count(*) THEN TRY_CAST(sum(prefill_tokens) AS BIGINT) END AS prefill_tokens,
    CASE WHEN count(decode_tokens) = count(*) THEN TRY_CAST(sum(decode_tokens) AS BIGINT) END AS decode_tokens,
    quantile_disc(host_ns, 0.5) AS host_p50_ns, quantile_disc(host_ns, 0.99) AS host_p99_ns,
    quantile_disc(gpu_span_ns, 0.5) AS gpu_p50_ns, quantile_disc(gpu_span_ns, 0.99) AS gpu_p99_ns,
    TRY_CAST(sum(gpu_work_ns) AS BIGINT) AS gpu_work_ns
FROM serving_steps
GROUP BY run, tool, rank, profile_id, process_id, engine, phase
ORDER BY run, tool, rank, profile_id, process_id, engine, phase;
