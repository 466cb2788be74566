-- Time spent in each annotation (record_function and similar), per process: as the CPU saw it, and as the profiler drew it
-- on the GPU track, from the first to the last kernel launched inside. HTA's user annotation breakdown. Annotations nest:
-- the totals of different names overlap. Kineto only; nvtx_summary has NVTX ranges. Ranges never closed have no row.
-- @scope profile
-- @alias get_gpu_user_annotation_breakdown
-- @needs annotations
-- @requires ranges
-- @assumes Kineto drew the GPU track rightly: gpu_annotation repeats it. Traces without that track have CPU rows only.
-- @assumes Equal names are one annotation, whatever the thread; annotations of equal name inside each other count each.
-- @column run         Run (one workload in one configuration).
-- @column tool        kineto.
-- @column rank        Rank of the process; NULL where unknown.
-- @column profile_id  Profile; key of `profiles`.
-- @column process_id  OS process.
-- @column kind        annotation (on the CPU) or gpu_annotation.
-- @column total_ns    Sum of the durations.
-- @column instances   Annotations of that name.
-- @column avg_ns      Mean duration, to one decimal.
-- @column stddev_ns   Sample standard deviation of the durations; NULL for a single one.
-- @column min_ns      Shortest.
-- @column max_ns      Longest.
-- @column name        Name of the annotation.
-- @names annotation name
CREATE VIEW annotation_summary AS
SELECT
    r.run, r.tool, p.rank, r.profile_id, r.process_id, r.kind,
    TRY_CAST(sum(r.duration_ns) AS BIGINT) AS total_ns,
    count(*) AS instances,
    round(avg(r.duration_ns), 1) AS avg_ns,
    stddev_samp(r.duration_ns ORDER BY r.duration_ns) AS stddev_ns,
    min(r.duration_ns) AS min_ns,
    max(r.duration_ns) AS max_ns,
    r.name
FROM ranges AS r
LEFT JOIN processes AS p ON r.process_id = p.process_id AND r.profile_id = p.profile_id
WHERE r.kind IN ('annotation', 'gpu_annotation') AND r.duration_ns IS NOT NULL
GROUP BY r.run, r.tool, p.rank, r.profile_id, r.process_id, r.kind, r.name
ORDER BY r.run, r.tool, p.rank, r.profile_id, r.process_id, r.kind, total_ns DESC, r.name;
