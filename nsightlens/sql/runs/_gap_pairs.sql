-- Gaps between two successive kernels of a stream under nsys and under Kineto, where both kernels are matched and follow each
-- other under both, within one step. Copies that lie in a gap lie in it under both.
-- @scope rows
-- @requires matches
-- @column run        Run.
-- @column kineto_ns  From the end of the first kernel to the start of the second under Kineto.
-- @column nsys_ns    The same under nsys.
CREATE VIEW _gap_pairs AS
WITH followed AS (
    SELECT run, tool, kernel_id, lead(kernel_id) OVER track AS next_id, lead(start_ns) OVER track - start_ns - duration_ns AS gap_ns,
        step IS NOT DISTINCT FROM lead(step) OVER track AS within_step
    FROM kernels
    WHERE tool IN ('nsys', 'kineto') AND run IN (SELECT run FROM matches WHERE tool = 'nsys' AND other_tool = 'kineto')
    WINDOW track AS (
        PARTITION BY run, tool, profile_id, process_id, window_index, device, context, stream ORDER BY start_ns, kernel_id)
)
SELECT n.run, t.gap_ns AS kineto_ns, n.gap_ns AS nsys_ns
FROM followed AS n
JOIN matches AS m ON n.kernel_id = m.kernel_id AND m.tool = 'nsys' AND m.other_tool = 'kineto'
JOIN followed AS t ON m.other_kernel_id = t.kernel_id
JOIN matches AS m2 ON n.next_id = m2.kernel_id AND t.next_id = m2.other_kernel_id
WHERE n.within_step AND t.within_step AND n.gap_ns >= 0 AND t.gap_ns >= 0;
