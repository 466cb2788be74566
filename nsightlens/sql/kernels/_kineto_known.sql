-- What Kineto knows of each nsys launch of the same run: of the launch itself where it is matched, else of all Kineto launches
-- of the same kernel key, grid and block (same rank first, then any rank). A text is given only where all of these agree.
-- @scope rows
-- @requires matches
-- @column kernel_id         The nsys launch; key of `kernels`.
-- @column kineto_kernel_id  The same launch in Kineto; NULL where several recordings hold it, and below grade launch.
-- @column grade             launch, configuration, configuration of any rank; NULL where Kineto does not know it.
-- @column known             Struct: duration_ns (of the launch, else the median, rounded to 1 ns), step, phase, op, op_shapes,
--                           module, range_path (step and range_path at grade launch only).
-- @column tells_op          Whether its op counts: the nsys row has none, or this is the same launch.
CREATE VIEW _kineto_known AS
WITH own AS (
    SELECT run, rank, kernel_id, kernel_key, op, struct_pack(grid_x, grid_y, grid_z, block_x, block_y, block_z) AS configuration
    FROM kernels
    WHERE tool = 'nsys' AND run IN (SELECT run FROM kernels WHERE tool = 'kineto')
), other AS (
    SELECT *, struct_pack(grid_x, grid_y, grid_z, block_x, block_y, block_z) AS configuration
    FROM kernels
    WHERE tool = 'kineto' AND run IN (SELECT run FROM own)
), matched AS (
    SELECT m.kernel_id, CASE WHEN count(*) = 1 THEN min(o.kernel_id) END AS kineto_kernel_id, struct_pack(
        duration_ns := CAST(round(median(duration_ns)) AS BIGINT),
        step := CASE WHEN min(step) = max(step) AND count(step) = count(*) THEN min(step) END,
        phase := CASE WHEN min(phase) = max(phase) AND count(phase) = count(*) THEN min(phase) END,
        op := CASE WHEN min(op) = max(op) AND count(op) = count(*) THEN min(op) END,
        op_shapes := CASE WHEN min(op_shapes) = max(op_shapes) AND count(op_shapes) = count(*) THEN min(op_shapes) END,
        module := CASE WHEN min(module) = max(module) AND count(module) = count(*) THEN min(module) END,
        range_path := CASE WHEN min(range_path) = max(range_path) AND count(range_path) = count(*) THEN min(range_path) END
    ) AS known
    FROM matches AS m
    JOIN other AS o ON m.other_kernel_id = o.kernel_id
    WHERE m.tool = 'nsys'
    GROUP BY m.kernel_id
), alike AS (
    SELECT run, rank, kernel_key, configuration, grouping(rank) = 1 AS any_rank, struct_pack(
        duration_ns := CAST(round(median(duration_ns)) AS BIGINT),
        step := CAST(NULL AS BIGINT),
        phase := CASE WHEN min(phase) = max(phase) AND count(phase) = count(*) THEN min(phase) END,
        op := CASE WHEN min(op) = max(op) AND count(op) = count(*) THEN min(op) END,
        op_shapes := CASE WHEN min(op_shapes) = max(op_shapes) AND count(op_shapes) = count(*) THEN min(op_shapes) END,
        module := CASE WHEN min(module) = max(module) AND count(module) = count(*) THEN min(module) END,
        range_path := CAST(NULL AS VARCHAR)
    ) AS known
    FROM other
    GROUP BY GROUPING SETS ((run, rank, kernel_key, configuration), (run, kernel_key, configuration))
)
SELECT
    o.kernel_id, m.kineto_kernel_id,
    CASE
        WHEN m.known IS NOT NULL THEN 'launch'
        WHEN s.known IS NOT NULL THEN 'configuration'
        WHEN a.known IS NOT NULL THEN 'configuration of any rank'
    END AS grade,
    coalesce(m.known, s.known, a.known) AS known,
    m.known.op IS NOT NULL OR (o.op IS NULL AND coalesce(m.known, s.known, a.known).op IS NOT NULL) AS tells_op
FROM own AS o
LEFT JOIN matched AS m ON o.kernel_id = m.kernel_id
LEFT JOIN alike AS s ON s.any_rank = false AND s.run = o.run AND s.rank IS NOT DISTINCT FROM o.rank
    AND s.kernel_key = o.kernel_key AND s.configuration = o.configuration
LEFT JOIN alike AS a ON a.any_rank AND a.run = o.run AND a.kernel_key = o.kernel_key AND a.configuration = o.configuration;
