-- How many API calls of a name took how long in each profile: from these follow exact order statistics over many profiles.
-- cuda_api_summary has its rows from here.
-- @scope profile
-- @requires api_calls
-- @column run          Run.
-- @column tool         nsys or kineto.
-- @column profile_id   Profile.
-- @column name         Function.
-- @column duration_ns  How long the calls took; NULL where unknown.
-- @column calls        Calls that took so long.
-- @column known        Of these, calls whose return value is known.
-- @column failed       Of these, calls that did not return 0.
CREATE VIEW _api_durations AS
SELECT run, tool, profile_id, name, duration_ns, count(*) AS calls, count(return_value) AS known,
    count(*) FILTER (return_value <> 0) AS failed
FROM api_calls
GROUP BY run, tool, profile_id, name, duration_ns;
