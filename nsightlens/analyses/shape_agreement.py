"""Work from shapes against ncu's counters: operations and bytes of each kernel and configuration that has both.

A row per configuration that ncu measured and whose operator has a formula in Kineto (or nsys). If matches identify ncu's
launches among them, only these count, else all launches of the same kernel, grid and block in the run, which must agree. For
products, convolutions and attention, operations are those of the precision with the most, else all. Ratios are the counted
figure over the one from shapes. The verdicts claim no more than names and numbers show.
@scope run
@topic roofline
@needs counters, shapes
@requires _bounded_kernels, _ncu_by_config, _roofline_point, _steps, kernels, matches, profiles, ranges, recordings
@assumes Both executions ran the same program on the same shapes.
@first name, flop_verdict, bytes_verdict, flop_ratio, bytes_ratio
@column run               Run (one workload in one configuration).
@column configuration_id  Configuration of ncu; key of ncu_by_config.
@column name              Kernel name as ncu prints it.
@column kernel_key        Canonical name, the same in the three tools.
@column configuration     Kernel key, grid and block.
@column family            Family of the kernel.
@column op                Operator whose shapes they are; NULL where launches differ in it.
@column op_shapes         Its shapes; NULL where they differ.
@column launches          Launches whose shapes were taken.
@column grade             launch, or configuration where which launch ncu measured is not known.
@column shape_flop        Operations of a launch by its shapes; NULL where unknown, or where launches differ.
@column counted_flop      Operations by the counters; NULL where not counted.
@column flop_ratio        counted_flop / shape_flop.
@column flop_verdict      What the ratio says.
@column shape_bytes       Least bytes of a launch by its shapes.
@column dram_bytes        Bytes of DRAM by the counters.
@column bytes_ratio       dram_bytes / shape_bytes.
@column bytes_verdict     What that ratio says.
@names kernel name, kernel_key
@names operator op
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa

from nsightlens.analyses import Ask, shape_work
from nsightlens.analyses.run_difference import ITEMS

_CONFIGURATIONS = f"""
SELECT run, configuration_id, name, kernel_key, family, {ITEMS['kernel']} AS configuration,
    sum(work_flop) AS all_flop, max(work_flop) FILTER (is_main) AS main_flop,
    bool_or(precision = 'tensor') AS uncounted, max(traffic_bytes) AS dram_bytes
FROM _roofline_point WHERE level = 'dram' GROUP BY ALL
ORDER BY run, name, configuration, configuration_id"""
_LAUNCHES = f"""
SELECT k.kernel_id, k.run, {ITEMS['kernel']} AS configuration, m.kernel_id IS NOT NULL AS matched
FROM kernels AS k LEFT JOIN (SELECT DISTINCT kernel_id FROM matches WHERE other_tool = 'ncu') AS m ON m.kernel_id = k.kernel_id
WHERE k.tool <> 'ncu' AND k.run IN (SELECT run FROM _ncu_by_config)"""
_COUNTED = ("run", "configuration_id", "name", "kernel_key", "configuration", "family")
_SHAPED = ("op", "op_shapes", "work_flop", "minimal_bytes", "work_definition")
_SCHEMA = pa.schema([
    *((name, pa.string()) for name in (*_COUNTED, "op", "op_shapes")),
    ("launches", pa.int64()), ("grade", pa.string()), ("shape_flop", pa.int64()), ("counted_flop", pa.int64()),
    ("flop_ratio", pa.float64()), ("flop_verdict", pa.string()), ("shape_bytes", pa.int64()), ("dram_bytes", pa.int64()),
    ("bytes_ratio", pa.float64()), ("bytes_verdict", pa.string()),
])
NEAR = 0.02
"""Relative difference within which two counts agree: ncu takes them in several passes."""


def analyse(ask: Ask) -> pa.Table:
    """Return a row per ncu configuration whose work is known from shapes."""
    works = {row["kernel_id"]: row for row in shape_work.analyse(ask).to_pylist() if row["formula"] is not None}
    launches: dict[tuple[str, str], dict[bool, list[dict[str, Any]]]] = defaultdict(lambda: {True: [], False: []})
    for row in ask(_LAUNCHES, []).to_pylist() if works else ():
        if row["kernel_id"] in works:
            launches[row["run"], row["configuration"]][row["matched"]].append(works[row["kernel_id"]])
    rows = []
    for row in ask(_CONFIGURATIONS, []).to_pylist() if launches else ():
        same = launches.get((row["run"], row["configuration"]))
        if same is not None:
            rows.append(_row(row, same[True] or same[False], "launch" if same[True] else "configuration"))
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _row(counted: dict[str, Any], launches: list[dict[str, Any]], grade: str) -> dict[str, Any]:
    shaped = {name: _common(launches, name) for name in _SHAPED}
    is_product = counted["family"] in shape_work.FAMILIES
    flop = counted["main_flop"] if is_product else counted["all_flop"]
    flop = None if counted["uncounted"] or flop is None else round(flop)
    size = None if counted["dram_bytes"] is None else round(counted["dram_bytes"])
    ratios = _ratio(flop, shaped["work_flop"]), _ratio(size, shaped["minimal_bytes"])
    differ = len({(one["work_flop"], one["minimal_bytes"]) for one in launches}) > 1
    return {name: counted[name] for name in _COUNTED} | {
        "op": shaped["op"], "op_shapes": shaped["op_shapes"], "launches": len(launches), "grade": grade,
        "shape_flop": shaped["work_flop"], "counted_flop": flop, "flop_ratio": ratios[0],
        "flop_verdict": "launches of this configuration differ in work" if differ else _flop_verdict(
            ratios[0], is_product, counted["kernel_key"], shaped["work_definition"] or "", flop, shaped["work_flop"]),
        "shape_bytes": shaped["minimal_bytes"], "dram_bytes": size, "bytes_ratio": ratios[1],
        "bytes_verdict": None if differ else _bytes_verdict(ratios[1], counted["kernel_key"]),
    }


def _common(rows: list[dict[str, Any]], name: str) -> Any:
    """Return what all rows hold, None where they differ."""
    values = {row[name] for row in rows}
    return values.pop() if len(values) == 1 else None


def _ratio(counted: int | None, expected: int | None) -> float | None:
    return round(counted / expected, 4) if counted is not None and expected else None


def _flop_verdict(ratio: float | None, is_product: bool, key: str, definition: str, counted: int | None,
                  expected: int | None) -> str:
    """Return what the ratio of operations says, as far as it is certain."""
    if ratio is None:
        return ("operations were not counted" if counted is None else "operations are not known from shapes" if expected is None
                else "none by shapes")
    if abs(ratio - 1) <= NEAR:
        return "agree"
    if not is_product:
        return "counted by convention: instructions are not the operator's arithmetic"
    if ratio < 1:
        name = key.lower()
        known = next((word for word in ("winograd", "fft", "strassen") if word in name), None)
        return f"fewer: {known} needs fewer than the direct algorithm" if known else "fewer: not explained by the name"
    if "diagonal" in definition and ratio <= 2 + NEAR:
        return "more: tiles on the diagonal of a causal mask are computed whole"
    return "more: tiles are computed whole, padding of the shapes included"


def _bytes_verdict(ratio: float | None, key: str) -> str | None:
    """Return what the ratio of bytes says, as far as it is certain."""
    if ratio is None:
        return None
    if abs(ratio - 1) <= NEAR:
        return "agree"
    if ratio < 1:
        return "fewer: a cache held part of it"
    return "more: split-K writes partial results" if "splitk" in key.lower().replace("_", "") else (
        "more: data is read or written again, or the tiles are padded")
