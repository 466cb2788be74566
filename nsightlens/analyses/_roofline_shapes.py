"""The rows of true_roofline for kernels without counters: operations and least bytes from the shapes of their operators."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.analyses import Ask, shape_work
from nsightlens.views.connection import connect

DEFINITION = "from shapes: every operand once"
"""The level_definition of these rows: no bytes that anything counted."""

_LAUNCHED = """
SELECT k.run, k.tool, k.rank, k.kernel_id, k.gpu, k.name, k.short_name, k.kernel_key, k.family, k.grid_x, k.grid_y, k.grid_z,
    k.block_x, k.block_y, k.block_z, k.duration_ns,
    k.tool = coalesce(?, t.tool) AS is_timed, coalesce(p.simulated, false) AS simulated
FROM kernels AS k
JOIN _timeline_tools AS t ON k.run = t.run
LEFT JOIN profiles AS p ON k.profile_id = p.profile_id
WHERE k.tool <> 'ncu' AND k.kernel_key IS NOT NULL AND coalesce(k.overrun_ns, 0) = 0
    AND (? IS NULL OR contains(lower(k.name), lower(?)) OR contains(lower(k.kernel_key), lower(?)))
    AND (? IS NULL OR regexp_matches(k.name, ?) OR regexp_matches(k.kernel_key, ?))
ORDER BY k.kernel_id"""
_PAIRS = "SELECT kernel_id, other_kernel_id FROM matches WHERE tool = 'nsys' AND other_tool = 'kineto' ORDER BY ALL"
# A slice of a GPU has a share of these peaks that no capture states.
_SHEETS = """
WITH gpus AS (
    SELECT run, name AS gpu, CASE WHEN a.force THEN coalesce(a.assumed, name) ELSE coalesce(name, a.assumed) END AS product,
        a.force, max(compute_capability) AS compute_capability, max(sm_count) AS sm_count
    FROM devices CROSS JOIN (SELECT CAST(? AS VARCHAR) AS assumed, CAST(? AS BOOLEAN) AS force) AS a
    GROUP BY ALL
), named AS (
    SELECT *, (SELECT datasheet FROM _datasheet(product := gpus.product)) AS sheet FROM gpus
)
SELECT n.run, n.gpu, n.compute_capability, n.sheet, k.peak_key, k.clock_hz, k.source,
    coalesce(n.sm_count = k.sm_count, n.product NOT ILIKE '%mig%') AS is_whole, k.flop_per_s, k.dram_bytes_per_s
FROM named AS n JOIN _gpu_peak AS k ON k.name = n.sheet
WHERE n.gpu IS NOT NULL OR n.force OR (SELECT misfit FROM _datasheet_misfit(sheet := n.sheet, product := n.product,
    measured_cc := n.compute_capability, measured_sms := n.sm_count)) IS NULL
ORDER BY ALL"""

_PLACED = """
WITH known AS (
    FROM work WHERE work_flop > 0 AND minimal_bytes > 0
), configured AS (
    SELECT *, struct_pack(grid_x, grid_y, grid_z, block_x, block_y, block_z) AS configuration FROM launched
), alike AS (  -- what all launches of a configuration in Kineto agree on
    SELECT c.run, c.kernel_key, c.configuration, min(k.kernel_id) AS source_id
    FROM configured AS c LEFT JOIN known AS k ON c.kernel_id = k.kernel_id
    WHERE c.tool = 'kineto'
    GROUP BY ALL
    HAVING count(k.kernel_id) = count(*) AND count(DISTINCT (k.op, k.op_shapes, k.work_flop, k.minimal_bytes, k.peak_key)) = 1
), sourced AS (
    SELECT c.*, coalesce(o.kernel_id, m.other_kernel_id, a.source_id) AS source_id,
        coalesce(o.kernel_id, m.other_kernel_id) IS NOT NULL AS is_same
    FROM configured AS c
    LEFT JOIN known AS o ON c.kernel_id = o.kernel_id
    LEFT JOIN (SELECT kernel_id, min(other_kernel_id) AS other_kernel_id FROM pairs
        WHERE other_kernel_id IN (SELECT kernel_id FROM known) GROUP BY kernel_id) AS m ON c.kernel_id = m.kernel_id
    LEFT JOIN alike AS a ON c.run = a.run AND c.kernel_key = a.kernel_key AND c.configuration = a.configuration
    WHERE c.is_timed AND c.duration_ns > 0
), grouped AS (
    SELECT s.run, CASE WHEN $each THEN s.rank END AS rank, s.tool, s.gpu, min(s.name) AS name, min(s.short_name) AS short_name,
        s.kernel_key, min(s.family) AS family, s.configuration, k.op, k.op_shapes, k.work_flop, k.minimal_bytes,
        coalesce(k.peak_key, k.precision) AS precision, k.peak_key, min(k.work_definition) AS work_definition,
        bool_and(s.is_same) AS is_same, bool_or(s.simulated) AS simulated, count(*) AS launches,
        min(s.duration_ns) AS least, quantile_cont(s.duration_ns, [0.05, 0.5, 0.95]) AS quantiles, max(s.duration_ns) AS greatest,
        sum(s.duration_ns) AS total
    FROM sourced AS s JOIN known AS k ON s.source_id = k.kernel_id
    WHERE (s.run, s.kernel_key, s.configuration) NOT IN (
        SELECT (run, kernel_key, struct_pack(grid_x, grid_y, grid_z, block_x, block_y, block_z)) FROM counted
        WHERE level = 'dram' AND is_main AND work_flop IS NOT NULL AND traffic_bytes IS NOT NULL)
    GROUP BY ALL
), rated AS (
    SELECT g.*, CAST(round(quantiles[2]) AS BIGINT) AS median_ns, h.compute_capability, h.sheet, h.source, h.clock_hz,
        CASE WHEN h.is_whole THEN h.flop_per_s END AS roof_flop,
        CASE WHEN h.is_whole AND coalesce(h.compute_capability, '') NOT IN ('8.7', '11.0', '12.1') THEN h.dram_bytes_per_s
            END AS roof_bytes
    FROM grouped AS g LEFT JOIN sheets AS h ON g.run = h.run AND g.gpu IS NOT DISTINCT FROM h.gpu AND g.peak_key = h.peak_key
)
SELECT
    'shapes ' || left(md5(concat_ws('|', run, kernel_key, configuration, op, op_shapes, work_flop, minimal_bytes, precision)), 16)
        AS configuration_id,
    run, rank, gpu, compute_capability, name, short_name, kernel_key, family, unnest(configuration), false AS summarised,
    simulated, 'dram' AS level, precision, true AS is_main, true AS plottable,
    'work from shapes; the bytes are the least possible, so that the intensity is an upper bound' AS warning,
    tool AS time_tool, CASE WHEN is_same THEN 'launch' ELSE 'configuration' END AS time_grade,
    CASE WHEN rank IS NULL THEN 'all ranks' ELSE 'same rank' END AS time_ranks, 'all' AS time_launches, launches,
    median_ns AS duration_ns, least AS min_duration_ns, greatest AS max_duration_ns,
    CAST(round(quantiles[1]) AS BIGINT) AS p5_duration_ns, CAST(round(quantiles[3]) AS BIGINT) AS p95_duration_ns,
    'shapes' AS work_source, CAST(work_flop AS DOUBLE) AS work_flop, work_definition,
    CAST(minimal_bytes AS DOUBLE) AS traffic_bytes, concat_ws(' ', op, op_shapes) AS traffic_source,
    $definition AS level_definition,
    1e9 * work_flop / median_ns AS achieved_flop_per_s, 1e9 * minimal_bytes / median_ns AS achieved_bytes_per_s,
    work_flop / minimal_bytes AS arithmetic_intensity,
    roof_flop AS datasheet_peak_flop_per_s, roof_bytes AS datasheet_peak_bytes_per_s,
    roof_flop / roof_bytes AS datasheet_ridge_point,
    1e11 / median_ns * greatest(work_flop / roof_flop, minimal_bytes / roof_bytes) AS datasheet_roof_pct,
    CASE WHEN roof_flop IS NOT NULL THEN clock_hz END AS datasheet_clock_hz, sheet AS datasheet_gpu, source AS datasheet_source
FROM rated
ORDER BY run, total DESC, configuration_id, rank"""


def rows(
    ask: Ask, counted: pa.Table, *, kernel: str | None, kernel_regex: str | None, assume_gpu: str | None, force_gpu: bool,
    time: str | None, each: bool,
) -> pa.Table:
    """Return rows of true_roofline, most GPU time first, for what `counted` (its rows from counters) has no work and bytes of.

    One per kernel, grid, block, operator and shapes; launches of all ranks together, or of each rank.
    """
    shaped = shape_work.analyse(ask)
    if not _is_known(shaped):
        return counted.schema.empty_table()
    tables = {
        "work": shaped, "counted": counted, "pairs": ask(_PAIRS, []),
        "sheets": ask(_SHEETS, [assume_gpu, force_gpu]),
        "launched": ask(_LAUNCHED, [time, kernel, kernel, kernel, kernel_regex, kernel_regex, kernel_regex]),
    }
    with connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        found = connection.sql(_PLACED, params={"each": each, "definition": DEFINITION}).to_arrow_table()
    return pa.table({field.name: found[field.name].cast(field.type) if field.name in found.column_names
                     else pa.nulls(found.num_rows, field.type) for field in counted.schema})


def _is_known(shaped: pa.Table) -> bool:
    """Return whether the work of any launch is known, without which no launch needs to be read."""
    return bool(pc.any(pc.and_(pc.greater(shaped["work_flop"], 0), pc.greater(shaped["minimal_bytes"], 0))).as_py())
