-- How many launches waited in each stream: HTA's queue length summary, and the mean over time, per capture window. HTA's
-- figures (point_*) weigh each change equally, however long it lasted. queue_length_series has the rules of counting.
-- @scope profile
-- @alias get_queue_length_summary
-- @needs gpu_work
-- @requires _queue_lengths, processes
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
WITH placed AS (
    SELECT *, sum(points) OVER (queue ORDER BY length) AS upto, sum(points) OVER queue - 1 AS last_place
    FROM _queue_lengths WINDOW queue AS (PARTITION BY run, tool, profile_id, window_index, process_id, device_id, context, stream)
), summed AS (
    SELECT
        run, tool, profile_id, window_index, process_id, device_id, context, stream, sum(points)::BIGINT AS points,
        TRY_CAST(sum(lasts_ns) AS BIGINT) AS observed_ns,
        sum(length * lasts_ns::HUGEINT) / nullif(sum(lasts_ns), 0) AS mean_length, max(length) AS max_length,
        TRY_CAST(coalesce(sum(lasts_ns) FILTER (length >= full_length), 0) AS BIGINT) AS full_ns,
        sum(length * points) / sum(points) AS point_mean,
        -- sums of integers, exact in any order: at most as long as there are launches, the squares stay far below 127 bits
        sqrt((sum(points) * sum(length * length * points) - sum(length * points) * sum(length * points))
            / nullif(sum(points) * (sum(points) - 1), 0)) AS point_stddev,
        min(length) AS point_min, any_value(last_place)::DOUBLE AS last_place,
        -- the two lengths around each quartile, in the order of the points counted from 0
        min(length) FILTER (upto > floor(0.25 * last_place)) AS low_p25, min(length) FILTER (upto > ceil(0.25 * last_place)) AS high_p25,
        min(length) FILTER (upto > floor(0.5 * last_place)) AS low_median, min(length) FILTER (upto > ceil(0.5 * last_place)) AS high_median,
        min(length) FILTER (upto > floor(0.75 * last_place)) AS low_p75, min(length) FILTER (upto > ceil(0.75 * last_place)) AS high_p75
    FROM placed GROUP BY run, tool, profile_id, window_index, process_id, device_id, context, stream
)
SELECT
    s.run, s.tool, p.rank, s.profile_id, s.window_index, s.process_id, s.device_id, s.context, s.stream,
    points // 2 AS launches, observed_ns, mean_length, max_length, full_ns, points, point_mean, point_stddev, point_min,
    low_p25 + (high_p25 - low_p25) * (0.25 * last_place - floor(0.25 * last_place)) AS point_p25,
    low_median + (high_median - low_median) * (0.5 * last_place - floor(0.5 * last_place)) AS point_median,
    low_p75 + (high_p75 - low_p75) * (0.75 * last_place - floor(0.75 * last_place)) AS point_p75
FROM summed AS s
LEFT JOIN processes AS p ON s.process_id = p.process_id AND s.profile_id = p.profile_id
ORDER BY s.run, s.tool, p.rank, s.profile_id, s.window_index, s.process_id, s.device_id, s.context, s.stream;
