-- What was wrong, missing, dropped or guessed: diagnostics by run, tool, severity and code, worst first.
-- @assumes No row is no proof: only what a tool said, or what a reader could notice in the files, is listed.
-- @column run       Run; NULL for files that belong to none.
-- @column tool      Profiler; NULL where no reader took the file.
-- @column severity  error, warning or info.
-- @column code      Short stable code.
-- @column times     How many times, over all files.
-- @column files     Distinct files.
-- @column message   Message of the first of those files (by path): what it means and what to do.
CREATE VIEW diagnostic_summary AS
WITH grouped AS (
    SELECT
        run, tool, severity, code,
        TRY_CAST(sum(count) AS BIGINT) AS times,
        count(DISTINCT path) AS files,
        min({'path': path, 'byte_offset': byte_offset, 'message': message}).message AS message
    FROM diagnostics
    GROUP BY run, tool, severity, code
)
SELECT run, tool, severity, code, times, files, message
FROM grouped
ORDER BY
    CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END,
    run, tool, times DESC NULLS LAST, severity, code;
