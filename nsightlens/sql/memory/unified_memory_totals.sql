-- Transfers and page faults of unified memory in total, per run: the numbers of `nsys stats um_total_sum`.
-- @scope run
-- @needs migrations
-- @alias um_total_sum
-- @assumes nsys records page faults only on request. No public capture has any: synthetic files test it.
-- @column run              Run (one workload in one configuration).
-- @column tool             nsys: no other tool records unified memory.
-- @column htod_bytes       Bytes that migrated from the host to a device; NULL where none did.
-- @column dtoh_bytes       Bytes that migrated from a device to the host; NULL where none did.
-- @column cpu_page_faults  Page faults on the CPU; NULL where none was recorded.
-- @column gpu_page_faults  Page faults on GPUs; NULL where none was recorded.
-- @column first_address    Lowest virtual address of a migration or a fault.
-- @column last_address     Highest one.
CREATE VIEW unified_memory_totals AS
WITH events AS (
    SELECT run, tool, address, CASE direction WHEN 'HtoD' THEN bytes END AS htod, CASE direction WHEN 'DtoH' THEN bytes END AS dtoh,
        NULL::BIGINT AS cpu, NULL::BIGINT AS gpu
    FROM memory_ops
    WHERE kind = 'migration' AND direction IN ('HtoD', 'DtoH')
    UNION ALL
    SELECT run, tool, address, NULL, NULL, CASE kind WHEN 'cpu' THEN faults END, CASE kind WHEN 'gpu' THEN faults END
    FROM page_faults
)
SELECT run, tool,
    TRY_CAST(sum(htod) AS BIGINT) AS htod_bytes, TRY_CAST(sum(dtoh) AS BIGINT) AS dtoh_bytes,
    TRY_CAST(sum(cpu) AS BIGINT) AS cpu_page_faults, TRY_CAST(sum(gpu) AS BIGINT) AS gpu_page_faults,
    min(address) AS first_address, max(address) AS last_address
FROM events
GROUP BY run, tool
ORDER BY run, tool;
