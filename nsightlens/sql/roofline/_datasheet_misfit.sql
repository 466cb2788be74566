-- Why the GPU of a datasheet cannot be the one that ncu measured: one row, NULL where nothing speaks against it.
-- @scope run
-- @param  sheet           Row of gpu_peaks, by its name.
-- @param  product         Product name that it was found by.
-- @param  measured_cc     Compute capability of the report's GPU.
-- @param  measured_sms    Its SMs; NULL: by fp32_per_cycle.
-- @param  fp32_per_cycle  FP32 operations of all its SMs in a cycle, which each datasheet has per SM.
-- @column misfit          What differs.
CREATE MACRO _datasheet_misfit(sheet := NULL, product := NULL, measured_cc := NULL, measured_sms := NULL, fp32_per_cycle := NULL)
AS TABLE
WITH compared AS (
    SELECT *, coalesce(measured_sms, CAST(round(fp32_per_cycle / fp32_flop_per_clock_per_sm) AS BIGINT)) AS report_sms
    FROM gpu_peaks WHERE name = sheet
)
SELECT min(CASE
    WHEN TRY_CAST(measured_cc AS DECIMAL(4, 1)) <> TRY_CAST(compute_capability AS DECIMAL(4, 1))
        THEN 'it has compute capability ' || compute_capability || ', the report''s GPU ' || measured_cc
    WHEN report_sms <> sm_count AND product NOT ILIKE '%mig%'
        THEN 'it has ' || sm_count || ' SMs, the report''s GPU ' || report_sms END) AS misfit
FROM compared;
