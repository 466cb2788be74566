-- The steps of each process, as windows of time that do not overlap. A host step (range of kind step) is stretched to
-- the end of the GPU work that its API calls launched, and begins where the step before it ended; the first begins
-- after the GPU work that was launched before any step and ended before the first step's own. A process without steps
-- has one: its whole capture, that is all of its operators, API calls and GPU work; its step and step_id are NULL.
-- Assumes that a process has one sequence of steps: where steps overlap, the earlier keeps the time.
-- @scope profile
-- @requires ranges, api_calls, _gpu_work, _stream_work
-- @column run             Run.
-- @column tool            nsys or kineto.
-- @column profile_id      Profile.
-- @column process_id      OS process.
-- @column window_index    Capture window of the process.
-- @column step_id         Range of the step; NULL for a process without steps.
-- @column step            Step number; NULL where unknown.
-- @column host_start_ns   Start of the range.
-- @column host_end_ns     End of the range.
-- @column start_ns        Start of the window, relative to the profile's origin.
-- @column end_ns          End of the window.
-- @column gpu_activities  Pieces of GPU work launched by the API calls inside the range.
CREATE VIEW _steps AS
WITH recorded AS (
    SELECT run, tool, profile_id, process_id, window_index, start_ns, start_ns + duration_ns AS end_ns
    FROM ranges WHERE kind = 'operator' AND duration_ns >= 0
    UNION ALL
    SELECT run, tool, profile_id, process_id, window_index, start_ns, start_ns + duration_ns
    FROM api_calls WHERE duration_ns >= 0
    UNION ALL
    SELECT run, tool, profile_id, process_id, window_index, start_ns, end_ns FROM _gpu_work
), stepped AS (
    SELECT run, tool, profile_id, process_id, window_index, range_id AS step_id, step,
        start_ns, start_ns + duration_ns AS end_ns
    FROM ranges WHERE kind = 'step' AND duration_ns >= 0
), host AS (
    FROM stepped
    UNION ALL
    SELECT any_value(run), any_value(tool), profile_id, process_id, window_index, NULL, NULL,
        min(start_ns), max(end_ns)
    FROM recorded AS r
    WHERE NOT EXISTS (FROM stepped AS s WHERE s.profile_id = r.profile_id
        AND s.process_id IS NOT DISTINCT FROM r.process_id AND s.window_index IS NOT DISTINCT FROM r.window_index)
    GROUP BY profile_id, process_id, window_index
), numbered AS (
    SELECT *, dense_rank() OVER (ORDER BY profile_id, process_id, window_index) AS track,
        row_number() OVER (ORDER BY profile_id, process_id, window_index, start_ns, end_ns, step_id) AS place
    FROM host
), launched AS (
    SELECT t.track, w.start_ns, w.end_ns, w.call_start_ns, w.call_end_ns
    FROM _stream_work AS w
    JOIN (SELECT DISTINCT track, profile_id, process_id, window_index FROM numbered) AS t
        ON t.profile_id = w.profile_id AND t.process_id IS NOT DISTINCT FROM w.process_id
        AND t.window_index IS NOT DISTINCT FROM w.window_index
), matched AS (
    SELECT l.track, l.start_ns, l.end_ns, CASE WHEN l.call_end_ns <= n.end_ns THEN n.place END AS place
    FROM launched AS l
    ASOF LEFT JOIN numbered AS n ON l.track = n.track AND l.call_start_ns >= n.start_ns
), device AS (
    SELECT place, min(start_ns) AS first_ns, max(end_ns) AS last_ns, count(*) AS activities
    FROM matched WHERE place IS NOT NULL GROUP BY place
), placed AS (
    SELECT n.*, d.first_ns, coalesce(d.activities, 0) AS activities, place = min(place) OVER (PARTITION BY track) AS is_first,
        max(greatest(n.end_ns, d.last_ns)) OVER (PARTITION BY track ORDER BY place ROWS UNBOUNDED PRECEDING) AS until_ns
    FROM numbered AS n LEFT JOIN device AS d USING (place)
), lead_in AS (
    SELECT p.track, max(m.end_ns) AS until_ns
    FROM placed AS p JOIN matched AS m USING (track)
    WHERE p.is_first AND p.step_id IS NOT NULL AND m.place IS NULL AND m.end_ns < p.first_ns
    GROUP BY p.track
)
SELECT run, tool, profile_id, process_id, window_index, step_id, step, p.start_ns AS host_start_ns, p.end_ns AS host_end_ns,
    greatest(p.start_ns, CASE WHEN is_first THEN i.until_ns
        ELSE lag(p.until_ns) OVER (PARTITION BY track ORDER BY place) END) AS start_ns,
    p.until_ns AS end_ns, activities AS gpu_activities
FROM placed AS p LEFT JOIN lead_in AS i USING (track)
ORDER BY place;
