"""What only the whole store can tell of its profiles: queries by diagnostic code, each giving rows of `diagnostics`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from nsightlens.discovery import mixed_workloads
from nsightlens.discovery.mixed_workloads import Capture
from nsightlens.readers.reader import Origin

_RANK_CONFLICT = """
WITH spans AS (
    SELECT c.run, c.tool, p.execution_id, c.rank, c.process_id, c.profile_id,
        p.origin_epoch_ns + p.gpu_first_ns AS first_ns, p.origin_epoch_ns + p.gpu_last_ns AS last_ns
    FROM processes AS c JOIN profiles AS p USING (profile_id)
    WHERE c.rank IS NOT NULL AND p.origin_epoch_ns IS NOT NULL AND p.gpu_first_ns IS NOT NULL
)
SELECT DISTINCT a.run, a.tool, a.profile_id, 'warning' AS severity, 'rank_conflict' AS code, 1 AS count,
    'rank ' || a.rank || ' is claimed by ' || a.process_id || ' and by ' || b.process_id || ' at the same time; both are kept, '
    || 'so sums over that rank count both. Name the ranks with sidecars or --rank-pattern, or give the runs different names'
    AS message
FROM spans AS a JOIN spans AS b ON a.run = b.run AND a.tool = b.tool AND a.rank = b.rank AND a.process_id < b.process_id
    AND a.execution_id IS NOT DISTINCT FROM b.execution_id AND a.first_ns < b.last_ns AND b.first_ns < a.last_ns
"""

# The ranks of one job work at the same time. Stretches of work more than a second apart (clocks of hosts differ by less) are
# captures of several times; said where no sidecar names their executions, and no rank shows that they complete each other.
_TIMES_POOLED = """
WITH span AS (
    SELECT p.run, p.tool, p.profile_id,
        p.origin_epoch_ns + p.gpu_first_ns AS first_ns, p.origin_epoch_ns + p.gpu_last_ns AS last_ns,
        list(DISTINCT c.rank) FILTER (c.rank IS NOT NULL) AS ranks
    FROM profiles AS p LEFT JOIN processes AS c USING (profile_id)
    WHERE p.execution_id IS NULL AND p.tool IN ('nsys', 'kineto') AND p.origin_epoch_ns IS NOT NULL AND p.gpu_first_ns IS NOT NULL
    GROUP BY ALL
), parted AS (
    SELECT *, coalesce(first_ns - max(last_ns) OVER (PARTITION BY run, tool ORDER BY first_ns, profile_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) > 1000000000, false) AS is_later
    FROM span
), numbered AS (
    SELECT *, sum(is_later::BIGINT) OVER (PARTITION BY run, tool ORDER BY first_ns, profile_id ROWS UNBOUNDED PRECEDING) AS time
    FROM parted
), doubtful AS (
    SELECT run, tool FROM numbered GROUP BY run, tool HAVING max(time) > 0 AND bool_or(ranks IS NULL)
    UNION SELECT run, tool FROM (SELECT run, tool, time, unnest(ranks) AS rank FROM numbered)
    GROUP BY run, tool, rank HAVING count(DISTINCT time) > 1
), named AS (
    SELECT n.run, n.tool, n.time, arg_min(n.profile_id, n.first_ns) AS profile_id, min(n.first_ns) AS first_ns,
        arg_min(f.path, n.first_ns) AS path
    FROM numbered AS n JOIN doubtful USING (run, tool)
    JOIN (SELECT profile_id, min(path) AS path FROM files GROUP BY profile_id) AS f USING (profile_id)
    GROUP BY n.run, n.tool, n.time
)
SELECT run, tool, arg_max(profile_id, time) AS profile_id, arg_max(path, time) AS path, 'warning' AS severity,
    'times_pooled' AS code, count(*) AS count,
    'captures of ' || count(*) || ' different times are treated as repeats of one run: '
    || string_agg(regexp_extract(path, '[^/]*$') || ' (' || strftime(make_timestamp(first_ns // 1000), '%Y-%m-%d %H:%M:%S')
        || ' UTC)', ', ' ORDER BY time) FILTER (time < 4)
    || CASE WHEN count(*) > 4 THEN ' and ' || (count(*) - 4) || ' more' ELSE '' END
    || '. Not so? Ingest each with its own --run NAME' AS message
FROM named GROUP BY run, tool
"""

# The wrappers write RUN_DIR/<tool>/rank0003.*, and a run directory is one configuration. One name for several of them: their
# captures are pooled as repetitions, where a comparison may be meant.
_DIRECTORIES_POOLED = """
WITH placed AS (
    SELECT run, tool, profile_id, path,
        regexp_extract(path, '^(.*)/(?:nsys|ncu|torch|plain)/rank[0-9]{4,}[.][^/]*$', 1) AS directory
    FROM files WHERE profile_id IS NOT NULL
), named AS (
    SELECT run, directory, arg_min(tool, path) AS tool, arg_min(profile_id, path) AS profile_id, min(path) AS path
    FROM placed WHERE directory <> '' GROUP BY run, directory
)
SELECT run, arg_max(tool, directory) AS tool, arg_max(profile_id, directory) AS profile_id, max(path) AS path,
    'warning' AS severity, 'directories_pooled' AS code, count(*) AS count,
    'captures of ' || count(*) || ' run directories are treated as one run, as all carry its name: '
    || array_to_string(list(directory ORDER BY directory)[:4], ', ')
    || CASE WHEN count(*) > 4 THEN ' and ' || (count(*) - 4) || ' more' ELSE '' END
    || '. If they are not repetitions or parts of one configuration, ingest each under its own run name into a new store, and '
    || 'record with a --run-id for each' AS message
FROM named GROUP BY run HAVING count(*) > 1
"""

# Two tools that recorded one workload have kernels in common, at least by base name. Graphs may hide those of one.
_NO_KERNEL_IN_COMMON = """
WITH tools AS (
    SELECT run, tool, min(profile_id) AS profile_id FROM profiles
    WHERE kernels > 0 AND run NOT IN (SELECT run FROM graph_executions)
        AND run NOT IN (SELECT run FROM diagnostics WHERE code = 'captures_differ')
    GROUP BY ALL
), named AS (
    SELECT DISTINCT run, tool, short_name FROM _kernels_templates
    WHERE short_name IS NOT NULL AND run IN (SELECT run FROM tools GROUP BY run HAVING count(*) > 1)
), counted AS (
    SELECT run, tool, min(short_name) || CASE WHEN count(*) > 1 THEN ' and ' || (count(*) - 1) || ' more' ELSE '' END AS examples
    FROM named GROUP BY ALL
)
SELECT a.run, b.tool, t.profile_id, 'warning' AS severity, 'no_kernel_in_common' AS code, 1 AS count,
    'run ' || a.run || ' combines captures without a kernel name in common: ' || a.tool || ' (' || a.examples || ') and '
    || b.tool || ' (' || b.examples || '). No launch of one can be found in the other. If they are not one workload, ingest '
    || 'each under a run name of its own (--run NAME), or from a folder of its own' AS message
FROM counted AS a JOIN counted AS b ON a.run = b.run AND a.tool < b.tool JOIN tools AS t ON t.run = b.run AND t.tool = b.tool
WHERE NOT EXISTS (
    FROM named AS x JOIN named AS y USING (run, short_name) WHERE x.run = a.run AND x.tool = a.tool AND y.tool = b.tool)
"""

CONFLICTS = {"rank_conflict": _RANK_CONFLICT, "times_pooled": _TIMES_POOLED, "directories_pooled": _DIRECTORIES_POOLED}
MATERIALISED = {"no_kernel_in_common": _NO_KERNEL_IN_COMMON}
"""The same, for stores that hold the kernels themselves: others would have to read parts that may be gone."""
POOLED = (mixed_workloads.CODE, *CONFLICTS, *MATERIALISED)
"""Codes of diagnostics that say: captures of one run may be of different workloads."""

# The processes of a profile that used a GPU are those with a device.
_CAPTURES = """
SELECT p.profile_id, min(f.path) AS path, p.run, p.tool, p.origin_epoch_ns + p.gpu_first_ns AS first_ns,
    list(DISTINCT d.name) FILTER (d.name IS NOT NULL) AS gpus,
    list(DISTINCT d.compute_capability) FILTER (d.compute_capability IS NOT NULL) AS compute_capabilities,
    list(DISTINCT c.name) FILTER (d.process_id IS NOT NULL AND c.name IS NOT NULL) AS programs,
    bool_or(d.process_id IS NOT NULL AND c.name IS NULL) AS is_unnamed,
    list(DISTINCT c.rank) FILTER (c.rank IS NOT NULL) AS ranks, bool_and(c.rank IS NOT NULL) AS is_ranked, min(c.host) AS host
FROM profiles AS p
JOIN files AS f USING (profile_id)
LEFT JOIN processes AS c ON c.profile_id = p.profile_id
LEFT JOIN devices AS d ON d.profile_id = c.profile_id AND d.process_id = c.process_id
GROUP BY ALL ORDER BY p.run, p.tool, path
"""


def mixed(ask: Callable[[str], pa.Table]) -> list[dict[str, Any]]:
    """Return the rows of `diagnostics` about runs whose captures are of different GPUs or programs."""
    captures, profiles = [], {}
    for row in ask(_CAPTURES).to_pylist():
        gpus, capabilities, programs, ranks = (
            frozenset(row[name] or ()) for name in ("gpus", "compute_capabilities", "programs", "ranks"))
        origin = Origin(gpus, capabilities, frozenset() if row["is_unnamed"] else programs)
        profiles[row["path"]] = row["profile_id"]
        captures.append(Capture(row["path"], row["run"], row["tool"], origin, ranks if row["is_ranked"] else frozenset(),
                                row["host"], row["first_ns"]))
    return [{"run": last.run, "tool": last.tool, "profile_id": profiles[last.path], "path": last.path, "severity": "warning",
             "code": mixed_workloads.CODE, "count": len(one.kinds), "message": f"{one.message}. {mixed_workloads.REMEDY}"}
            for one in mixed_workloads.mixtures(captures) for last in one.kinds[-1:]]
