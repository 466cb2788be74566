-- Pipeline parallelism by stage: how long each stage sends to and waits for its neighbours while its GPU does nothing else. A
-- row is a process (and capture window) with a process group named as a pipeline in the trace; of several, the largest counts.
-- @scope profile
-- @needs pipelines
-- @requires _process_groups, _collective_kernels, _gpu_work, processes
-- @assumes The program names its pipelines: the description of their process groups has the word pipeline, pp or pipe.
-- @assumes Waiting shows as a send or receive on the GPU that lasts until the neighbour is ready; waits on the host are not
--     counted.
-- @assumes The transfer itself counts, too: it is short compared with a wait, unless the link is slow.
-- @first stage, stages, rank, bubble_ns, compute_ns
-- @column run            Run.
-- @column tool           kineto.
-- @column rank           Rank of the process; NULL where unknown.
-- @column profile_id     Profile.
-- @column process_id     OS process.
-- @column window_index   Capture window of the process.
-- @column group_name     The pipeline's process group.
-- @column stage          Place of the rank in it, from 0; NULL where unknown.
-- @column stages         Ranks of the pipeline.
-- @column transfers      Kernels that communicate in it.
-- @column transfer_ns    Time in which at least one of them ran.
-- @column bubble_ns      The part of it in which the process had no other work on the GPU.
-- @column hidden_ns      The rest of it.
-- @column compute_ns     Time in which the GPU had other work of the process.
-- @balance transfer_ns = bubble_ns + hidden_ns
CREATE VIEW pipeline_bubbles AS
WITH pipelines AS (
    SELECT * FROM _process_groups WHERE kind = 'pipeline'
), stages AS (
    SELECT profile_id, process_id, window_index, arg_max(group_name, (group_size, group_name)) AS group_name,
        arg_max(group_rank, (group_size, group_name)) AS stage, max(group_size) AS stages
    FROM pipelines GROUP BY ALL
), transfers AS (
    SELECT k.kernel_id, k.profile_id, k.process_id
    FROM _collective_kernels AS k
    SEMI JOIN pipelines AS g ON k.profile_id = g.profile_id AND k.process_id = g.process_id AND k.group_name = g.group_name
), work AS (
    SELECT w.run, w.tool, w.profile_id, w.process_id, w.window_index, w.start_ns, w.end_ns, t.kernel_id IS NOT NULL AS transfers
    FROM _gpu_work AS w
    SEMI JOIN transfers AS s ON w.profile_id = s.profile_id AND w.process_id = s.process_id
    LEFT JOIN transfers AS t ON w.kind = 'kernel' AND w.work_id = t.kernel_id AND w.profile_id = t.profile_id
), edges AS (
    SELECT run, tool, profile_id, process_id, window_index, edge_ns, sum(begun) FILTER (transfers) AS transferring,
        sum(begun) FILTER (NOT transfers) AS working, count(*) FILTER (transfers AND begun = 1) AS transfers
    FROM (SELECT * EXCLUDE (start_ns, end_ns), unnest([start_ns, end_ns]) AS edge_ns, unnest([1, -1]) AS begun FROM work) AS ends
    GROUP BY ALL
), moments AS (
    SELECT run, tool, profile_id, process_id, window_index, transfers,
        coalesce(sum(transferring) OVER so_far, 0) > 0 AS transferring, coalesce(sum(working) OVER so_far, 0) > 0 AS working,
        coalesce(lead(edge_ns) OVER in_order - edge_ns, 0) AS length_ns
    FROM edges
    WINDOW in_order AS (PARTITION BY profile_id, process_id, window_index ORDER BY edge_ns),
        so_far AS (PARTITION BY profile_id, process_id, window_index ORDER BY edge_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
SELECT m.run, m.tool, p.rank, m.profile_id, m.process_id, m.window_index, s.group_name, s.stage, s.stages,
    TRY_CAST(sum(m.transfers) AS BIGINT) AS transfers,
    TRY_CAST(coalesce(sum(m.length_ns) FILTER (m.transferring), 0) AS BIGINT) AS transfer_ns,
    TRY_CAST(coalesce(sum(m.length_ns) FILTER (m.transferring AND NOT m.working), 0) AS BIGINT) AS bubble_ns,
    TRY_CAST(coalesce(sum(m.length_ns) FILTER (m.transferring AND m.working), 0) AS BIGINT) AS hidden_ns,
    TRY_CAST(coalesce(sum(m.length_ns) FILTER (m.working), 0) AS BIGINT) AS compute_ns
FROM moments AS m
LEFT JOIN stages AS s ON m.profile_id = s.profile_id AND m.process_id = s.process_id
    AND m.window_index IS NOT DISTINCT FROM s.window_index
LEFT JOIN processes AS p ON m.profile_id = p.profile_id AND m.process_id = p.process_id
GROUP BY ALL
ORDER BY m.run, m.tool, s.group_name, s.stage, p.rank, m.profile_id, m.process_id, m.window_index;
