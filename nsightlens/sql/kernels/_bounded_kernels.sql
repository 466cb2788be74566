-- Kernels whose durations are possible: one that lasts longer than its stream allows (overrun_ns) ends here where the next
-- kernel of its stream begins, its duration_ns being that of `kernels` without overrun_ns. Unions and shares of time start
-- from here, so that one false end does not outweigh all others.
-- @scope rows
-- @requires kernels
-- @columns kernels
CREATE VIEW _bounded_kernels AS
SELECT * REPLACE (duration_ns - coalesce(overrun_ns, 0) AS duration_ns)
FROM kernels;
