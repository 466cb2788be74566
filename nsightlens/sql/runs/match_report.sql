-- How much of one tool's launches could be matched with those of another tool in the same run, by grade, and why the rest is
-- unmatched. A row is one grade and reason for one pair of tools and rank; the launches and times of a tool, other tool and
-- rank sum to all of its launches. Grades and reasons as in tool_match.
-- @scope run
-- @needs two_tools
-- @requires tool_match
-- @assumes Both tools saw the same program with the same inputs. What a tool was set not to record is unmatched; that is not
--     an error.
-- @column run           Run.
-- @column tool          Tool whose launches are counted.
-- @column other_tool    The tool they are looked for in.
-- @column rank          Rank; NULL where unknown.
-- @column grade         launch, configuration, key, short_name or none.
-- @column reason        Why it is not grade launch.
-- @column launches      Launches of that grade.
-- @column all_launches  All launches of this tool on this rank.
-- @column total_ns      Sum of their durations in `tool`.
-- @column all_ns        Sum of the durations of all launches.
-- @column time_pct      Share of the time, to one decimal.
-- @balance all_launches = launches per run, tool, other_tool, rank
-- @balance all_ns = total_ns per run, tool, other_tool, rank
CREATE VIEW match_report AS
WITH counted AS (
    SELECT run, tool, other_tool, rank, grade, reason, count(*) AS launches, TRY_CAST(coalesce(sum(duration_ns), 0) AS BIGINT) AS total_ns
    FROM tool_match
    GROUP BY ALL
), summed AS (
    SELECT
        *, TRY_CAST(sum(launches) OVER same AS BIGINT) AS all_launches, TRY_CAST(sum(total_ns) OVER same AS BIGINT) AS all_ns
    FROM counted
    WINDOW same AS (PARTITION BY run, tool, other_tool, rank)
)
SELECT
    run, tool, other_tool, rank, grade, reason, launches, all_launches, total_ns, all_ns,
    round(100.0 * total_ns / nullif(all_ns, 0), 1) AS time_pct
FROM summed
ORDER BY run, tool, other_tool, rank, array_position(['launch', 'configuration', 'key', 'short_name', 'none'], grade), reason;
