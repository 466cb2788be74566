-- What was wrong, missing, dropped or guessed: the diagnostics by run, tool, severity and code, worst first. Two of them come
-- from the kernels of a run: more than a tenth of their time is in kernels of unknown kind (unclassified_time), or kernels
-- last longer than their stream allows (impossible_durations).
-- @scope run
-- @requires kernels, kernel_overruns
-- @assumes An empty list proves nothing: it has only what a tool reported, or what a reader noticed in the files.
-- @column run       Run; NULL for files that belong to none.
-- @column tool      Profiler; NULL where no reader took the file.
-- @column severity  error, warning or info.
-- @column code      Short stable code.
-- @column count     How many times, over all files.
-- @column files     Distinct files; NULL where it concerns the run.
-- @column message   Message of the first of those files (by path): what it means and what to do.
CREATE VIEW diagnostic_summary AS
WITH families AS MATERIALIZED (
    SELECT run, tool, family, count(*) AS kernels, sum(duration_ns) AS total_ns, sum(duration_ns - coalesce(overrun_ns, 0)) AS clipped_ns
    FROM kernels WHERE tool <> 'ncu' GROUP BY run, tool, family
), shares AS (
    SELECT *, round(100.0 * clipped_ns / nullif(sum(clipped_ns) OVER (PARTITION BY run, tool), 0), 1) AS time_pct FROM families
), grouped AS (
    SELECT
        run, tool, severity, code,
        TRY_CAST(sum(count) AS BIGINT) AS count,
        count(DISTINCT path) AS files,
        min({'path': path, 'byte_offset': byte_offset, 'message': message}).message AS message
    FROM diagnostics
    GROUP BY run, tool, severity, code
    UNION ALL
    SELECT run, tool, 'warning', 'unclassified_time', kernels, NULL,
        time_pct || ' % of the kernel time is in kernels of family other: their names do not tell what they do, and if some of '
        || 'them communicate, that counts as computation. The view unclassified_kernels lists them'
    FROM shares
    WHERE family = 'other' AND time_pct > 10
    UNION ALL
    SELECT run, tool, 'warning', 'impossible_durations', o.kernels, NULL, format('{} of {} kernels last longer than their stream '
        || 'allows, together {:.3f} ms, {:.1f} % of the kernel time as recorded: their ends cannot be true. Busy time, steps and '
        || 'shares end each where the next kernel of its stream begins, which takes {:.3f} ms off; no roofline point and no clock '
        || 'rests on them. The view kernel_overruns lists them',
        o.kernels, t.kernels, o.total_ns / 1e6, 100.0 * o.total_ns / nullif(t.total_ns, 0), o.overrun_ns / 1e6)
    FROM (
        SELECT run, tool, count(*) AS kernels, TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns, sum(overrun_ns) AS overrun_ns
        FROM kernel_overruns GROUP BY run, tool
    ) AS o JOIN (
        SELECT run, tool, sum(kernels)::BIGINT AS kernels, sum(total_ns) AS total_ns FROM families GROUP BY run, tool
    ) AS t USING (run, tool)
)
SELECT run, tool, severity, code, count, files, message
FROM grouped
ORDER BY
    CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END,
    run, tool, count DESC NULLS LAST, severity, code;
