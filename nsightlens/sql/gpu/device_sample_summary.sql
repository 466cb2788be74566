-- GPU samples over the whole capture, by GPU and metric: clocks, activity, throughput.
-- @scope profile
-- @needs device_samples
-- @assumes Samples are equally spaced, so that their mean is the mean over time. They include the work of every process on the
--     GPU.
-- @assumes No public capture with such samples was found: synthetic files with the documented tables test this view.
-- @column run         Run (one workload in one configuration).
-- @column tool        nsys (GPU metrics) or kineto (counter events).
-- @column profile_id  Profile.
-- @column rank        Rank of the process that used the GPU first; NULL where unknown.
-- @column device      Its ordinal of the GPU; NULL where the report has none.
-- @column gpu         Product name.
-- @column metric      Name as the tool gives it, without the unit.
-- @column unit        hz, %, or what the tool writes.
-- @column samples     Number of samples.
-- @column mean        Mean of the values.
-- @column minimum     Smallest value.
-- @column p5          5th percentile, interpolated linearly between the two nearest samples, to three decimals.
-- @column median      Median, interpolated the same way.
-- @column p95         95th percentile, interpolated the same way.
-- @column maximum     Largest value.
-- @column first_ns    Time of the first sample, relative to the profile's origin.
-- @column last_ns     Time of the last one.
-- @column device_id   The GPU.
CREATE VIEW device_sample_summary AS
WITH grouped AS (
    SELECT run, tool, profile_id, min(rank) AS rank, min(device) AS device, min(gpu) AS gpu, metric, unit, device_id, count(*) AS samples,
        avg(value) AS mean, min(value) AS minimum, max(value) AS maximum, quantile_cont(value, [0.05, 0.5, 0.95]) AS quantiles,
        min(at_ns) AS first_ns, max(at_ns) AS last_ns
    FROM device_samples
    GROUP BY run, tool, profile_id, device_id, metric, unit
)
SELECT run, tool, profile_id, rank, device, gpu, metric, unit, samples, mean, minimum,
    round(quantiles[1], 3) AS p5, round(quantiles[2], 3) AS median, round(quantiles[3], 3) AS p95, maximum, first_ns, last_ns, device_id
FROM grouped
ORDER BY run, tool, profile_id, device_id, metric, unit;
