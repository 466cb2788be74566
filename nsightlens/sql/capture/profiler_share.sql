-- How much of a capture is overhead: time in which the profiler held up a thread of the process, and CUDA's time for loading
-- and compiling. It excludes time that the profiler adds to calls and kernels themselves: profiler_overhead has that, from two
-- executions. The span is that of the API calls, and holds what came before the first work on a GPU.
-- @scope profile
-- @needs overheads
-- @requires overheads, api_calls, processes
-- @assumes The tool recorded its overhead: an old report may hold only a part of it, a PyTorch trace has what CUPTI reports.
-- @column run                Run (one workload in one configuration).
-- @column tool               nsys or kineto.
-- @column rank               Rank of the process; NULL where unknown.
-- @column profile_id         Profile; key of `profiles`.
-- @column process_id         OS process.
-- @column span_ns            First start to last end of its API calls and of the overhead.
-- @column profiler_ns        Time in which the profiler held up at least one thread: the union over the threads.
-- @column profiler_pct       profiler_ns as a share of span_ns, to one decimal.
-- @column longest_thread_ns  The most that it held up any one thread.
-- @column threads            Threads that it held up; 1 of a PyTorch trace, which does not name them.
-- @column cuda_ns            Time in which CUDA loaded, compiled or waited for room, on at least one thread.
CREATE VIEW profiler_share AS
WITH stretches AS (
    SELECT run, tool, profile_id, process_id, source, thread, start_ns, start_ns + duration_ns AS end_ns
    FROM overheads
    WHERE duration_ns >= 0
), reached AS (
    SELECT *,
        max(end_ns) OVER (PARTITION BY profile_id, process_id, source ORDER BY start_ns, end_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reach,
        max(end_ns) OVER (PARTITION BY profile_id, process_id, source, thread ORDER BY start_ns, end_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS thread_reach
    FROM stretches
), threads AS (
    SELECT run, tool, profile_id, process_id, source, thread, min(start_ns) AS first_ns, max(end_ns) AS last_ns,
        sum(greatest(end_ns - greatest(start_ns, coalesce(reach, start_ns)), 0)) AS union_ns,
        sum(greatest(end_ns - greatest(start_ns, coalesce(thread_reach, start_ns)), 0)) AS thread_ns
    FROM reached
    GROUP BY run, tool, profile_id, process_id, source, thread
), shares AS (
    SELECT run, tool, profile_id, process_id, min(first_ns) AS first_ns, max(last_ns) AS last_ns,
        TRY_CAST(coalesce(sum(union_ns) FILTER (source = 'profiler'), 0) AS BIGINT) AS profiler_ns,
        TRY_CAST(coalesce(max(thread_ns) FILTER (source = 'profiler'), 0) AS BIGINT) AS longest_thread_ns,
        count(*) FILTER (source = 'profiler') AS threads,
        TRY_CAST(coalesce(sum(union_ns) FILTER (source = 'cuda'), 0) AS BIGINT) AS cuda_ns
    FROM threads
    GROUP BY run, tool, profile_id, process_id
), called AS (
    SELECT profile_id, process_id, min(start_ns) AS first_ns, max(start_ns + duration_ns) AS last_ns
    FROM api_calls
    WHERE duration_ns >= 0
    GROUP BY profile_id, process_id
)
SELECT s.run, s.tool, p.rank, s.profile_id, s.process_id,
    greatest(s.last_ns, c.last_ns) - least(s.first_ns, c.first_ns) AS span_ns, s.profiler_ns,
    round(100.0 * s.profiler_ns / nullif(greatest(s.last_ns, c.last_ns) - least(s.first_ns, c.first_ns), 0), 1) AS profiler_pct,
    s.longest_thread_ns, s.threads, s.cuda_ns
FROM shares AS s
LEFT JOIN called AS c ON s.profile_id = c.profile_id AND s.process_id IS NOT DISTINCT FROM c.process_id
LEFT JOIN processes AS p ON s.profile_id = p.profile_id AND s.process_id = p.process_id
ORDER BY s.run, s.tool, p.rank, s.profile_id, s.process_id;
