-- Gaps without work on a GPU, between its first and last work: the rows of `nsys analyze -r gpu_gaps`, whose threshold is
-- 500 ms (min_gap_ns := 500000000) and which looks at each process alone (per := 'process_device').
-- With min_gap_ns := 1 the gaps of a device sum to idle_ns of busy_time. ncu has no timeline, so no rows.
-- @scope rows
-- @needs gpu_work
-- @requires _gaps, _gpu_work, processes
-- @assumes All work in the window was recorded: work that the tool dropped, or that another report of the GPU holds, counts as
--     idle.
-- @assumes A CUDA graph of unknown kernels is busy from its first start to its last end.
-- @param  per         'device': processes that share a GPU keep it busy together; 'process_device': each on its own.
-- @param  min_gap_ns  Shortest gap to list, in ns.
-- @column run           Run (one workload in one configuration).
-- @column tool          nsys or kineto. Never add them up: they saw the same work.
-- @column rank          Rank of the process that ended the gap; NULL where unknown.
-- @column profile_id    Profile; starts are comparable only within one.
-- @column window_index  Capture window of the process; time between windows is not a gap.
-- @column process_id    OS process that ended the gap.
-- @column device_id     The physical GPU.
-- @column start_ns      Start of the gap, relative to the profile's origin.
-- @column gap_ns        Length of the gap.
-- @column next_kind     What ended it: kernel, memory or graph.
-- @column next_name     Name of the kernel that ended it; NULL for memory operations and graphs.
CREATE MACRO gpu_gaps(per := 'device', min_gap_ns := 10000) AS TABLE
WITH ended AS (
    SELECT w.*, g.start_ns AS idle_since_ns
    FROM _gaps(per := per, min_gap_ns := min_gap_ns) AS g
    JOIN _gpu_work AS w ON w.profile_id IS NOT DISTINCT FROM g.profile_id AND w.window_index IS NOT DISTINCT FROM g.window_index
        AND w.device_id IS NOT DISTINCT FROM g.device_id
        AND CASE per WHEN 'device' THEN NULL ELSE w.process_id END IS NOT DISTINCT FROM g.owner AND w.start_ns = g.end_ns
    QUALIFY row_number() OVER (
        PARTITION BY g.profile_id, g.window_index, g.device_id, g.owner, g.end_ns ORDER BY w.end_ns, w.process_id, w.kind, w.name
    ) = 1
)
SELECT
    w.run, w.tool, p.rank, w.profile_id, w.window_index, w.process_id, w.device_id,
    w.idle_since_ns AS start_ns, w.start_ns - w.idle_since_ns AS gap_ns, w.kind AS next_kind,
    CASE w.kind WHEN 'kernel' THEN w.name END AS next_name
FROM ended AS w
LEFT JOIN processes AS p ON w.process_id = p.process_id AND w.profile_id = p.profile_id
ORDER BY w.run, w.tool, gap_ns DESC, w.profile_id, w.window_index, w.device_id, start_ns, w.process_id;
