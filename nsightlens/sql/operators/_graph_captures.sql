-- The nodes of captured CUDA graphs, with the operator and module around the call that recorded each: captures of one rank with the
-- same kinds of calls in the same order are one. graph_replay_operators has its operators from here.
-- @scope run
-- @requires api_calls, processes, ranges
-- @column run        Run.
-- @column tool       nsys or kineto.
-- @column rank       Rank of the process; NULL where unknown.
-- @column kinds      Kinds of all nodes of the graph, in order.
-- @column node       Place of the call within the capture, from 1.
-- @column captures   Captures with these kinds.
-- @column op         Operator that made the call; NULL where they differ in it.
-- @column op_shapes  Its input shapes, as above.
-- @column module     Innermost nn.Module around the call, as above.
CREATE VIEW _graph_captures AS
WITH RECURSIVE calls AS (
    SELECT
        run, tool, process_id, thread, launch_id, start_ns, op_range_id, range_id,
        CASE WHEN contains(name, 'LaunchKernel') OR contains(name, 'LaunchCooperativeKernel') THEN 'kernel'
            WHEN contains(name, 'Memcpy') THEN 'memcpy' WHEN contains(name, 'Memset') THEN 'memset'
            WHEN contains(name, 'StreamBeginCapture') THEN 'begin' WHEN contains(name, 'StreamEndCapture') THEN 'end' END AS kind
    FROM api_calls
    WHERE start_ns IS NOT NULL AND process_id IN (SELECT c.process_id FROM api_calls AS c WHERE contains(c.name, 'StreamBeginCapture'))
), marked AS (
    SELECT *, count(*) FILTER (kind = 'begin') OVER so_far AS capture,
        last_value(CASE WHEN kind IN ('begin', 'end') THEN kind END IGNORE NULLS) OVER so_far = 'begin' AS is_inside
    FROM calls WHERE kind IS NOT NULL
    WINDOW so_far AS (PARTITION BY process_id, thread ORDER BY start_ns, launch_id ROWS UNBOUNDED PRECEDING)
), captured AS (
    SELECT *, row_number() OVER (PARTITION BY process_id, thread, capture ORDER BY start_ns, launch_id) AS node
    FROM marked WHERE is_inside AND kind NOT IN ('begin', 'end')
        AND (process_id, thread, capture) IN (SELECT (m.process_id, m.thread, m.capture) FROM marked AS m WHERE m.kind = 'end')
), around AS (
    SELECT DISTINCT c.range_id AS of_range, r.kind, r.name, r.parent_id
    FROM captured AS c JOIN ranges AS r ON c.range_id = r.range_id
    UNION ALL
    SELECT a.of_range, r.kind, r.name, r.parent_id
    FROM around AS a JOIN ranges AS r ON a.parent_id = r.range_id WHERE a.kind <> 'module'
), sources AS (
    SELECT c.run, c.tool, p.rank, c.process_id, c.thread, c.capture, c.node, o.name AS op, o.shapes AS op_shapes, m.name AS module,
        string_agg(c.kind, ' ') OVER (PARTITION BY c.process_id, c.thread, c.capture ORDER BY c.node
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS kinds
    FROM captured AS c
    LEFT JOIN processes AS p ON c.process_id = p.process_id
    LEFT JOIN ranges AS o ON c.op_range_id = o.range_id
    LEFT JOIN around AS m ON c.range_id = m.of_range AND m.kind = 'module'
)
SELECT run, tool, rank, kinds, node, count(*) AS captures,
    CASE WHEN count(DISTINCT coalesce(op, '')) = 1 THEN min(op) END AS op,
    CASE WHEN count(DISTINCT coalesce(op_shapes, '')) = 1 THEN min(op_shapes) END AS op_shapes,
    CASE WHEN count(DISTINCT coalesce(module, '')) = 1 THEN min(module) END AS module
FROM sources GROUP BY ALL;
