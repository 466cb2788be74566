-- Migrations of unified memory by what caused them, per run: page faults stall the kernels that hit them, prefetches do not.
-- @scope run
-- @needs migrations
-- @assumes The driver states the cause; migrations run side by side, so their sum is not wall time.
-- @column run          Run (one workload in one configuration).
-- @column tool         nsys or kineto; Kineto records no causes.
-- @column total_ns     Sum of duration_ns.
-- @column migrations   Number of migrations.
-- @column total_bytes  Sum of the bytes.
-- @column avg_bytes    Mean size, to one decimal: small ones cost most per byte.
-- @column bytes_per_s  total_bytes over total_ns.
-- @column cause        page_fault, prefetch, speculative_prefetch, eviction, access_counters, unknown; NULL where not recorded.
-- @column direction    HtoD, DtoH or DtoD.
CREATE VIEW migration_summary AS
SELECT run, tool,
    TRY_CAST(sum(duration_ns) AS BIGINT) AS total_ns,
    count(*) AS migrations,
    TRY_CAST(sum(bytes) AS BIGINT) AS total_bytes,
    round(avg(bytes), 1) AS avg_bytes,
    1e9 * sum(bytes) / nullif(sum(duration_ns), 0) AS bytes_per_s,
    migration_cause AS cause, direction
FROM memory_ops
WHERE kind = 'migration'
GROUP BY run, tool, migration_cause, direction
ORDER BY run, tool, total_ns DESC NULLS LAST, cause, direction;
