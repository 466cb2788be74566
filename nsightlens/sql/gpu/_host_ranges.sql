-- What the host was in: ranges that last, of any kind, and MPI calls. With united, the union of all of each process: its stretches
-- without a pause, by a sweep over the starts with the latest end so far.
-- @scope rows
-- @requires mpi_calls, ranges
-- @param  united  Stretches of each process in place of its ranges.
-- @column run         Run.
-- @column tool        nsys or kineto.
-- @column profile_id  Profile.
-- @column process_id  OS process.
-- @column kind        Kind of the range, or mpi; NULL for a union.
-- @column domain      NVTX domain; NULL for the default domain and elsewhere.
-- @column name        Name of the range, or the MPI function; NULL for a union.
-- @column start_ns    Start, relative to the profile's origin.
-- @column end_ns      End.
CREATE MACRO _host_ranges(united := false) AS TABLE
WITH named AS NOT MATERIALIZED (
    SELECT run, tool, profile_id, process_id, kind, domain, name, start_ns, start_ns + duration_ns AS end_ns
    FROM ranges WHERE kind NOT IN ('nvtx_mark', 'gpu_annotation') AND duration_ns > 0
    UNION ALL
    SELECT run, tool, profile_id, process_id, 'mpi', NULL, name, start_ns, start_ns + duration_ns
    FROM mpi_calls WHERE duration_ns > 0
), processes_of AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY run, tool, profile_id, process_id)::INTEGER AS track
    FROM (SELECT DISTINCT run, tool, profile_id, process_id FROM named WHERE united)
), sorted AS NOT MATERIALIZED (
    SELECT p.track, n.start_ns, n.end_ns
    FROM named AS n JOIN processes_of AS p ON n.profile_id IS NOT DISTINCT FROM p.profile_id
        AND n.process_id IS NOT DISTINCT FROM p.process_id
    ORDER BY p.track, n.start_ns
), reached AS NOT MATERIALIZED (
    -- streaming windows: the track above the end, so that each track begins with a greater one
    SELECT *, max((track::HUGEINT << 64) + end_ns) OVER (ROWS UNBOUNDED PRECEDING) AS reach FROM sorted
), apart AS NOT MATERIALIZED (
    SELECT *, coalesce((track::HUGEINT << 64) + start_ns > lag(reach) OVER (), true) AS is_apart FROM reached
), numbered AS NOT MATERIALIZED (
    SELECT *, sum(is_apart::INTEGER) OVER (ROWS UNBOUNDED PRECEDING) AS stretch FROM apart
), stretches AS NOT MATERIALIZED (
    SELECT track, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM numbered GROUP BY track, stretch
)
FROM named WHERE NOT united
UNION ALL
SELECT p.run, p.tool, p.profile_id, p.process_id, NULL, NULL, NULL, s.start_ns, s.end_ns
FROM stretches AS s JOIN processes_of AS p USING (track);
