-- How the floating-point instructions of the CUDA cores are counted, per precision and instruction.
-- @scope run
-- @column precision  fp64, fp32 or fp16.
-- @column op         Instruction: add, mul or fma of the precision.
-- @column weight     Operations per thread instruction (half-precision instructions work on pairs).
-- @column basis      What the metric is per: launch, smsp cycle, sm cycle, second; or peak (per SM cycle, the roof).
-- @column form       The form with the least number is taken.
-- @column metric     ncu metric.
-- @column factor     Thread instructions per unit of the metric.
CREATE VIEW _roofline_core_term AS
SELECT precision, op, weight, basis, form, head || '__sass_thread_inst_executed_op_' || op || '_pred_on' || tail AS metric, factor
FROM (VALUES
    ('fp64', 'dadd', 1), ('fp64', 'dmul', 1), ('fp64', 'dfma', 2),
    ('fp32', 'fadd', 1), ('fp32', 'fmul', 1), ('fp32', 'ffma', 2),
    ('fp16', 'hadd', 2), ('fp16', 'hmul', 2), ('fp16', 'hfma', 4)
) AS instruction(precision, op, weight)
CROSS JOIN (VALUES
    ('launch', 1, 'smsp', '.sum', 1.0),
    ('launch', 2, 'sm', '.sum', 1.0),
    ('smsp cycle', 3, 'derived__smsp', '_x4', 0.25),
    ('smsp cycle', 4, 'derived__smsp', '_x2', 0.5),
    ('smsp cycle', 5, 'smsp', '.sum.per_cycle_elapsed', 1.0),
    ('sm cycle', 6, 'sm', '.sum.per_cycle_elapsed', 1.0),
    ('second', 7, 'smsp', '.sum.per_second', 1.0),
    ('second', 8, 'sm', '.sum.per_second', 1.0),
    ('peak', 1, 'derived__sm', '_x4', 0.25),
    ('peak', 2, 'derived__sm', '_x2', 0.5),
    ('peak', 3, 'sm', '.sum.peak_sustained', 1.0),
    ('peak', 4, 'smsp', '.sum.peak_sustained', 1.0)
) AS form(basis, form, head, tail, factor);
