-- Each moment of each step under one item, the first of: a kernel that computes (CUDA graphs whose kernels are unknown after
-- the known ones), a memory operation, a kernel that communicates, and where the GPU idles what the host did: a communication
-- call, a runtime call, the data loader, an operator, or nothing that was recorded. Of two of one class that run at once, the
-- one that began first has the time until it ends. The rows of a step sum to it. A sweep over sorted starts and ends: within
-- a class, work begins where all that began before it has ended, so that one piece at most of each class goes on at a time,
-- and a running sum holds which: 24 bits for each class of GPU work, one for each of the host. A slice of time holds what goes
-- on in it, in the order of the uncut starts, so that the rows of all slices sum to those of the whole.
-- @scope run
-- @requires _classed_work, _steps
-- @param  of_run      Run.
-- @param  under_tool  nsys or kineto.
-- @param  items_of    What the items of GPU work are: family, kernel (key and launch configuration), key, op, module or phase.
-- @param  from_ns     Start of the slice of time, relative to each profile's origin; NULL: from the first step on.
-- @param  until_ns    Its end; NULL: to the last step.
-- @column place         Number of the step among all of the run, from 1, in the order of the columns that follow.
-- @column profile_id    Profile.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process.
-- @column step_id       Range of the step; NULL for a process without steps, which has its capture as one.
-- @column start_ns      Start of the step, or of the slice in it.
-- @column step_ns       Its length (in the slice).
-- @column kind          compute, memory, collective or idle; NULL for a step of no length.
-- @column item          The family, kernel, …, the memory operation, or what the host did; NULL where it is not known.
-- @column total_ns      Its exclusive time in the step.
-- @balance step_ns = total_ns per profile_id, process_id, window_index, step_id, start_ns
CREATE MACRO _exclusive_time(of_run := NULL, under_tool := NULL, items_of := 'family', from_ns := NULL, until_ns := NULL) AS TABLE
WITH steps AS MATERIALIZED (
    SELECT * REPLACE (greatest(start_ns, from_ns) AS start_ns, least(end_ns, until_ns) AS end_ns)
    FROM (SELECT *, dense_rank() OVER (ORDER BY profile_id, process_id, window_index) AS track,
              row_number() OVER (ORDER BY profile_id, process_id, window_index, start_ns, end_ns, step_id) AS place
          FROM _steps WHERE run = of_run AND tool = under_tool)
    WHERE (from_ns IS NULL OR end_ns > from_ns) AND (until_ns IS NULL OR start_ns < until_ns)
), classed AS MATERIALIZED (
    FROM _classed_work(of_run := of_run, under_tool := under_tool, items_of := items_of, from_ns := from_ns, until_ns := until_ns)
), items AS MATERIALIZED (
    SELECT class, item, row_number() OVER (ORDER BY class, item) AS code FROM (SELECT DISTINCT class, item FROM classed)
), work AS (
    SELECT profile_id, process_id, window_index, start_ns, end_ns, i.class, i.code
    FROM classed AS w JOIN items AS i ON i.class = w.class AND i.item IS NOT DISTINCT FROM w.item
), own AS (
    SELECT t.track, class, code, least(w.end_ns, until_ns) AS end_ns, greatest(w.start_ns, from_ns, max(w.end_ns) OVER (
        PARTITION BY t.track, class ORDER BY w.start_ns, w.end_ns DESC, code ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        ) AS start_ns
    FROM work AS w JOIN (SELECT DISTINCT track, profile_id, process_id, window_index FROM steps) AS t
        ON t.profile_id = w.profile_id AND t.process_id IS NOT DISTINCT FROM w.process_id
        AND t.window_index IS NOT DISTINCT FROM w.window_index
), instants AS (
    SELECT track, at_ns, sum(place)::BIGINT AS place, sum(sign * CASE WHEN class < 4 THEN code::HUGEINT << (24 * class)
        ELSE 1::HUGEINT << (92 + class) END)::HUGEINT AS weight
    FROM (
        SELECT track, unnest([start_ns, end_ns]) AS at_ns, unnest([1, -1]) AS sign, class, code, 0 AS place
        FROM own WHERE end_ns > start_ns
        UNION ALL SELECT track, unnest([start_ns, end_ns]), 0, 0, 0, unnest([place, -place]) FROM steps
    ) GROUP BY track, at_ns
), sweep AS (
    SELECT sum(place) OVER past AS place, sum(weight) OVER past AS running, lead(at_ns) OVER past - at_ns AS length_ns
    FROM instants WINDOW past AS (PARTITION BY track ORDER BY at_ns ROWS UNBOUNDED PRECEDING)
), owned AS (
    SELECT place, CASE WHEN running & 16777215 > 0 THEN running & 16777215
        WHEN (running >> 24) & 16777215 > 0 THEN (running >> 24) & 16777215
        WHEN (running >> 48) & 16777215 > 0 THEN (running >> 48) & 16777215
        WHEN (running >> 72) & 16777215 > 0 THEN (running >> 72) & 16777215
        WHEN (running >> 96) & 1 > 0 THEN -1 WHEN (running >> 97) & 1 > 0 THEN -2 WHEN (running >> 98) & 1 > 0 THEN -3
        WHEN (running >> 99) & 1 > 0 THEN -4 ELSE -5 END::BIGINT AS code,
        sum(length_ns) AS total_ns
    FROM sweep WHERE place > 0 AND length_ns IS NOT NULL GROUP BY ALL
)
SELECT place, profile_id, process_id, window_index, step_id, start_ns, end_ns - start_ns AS step_ns,
    CASE WHEN code < 0 THEN 'idle' ELSE ['compute', 'compute', 'memory', 'collective'][class + 1] END AS kind,
    CASE WHEN code < 0 THEN ['communication calls', 'runtime calls', 'data loader', 'operators', 'nothing recorded'][-code]
        ELSE item END AS item, coalesce(total_ns, 0)::BIGINT AS total_ns
FROM steps LEFT JOIN owned USING (place) LEFT JOIN items USING (code)
ORDER BY place, kind, item;
