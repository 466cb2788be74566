-- GPU samples taken while each kernel ran: clock, activity of SMs and tensor cores, memory throughput.
-- @scope profile
-- @needs device_samples
-- @assumes A sample belongs to the kernel that began last before it, if that still ran: concurrent kernels share the GPU.
-- @assumes A sample is the mean over the interval before it. For shorter kernels it mostly shows what ran before them.
-- @assumes No public capture with such samples was found: synthetic files with the documented tables test this view.
-- @column run         Run (one workload in one configuration).
-- @column tool        nsys (GPU metrics) or kineto (counter events).
-- @column profile_id  Profile.
-- @column gpu              Product name.
-- @column kernel_key       Canonical name of the kernel.
-- @column metric           Name as the tool gives it, without the unit.
-- @column unit             hz, %, or what the tool writes.
-- @column samples          Samples while it ran.
-- @column sampled_kernels  Executions with at least one sample.
-- @column sampled_ns       Duration of these executions.
-- @column mean             Mean of the values.
-- @column minimum          Smallest value.
-- @column maximum          Largest value.
-- @column stddev           Sample standard deviation (n - 1) of the means of the executions; NULL for a single one.
-- @column device_id        The GPU.
-- @names kernel kernel_key
CREATE VIEW kernel_device_samples AS
WITH ran AS (
    SELECT profile_id, device_id, kernel_id, kernel_key, start_ns, duration_ns - coalesce(overrun_ns, 0) AS lasted_ns
    FROM kernels
    WHERE start_ns IS NOT NULL AND duration_ns > 0 AND device_id IN (SELECT device_id FROM device_samples)
    QUALIFY row_number() OVER (PARTITION BY profile_id, device_id, start_ns ORDER BY duration_ns DESC, kernel_id) = 1
), during AS (
    SELECT s.run, s.tool, s.profile_id, s.gpu, k.kernel_key, s.metric, s.unit, s.device_id, s.value, k.kernel_id, k.lasted_ns
    FROM device_samples AS s
    ASOF JOIN ran AS k ON s.profile_id = k.profile_id AND s.device_id = k.device_id AND s.at_ns >= k.start_ns
    WHERE s.at_ns <= k.start_ns + k.lasted_ns
), grouped AS (
    SELECT run, tool, profile_id, min(gpu) AS gpu, kernel_key, metric, unit, device_id, kernel_id, min(lasted_ns) AS lasted_ns,
        count(*) AS samples, count(value) AS known, sum(value) AS total, avg(value) AS mean, min(value) AS minimum,
        max(value) AS maximum
    FROM during
    GROUP BY run, tool, profile_id, device_id, kernel_key, metric, unit, kernel_id
)
SELECT run, tool, profile_id, min(gpu) AS gpu, kernel_key, metric, unit,
    TRY_CAST(sum(samples) AS BIGINT) AS samples,
    count(*) AS sampled_kernels,
    TRY_CAST(sum(lasted_ns) AS BIGINT) AS sampled_ns,
    sum(total) / nullif(sum(known), 0) AS mean,
    min(minimum) AS minimum, max(maximum) AS maximum,
    stddev_samp(mean) AS stddev, device_id
FROM grouped
GROUP BY run, tool, profile_id, device_id, kernel_key, metric, unit
ORDER BY run, tool, profile_id, device_id, sampled_ns DESC, kernel_key, metric, unit;
