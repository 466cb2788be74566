-- Transfers and page faults of unified memory by virtual address, per run: the numbers of `nsys stats um_sum`, all rows, those
-- first to which the
-- host gave the most bytes.
-- @scope run
-- @needs migrations
-- @alias um_sum
-- @assumes Migrations of one address are of the same pages: their sizes may differ. Processes of a run share no addresses.
-- @assumes nsys records page faults only on request. No public capture has any: synthetic files test it.
-- @column run              Run (one workload in one configuration).
-- @column tool             nsys: no other tool records unified memory.
-- @column address          Virtual address of the first page (two's complement of the unsigned value); NULL: not recorded.
-- @column htod_bytes       Bytes that migrated from the host to a device; NULL where none did.
-- @column dtoh_bytes       Bytes that migrated from a device to the host; NULL where none did.
-- @column cpu_page_faults  Page faults on the CPU; NULL where none was recorded.
-- @column gpu_page_faults  Page faults on GPUs; NULL where none was recorded.
-- @column bytes_per_s      Bytes of both directions over the time of these migrations.
CREATE VIEW unified_memory_summary AS
WITH events AS (
    SELECT run, tool, address, duration_ns, bytes,
        CASE direction WHEN 'HtoD' THEN bytes END AS htod, CASE direction WHEN 'DtoH' THEN bytes END AS dtoh,
        NULL::BIGINT AS cpu, NULL::BIGINT AS gpu
    FROM memory_ops
    WHERE kind = 'migration' AND direction IN ('HtoD', 'DtoH')
    UNION ALL
    SELECT run, tool, address, NULL, NULL, NULL, NULL, CASE kind WHEN 'cpu' THEN faults END, CASE kind WHEN 'gpu' THEN faults END
    FROM page_faults
)
SELECT run, tool, address,
    TRY_CAST(sum(htod) AS BIGINT) AS htod_bytes, TRY_CAST(sum(dtoh) AS BIGINT) AS dtoh_bytes,
    TRY_CAST(sum(cpu) AS BIGINT) AS cpu_page_faults, TRY_CAST(sum(gpu) AS BIGINT) AS gpu_page_faults,
    1e9 * sum(bytes) / nullif(sum(duration_ns), 0) AS bytes_per_s
FROM events
GROUP BY run, tool, address
ORDER BY run, tool, htod_bytes DESC NULLS LAST, dtoh_bytes DESC NULLS LAST, address;
