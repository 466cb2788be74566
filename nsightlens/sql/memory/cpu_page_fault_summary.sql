-- Page faults of unified memory on the CPU, by the function that hit them, per run: the rows of `nsys stats
-- um_cpu_page_faults_sum`.
-- @scope run
-- @needs page_faults
-- @alias um_cpu_page_faults_sum
-- @assumes nsys recorded page faults (--cuda-um-cpu-page-faults). No public capture has any: synthetic files test this view.
-- @column run          Run (one workload in one configuration).
-- @column tool         nsys: no other tool records page faults.
-- @column page_faults  Number of page faults.
-- @column function     Function, or address of the instruction; NULL where the report does not say.
-- @column source_file  Source file, where recorded.
-- @column source_line  Line in it, where recorded.
CREATE VIEW cpu_page_fault_summary AS
SELECT run, tool, TRY_CAST(sum(faults) AS BIGINT) AS page_faults, "function", source_file, source_line
FROM page_faults
WHERE kind = 'cpu'
GROUP BY run, tool, "function", source_file, source_line
ORDER BY run, tool, page_faults DESC, "function", source_file, source_line;
