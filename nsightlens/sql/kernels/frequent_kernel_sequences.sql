-- Sequences of kernels and memory operations that operators launch repeatedly, most frequent first: candidates for fusion or a
-- CUDA graph. HTA's frequent kernel sequences. An occurrence is an operator (or NVTX range) whose name contains range_text and
-- that lies in no other such range of its thread; its sequence is what was launched inside it on that thread, in order of
-- start. The suffix that PyTorch's NVTX appends to a name (", seq = 12") is cut off. An empty range_text takes the outermost
-- ranges.
-- @scope profile
-- @alias get_frequent_cuda_kernel_sequences
-- @first pattern, instances, gpu_ns, operator
-- @needs gpu_work
-- @requires _stream_work, ranges, api_calls
-- @assumes The launching call is the one with the same correlation id in the process, and the tool put host and GPU on one clock.
-- @assumes Equal names in equal order are the same sequence: grids, shapes and streams are not compared.
-- @assumes Ranges of a thread nest; work of other threads (the backward pass of a forward operator) is not inside the operator.
-- @param  range_text  Text that the operator's name contains, such as 'aten::' or 'attention'; '' takes every operator.
-- @param  min_length  Kernels that a sequence has at least.
-- @param  how_many    Sequences to return for each process; NULL for all.
-- @column run              Run (one workload in one configuration).
-- @column tool             nsys or kineto. Never add them up: they saw the same launches.
-- @column rank             Rank of the process; NULL where unknown.
-- @column profile_id       Profile; key of `profiles`.
-- @column process_id       OS process.
-- @column position         1 for the most frequent sequence of the process.
-- @column instances        How often it occurred.
-- @column length           Kernels and memory operations in it.
-- @column gpu_ns           Sum of their durations, over all occurrences.
-- @column cpu_ns           Sum of the durations of the operators, over all occurrences.
-- @column operator         Name of the operator.
-- @column pattern          Names of the kernels and memory operations, in order, joined by ' | '.
-- @names operator operator
CREATE MACRO frequent_kernel_sequences(range_text := '', min_length := 3, how_many := 5) AS TABLE
WITH candidates AS (
    SELECT *, max(start_ns + duration_ns) OVER (PARTITION BY profile_id, process_id, thread
        ORDER BY start_ns, duration_ns DESC, range_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS inside_until_ns
    FROM ranges
    WHERE kind IN ('operator', 'nvtx_push_pop') AND duration_ns IS NOT NULL AND contains(name, range_text)
), roots AS (
    SELECT run, tool, profile_id, process_id, thread, range_id, start_ns, start_ns + duration_ns AS end_ns, duration_ns,
        regexp_replace(name, ', (seq|op_id|sizes|input_op_ids) = .*', '') AS operator
    FROM candidates
    WHERE inside_until_ns IS NULL OR start_ns >= inside_until_ns
), calls AS (
    SELECT profile_id, launch_id, thread, start_ns FROM api_calls
    SEMI JOIN roots USING (profile_id, process_id, thread)
), launched AS (
    SELECT w.profile_id, w.process_id, c.thread, c.start_ns AS at_ns, w.work_id, w.kind, w.name, w.start_ns, w.end_ns
    FROM _stream_work AS w
    JOIN calls AS c ON w.profile_id = c.profile_id AND w.launch_id = c.launch_id
), occurrences AS (
    SELECT r.run, r.tool, r.profile_id, r.process_id, r.range_id, r.operator, r.duration_ns, count(*) AS length,
        sum(w.end_ns - w.start_ns) AS gpu_ns, string_agg(coalesce(w.name, w.kind), ' | ' ORDER BY w.start_ns, w.work_id) AS pattern
    FROM launched AS w
    ASOF JOIN roots AS r ON w.profile_id = r.profile_id AND w.process_id = r.process_id AND w.thread = r.thread
        AND w.at_ns >= r.start_ns
    WHERE w.at_ns < r.end_ns
    GROUP BY ALL
), counted AS (
    SELECT run, tool, profile_id, process_id, operator, pattern, length, count(*) AS instances, TRY_CAST(sum(gpu_ns) AS BIGINT) AS gpu_ns,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS cpu_ns
    FROM occurrences
    WHERE length >= min_length
    GROUP BY ALL
), placed AS (
    SELECT *, row_number() OVER (PARTITION BY profile_id, process_id
        ORDER BY instances DESC, gpu_ns DESC, operator, pattern) AS position
    FROM counted
)
SELECT
    s.run, s.tool, p.rank, s.profile_id, s.process_id, position, instances, length, gpu_ns, cpu_ns, operator, pattern
FROM placed AS s
LEFT JOIN processes AS p ON s.process_id = p.process_id AND s.profile_id = p.profile_id
WHERE how_many IS NULL OR position <= how_many
ORDER BY s.run, s.tool, p.rank, s.profile_id, s.process_id, position;
