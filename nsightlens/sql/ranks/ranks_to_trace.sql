-- Which ranks of a large job are worth tracing, from the records that NCCL and PyTorch write on all of them. A row is a
-- process with such records, those worth tracing first: ranks that never issued a collective in which the others wait,
-- stragglers, and for comparison the punctual rank that waited longest. All ranks leave a collective together, so the rank
-- with the shortest time came last (_record_matches): no clocks are compared.
-- @scope run
-- @needs collective_records
-- @requires _profile_executions, _record_matches, _record_members, collective_records, processes
-- @assumes All ranks leave a collective together; least_lag_ns is a rule of thumb for how far apart they may leave.
-- @assumes The last of the ranks whose records are here is the last of all: a rank without records may have come later.
-- @assumes A rank that waits for others longer than they wait for it was held up by them: its delay is not its own.
-- @assumes Two ranks that are late together hide each other; twice the even share of all delay is a rule of thumb.
-- @assumes Records follow the documentation and code of the Inspector and of PyTorch: no real file was seen; synthetic ones test
--     it.
-- @param  least_lag_ns   Lag in ns above which the last rank of a collective is named.
-- @first rank, reason, verdict, traced, caused_delay_ns, times_last, unissued, wait_ns
-- @column run                Run (one workload in one configuration).
-- @column tool               nccl_inspector or flight_recorder. Never add them up: they saw the same collectives.
-- @column execution_id       Start of the job, from a sidecar; NULL without one.
-- @column rank               Rank of the process; NULL where unknown, or where several processes claim it.
-- @column host               Host name.
-- @column pid                OS process id.
-- @column process_id         OS process; key of `processes`.
-- @column reason             Why to trace it: missing, straggler, or reference (on time, waited longest); NULL: no reason.
-- @column verdict            missing, straggler, held up (waited itself for longer), late (was last once), on time, or cannot
--                            tell.
-- @column traced             Whether the run has a timeline (nsys or Kineto) of this rank; NULL where the rank is unknown.
-- @column collectives        Its collectives that have a known time on another rank, too.
-- @column unmatched          Its other records: of no known time, or of no other rank.
-- @column times_last         Collectives in which the other ranks waited for it.
-- @column caused_delay_ns    How much earlier these would have ended without it: its lags behind the second last.
-- @column wait_ns            How long it waited for others, over all its collectives.
-- @column unissued           Collectives that others wait in and that it never issued.
-- @column communicator       Communicator in which it caused most delay, or did not issue.
-- @column communicator_name  What the program calls that; NULL where the records do not say.
CREATE MACRO ranks_to_trace(least_lag_ns := 10000) AS TABLE
WITH matches AS MATERIALIZED (
    FROM _record_matches
), waits AS (
    SELECT r.process_id, count(*) AS collectives, sum(r.duration_ns - m.transfer_ns) AS wait_ns
    FROM collective_records AS r LEFT JOIN _profile_executions AS e USING (profile_id)
    JOIN matches AS m ON m.run = r.run AND m.tool = r.tool AND m.execution IS NOT DISTINCT FROM e.execution
        AND m.communicator = r.communicator AND m.sequence = r.sequence
    WHERE r.duration_ns > 0 AND r.duration_clock IS DISTINCT FROM 'host'
    GROUP BY r.process_id
), late AS (
    SELECT last_process AS process_id, communicator, count(*) AS times_last, sum(lag_ns) AS caused_delay_ns
    FROM matches WHERE lag_ns > least_lag_ns GROUP BY ALL
), delays AS (
    SELECT process_id, sum(times_last) AS times_last, sum(caused_delay_ns) AS caused_delay_ns,
        arg_max(communicator, (caused_delay_ns, communicator)) AS communicator
    FROM late GROUP BY process_id
), unissued AS (
    SELECT process_id, sum(unissued) AS unissued, arg_max(communicator, (unissued, communicator)) AS communicator
    FROM _record_members WHERE unissued IS NOT NULL GROUP BY process_id
), judged AS (
    SELECT m.run, m.tool, m.execution, m.process_id, coalesce(w.collectives, 0) AS collectives,
        m.records - coalesce(w.collectives, 0) AS unmatched, coalesce(d.times_last, 0) AS times_last,
        coalesce(d.caused_delay_ns, 0) AS caused_delay_ns, w.wait_ns, coalesce(u.unissued, 0) AS unissued,
        coalesce(u.communicator, d.communicator) AS communicator, CASE
            WHEN u.unissued > 0 THEN 'missing'
            WHEN w.collectives IS NULL THEN 'cannot tell'
            WHEN d.caused_delay_ns IS NULL THEN 'on time'
            WHEN w.wait_ns > d.caused_delay_ns THEN 'held up'
            WHEN d.caused_delay_ns * count(*) OVER same >= 2 * sum(d.caused_delay_ns) OVER same
                OR d.caused_delay_ns = max(d.caused_delay_ns) OVER same THEN 'straggler'
            ELSE 'late' END AS verdict
    FROM (SELECT run, tool, execution, process_id, sum(records) AS records FROM _record_members GROUP BY ALL) AS m
    LEFT JOIN waits AS w USING (process_id) LEFT JOIN delays AS d USING (process_id) LEFT JOIN unissued AS u USING (process_id)
    WINDOW same AS (PARTITION BY m.run, m.tool, m.execution)
), placed AS (
    SELECT *, bool_or(verdict IN ('missing', 'straggler')) OVER same AS is_worth,
        row_number() OVER (PARTITION BY run, tool, execution, verdict ORDER BY wait_ns DESC NULLS LAST, process_id) AS place
    FROM judged WINDOW same AS (PARTITION BY run, tool, execution)
), ranked AS (
    SELECT p.*, c.host, c.pid,
        CASE WHEN count(*) OVER (PARTITION BY p.run, p.tool, p.execution, c.rank) = 1 THEN c.rank END AS rank
    FROM placed AS p LEFT JOIN processes AS c USING (process_id)
), names AS (
    SELECT run, tool, execution, communicator, any_value(communicator_name) AS communicator_name FROM _record_members GROUP BY ALL
)
SELECT r.run, r.tool, r.execution AS execution_id, r.rank, r.host, r.pid, r.process_id, CASE
        WHEN r.verdict IN ('missing', 'straggler') THEN r.verdict
        WHEN r.is_worth AND r.place = 1 AND r.verdict = 'on time' THEN 'reference' END AS reason,
    r.verdict, CASE WHEN r.rank IS NOT NULL THEN t.rank IS NOT NULL END AS traced, r.collectives,
    TRY_CAST(r.unmatched AS BIGINT) AS unmatched, TRY_CAST(r.times_last AS BIGINT) AS times_last,
    TRY_CAST(r.caused_delay_ns AS BIGINT) AS caused_delay_ns, TRY_CAST(r.wait_ns AS BIGINT) AS wait_ns,
    TRY_CAST(r.unissued AS BIGINT) AS unissued, r.communicator, n.communicator_name
FROM ranked AS r
LEFT JOIN (SELECT DISTINCT run, rank FROM processes WHERE tool IN ('nsys', 'kineto')) AS t ON t.run = r.run AND t.rank = r.rank
LEFT JOIN names AS n ON n.run = r.run AND n.tool = r.tool AND n.execution IS NOT DISTINCT FROM r.execution
    AND n.communicator = r.communicator
ORDER BY run, tool, execution_id, coalesce(array_position(['missing', 'straggler', 'reference'], reason), 4),
    unissued DESC, caused_delay_ns DESC, process_id;
