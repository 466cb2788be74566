-- Which operator each kernel of a replayed CUDA graph came from. The calls recorded while the graph was captured are paired
-- with the work of its replays, one by one. They may be in a separate trace, as SGLang and vLLM write it, or in the same one.
-- A row is a node of a graph; graphs are distinguished by the kinds and names of their nodes. A capture fits if it made the
-- same number of kernels, copies and sets in the same order. Several may fit (captures for several batch sizes): columns on
-- which they disagree are NULL. Work of graphs that no capture fits has rows without an operator.
-- @scope run
-- @needs api_calls
-- @requires _graph_captures, api_calls, kernels, memory_ops, processes
-- @assumes A graph numbers its nodes in the order in which they were captured; without numbers (AMD), work of one stream runs
--     in it.
-- @assumes The match is by number, kind and order alone, as calls name no kernel. No real trace of a capture was found.
-- @assumes All launches of a capture come from the thread that began it; if other threads launch too, no capture fits.
-- @first rank, graph, node, name, op, module, total_ns
-- @column run        Run (one workload in one configuration).
-- @column tool       nsys (of graphs traced node by node) or kineto. Never add them up: they saw the same work.
-- @column rank       Rank of the process; NULL where unknown.
-- @column graph      Number of the graph, the one with most nodes first.
-- @column node       Place of the work within its replay, from 1.
-- @column kind       kernel, memcpy or memset.
-- @column name       Short name of the kernel; the direction of a copy.
-- @column replays    Replays of the graph that were recorded.
-- @column total_ns   Time of the node in all of them.
-- @column captures   Recorded captures that fit the graph.
-- @column op         Operator that launched it in the capture; NULL where no capture fits, or where they differ.
-- @column op_shapes  Input shapes of that operator, as above.
-- @column module     Innermost nn.Module around the launch in the capture, as above.
-- @names operator op
CREATE VIEW graph_replay_operators AS
WITH work AS (
    SELECT run, tool, process_id, launch_id, graph_node_id, stream, start_ns, duration_ns, 'kernel' AS kind, short_name AS name,
        kernel_id AS id FROM kernels
    UNION ALL
    SELECT run, tool, process_id, launch_id, graph_node_id, stream, start_ns, duration_ns, kind, direction, memory_op_id
    FROM memory_ops
), replayed AS (
    SELECT w.*, row_number() OVER (PARTITION BY w.process_id, w.launch_id ORDER BY w.graph_node_id, w.start_ns, w.id) AS node
    FROM work AS w JOIN api_calls AS a ON w.launch_id = a.launch_id AND w.process_id = a.process_id
    WHERE contains(a.name, 'GraphLaunch') AND w.start_ns IS NOT NULL
), replays AS (
    SELECT process_id, launch_id, count(*) AS nodes, string_agg(kind, ' ' ORDER BY node) AS kinds,
        string_agg(coalesce(name, ''), chr(10) ORDER BY node) AS names,
        count(graph_node_id) = count(*) OR (count(graph_node_id) = 0 AND count(DISTINCT stream) = 1) AS is_ordered
    FROM replayed GROUP BY ALL
), numbered AS (
    SELECT r.run, r.tool, p.rank, s.nodes, s.kinds, s.names, s.is_ordered, r.node, r.kind, r.name, r.duration_ns,
        dense_rank() OVER (PARTITION BY r.run, r.tool, p.rank ORDER BY s.nodes DESC, s.kinds, s.names, s.is_ordered) AS graph
    FROM replayed AS r JOIN replays AS s ON r.process_id = s.process_id AND r.launch_id = s.launch_id
    LEFT JOIN processes AS p ON r.process_id = p.process_id
), nodes AS (
    SELECT run, tool, rank, graph, node, kinds, is_ordered, kind, name, count(*) AS replays,
        TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns
    FROM numbered GROUP BY ALL
)
SELECT n.run, n.tool, n.rank, n.graph, n.node, n.kind, n.name, n.replays, n.total_ns, coalesce(k.captures, 0) AS captures, k.op,
    k.op_shapes, k.module
FROM nodes AS n
LEFT JOIN _graph_captures AS k ON n.run = k.run AND n.tool = k.tool AND n.rank IS NOT DISTINCT FROM k.rank AND n.kinds = k.kinds
    AND n.node = k.node AND n.is_ordered
ORDER BY n.run, n.tool, n.rank, n.graph, n.node;
