-- The kernels of the best undisturbed tool of each run: nsys where it recorded kernels, else Kineto; never ncu.
-- Start here for questions about time: each launch has one row. Columns are those of `kernels`.
-- @scope rows
-- @needs timeline
-- @requires _timeline_tools
-- @assumes nsys disturbs a run less than Kineto, and recorded all of it: where it has kernels, those of Kineto are left out.
-- @columns kernels
-- @names kernel name, kernel_key
-- @first rank, name, start_ns, duration_ns, op, step, stream
CREATE VIEW timeline_kernels AS
SELECT k.*
FROM kernels AS k
SEMI JOIN _timeline_tools AS t ON k.run = t.run AND k.tool = t.tool;
