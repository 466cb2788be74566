-- How many launches waited in each stream: HTA's queue length summary, and the mean over time, per capture window. HTA's
-- figures (point_*) weigh each change alike, however long it lasted. Rules of counting: queue_length_series.
-- @scope profile
-- @requires queue_length_series
-- @assumes A stream's queue holds 1024 launches (full_length): CUDA does not document it.
-- @assumes The launching call is the one with the same correlation id in the process, and the tool put host and GPU on one clock.
-- @param  full_length    Launches that fill the queue: from then on a launch call may block.
-- @column run            Run (one workload in one configuration).
-- @column tool           nsys or kineto. Never add them up: they saw the same launches.
-- @column rank           Rank of the process; NULL where unknown.
-- @column profile_id     Profile; key of `profiles`.
-- @column window_index   Capture window of the process, from 0.
-- @column process_id     OS process.
-- @column device_id      The physical GPU.
-- @column context        CUDA context id within the process.
-- @column stream         Stream id within the process.
-- @column launches       Launch calls that put work into the stream.
-- @column observed_ns    First launch to last start of work.
-- @column mean_length    Mean over that time.
-- @column max_length     Longest queue.
-- @column full_ns        Time at full_length or above.
-- @column points         Changes of the length: two per launch.
-- @column point_mean     Mean of the length over the changes.
-- @column point_stddev   Sample standard deviation over the changes.
-- @column point_min      Shortest queue after a change.
-- @column point_p25      First quartile over the changes.
-- @column point_median   Median over the changes.
-- @column point_p75      Third quartile over the changes.
CREATE MACRO queue_length(full_length := 1024) AS TABLE
WITH lasting AS (
    SELECT *, lead(at_ns) OVER (PARTITION BY profile_id, window_index, process_id, device_id, context, stream
        ORDER BY at_ns, change DESC, launch_id) - at_ns AS lasts_ns
    FROM queue_length_series
)
SELECT
    run, tool, rank, profile_id, window_index, process_id, device_id, context, stream,
    count(*) // 2 AS launches,
    max(at_ns) - min(at_ns) AS observed_ns,
    sum(length * lasts_ns) / nullif(sum(lasts_ns), 0) AS mean_length,
    max(length) AS max_length,
    TRY_CAST(coalesce(sum(lasts_ns) FILTER (length >= full_length), 0) AS BIGINT) AS full_ns,
    count(*) AS points,
    avg(length) AS point_mean,
    stddev_samp(length ORDER BY length) AS point_stddev,
    min(length) AS point_min,
    quantile_cont(length, 0.25) AS point_p25,
    quantile_cont(length, 0.5) AS point_median,
    quantile_cont(length, 0.75) AS point_p75
FROM lasting
GROUP BY run, tool, rank, profile_id, window_index, process_id, device_id, context, stream
ORDER BY run, tool, rank, profile_id, window_index, process_id, device_id, context, stream;
