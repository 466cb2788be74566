-- The SM clock while each kernel ran, as the tool sampled it: the mean of the samples whose stretches cover the kernel. These are the samples
-- within it and the first one after it, where that lies no further behind its end than samples are usually apart.
-- @scope rows
-- @requires device_samples, kernels
-- @assumes A sample is the mean of the stretch before it.
-- @column kernel_id     The kernel.
-- @column tool          nsys or kineto.
-- @column clock_domain  Whose clock it is: SM, or GPC where no SM clock was sampled of the GPU.
-- @column samples       Samples behind it.
-- @column clock_hz      Their mean.
CREATE VIEW _sampled_clock AS
WITH named AS (
    SELECT profile_id, device_id, at_ns, value, upper(regexp_extract(metric, '(?i)^(SM|GPC)s? Clock', 1)) AS clock_domain
    FROM device_samples
    WHERE unit = 'hz' AND value > 0 AND at_ns IS NOT NULL AND regexp_matches(metric, '(?i)^(SM|GPC)s? Clock')
), chosen AS (
    FROM named
    QUALIFY max(clock_domain) OVER (PARTITION BY profile_id, device_id) = clock_domain
), clocks AS (
    SELECT profile_id, device_id, clock_domain, at_ns, avg(value) AS hz
    FROM chosen
    GROUP BY profile_id, device_id, clock_domain, at_ns
), numbered AS MATERIALIZED (
    SELECT profile_id, device_id, clock_domain, at_ns, row_number() OVER in_order AS place, sum(hz) OVER in_order AS total,
        at_ns - lag(at_ns) OVER in_order AS stretch_ns
    FROM clocks
    WINDOW in_order AS (PARTITION BY profile_id, device_id ORDER BY at_ns ROWS UNBOUNDED PRECEDING)
), periods AS (
    SELECT profile_id, device_id, min(clock_domain) AS clock_domain, median(stretch_ns) AS period_ns
    FROM numbered
    GROUP BY profile_id, device_id
), ran AS (
    SELECT k.kernel_id, k.tool, k.profile_id, k.device_id, p.clock_domain, p.period_ns, k.start_ns,
        k.start_ns + k.duration_ns - coalesce(k.overrun_ns, 0) AS end_ns
    FROM kernels AS k
    JOIN periods AS p ON k.profile_id = p.profile_id AND k.device_id = p.device_id
    WHERE k.start_ns IS NOT NULL AND k.duration_ns >= 0
), covered AS (
    SELECT r.kernel_id, r.tool, r.clock_domain, coalesce(b.place, 0) AS first_place, coalesce(b.total, 0) AS first_total,
        CASE WHEN n.at_ns - r.end_ns <= r.period_ns THEN n.place ELSE w.place END AS last_place,
        CASE WHEN n.at_ns - r.end_ns <= r.period_ns THEN n.total ELSE w.total END AS last_total
    FROM ran AS r
    ASOF LEFT JOIN numbered AS b ON r.profile_id = b.profile_id AND r.device_id = b.device_id AND r.start_ns >= b.at_ns
    ASOF LEFT JOIN numbered AS w ON r.profile_id = w.profile_id AND r.device_id = w.device_id AND r.end_ns >= w.at_ns
    ASOF LEFT JOIN numbered AS n ON r.profile_id = n.profile_id AND r.device_id = n.device_id AND r.end_ns <= n.at_ns
)
SELECT kernel_id, tool, clock_domain, last_place - first_place AS samples,
    (last_total - first_total) / (last_place - first_place) AS clock_hz
FROM covered
WHERE last_place > first_place;
