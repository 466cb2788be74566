"""Roofs and operation counts that a study measured or counted itself: they go before those of ncu and of the datasheet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from nsightlens.errors import UsageError

LEVELS = ("dram", "l2", "l1")
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_QUANTITY = re.compile(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([kKMGTP]?)(B/s|FLOP/s|OP/s|FLOP|OP|)")
_ADDED = ("given_peak_flop_per_s", "given_peak_bytes_per_s", "given_roof_pct")
_RATES = ("achieved_flop_per_s", "min_achieved_flop_per_s", "max_achieved_flop_per_s", "ncu_achieved_flop_per_s",
          "ncu_chart_flop_per_s", "ncu_chart_arithmetic_intensity", "arithmetic_intensity")
"""Columns that grow with the operations of a launch."""


def quantities(texts: Iterable[str], option: str, example: str) -> dict[str, float]:
    """Return the values of NAME=VALUE by their names: 'dram=2.9 TB/s' is {'dram': 2.9e12}. Raises UsageError for another text."""
    found = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        matched = _QUANTITY.fullmatch(value.strip())
        try:
            found[name.strip()] = float(matched[1]) * _PREFIXES[matched[2]] if matched else 0.0
        except ValueError:
            matched = None
        if not name.strip() or matched is None or not 0 < found[name.strip()] < float("inf"):
            raise UsageError(f"{option} {text!r}: NAME=VALUE is needed, such as {example}")
    return found


def figures(table: pa.Table, roofs: Mapping[str, float], flops: Mapping[str, float]) -> pa.Table:
    """Return rows of `roofline` or `true_roofline` with what a study gives: roofs, and operations of a launch.

    roofs: by level (dram, l2, l1: B/s) or precision (fp32, bf16, ...: FLOP/s). They stand in columns of their own, with the
    share of the roof that is left when they go first (given_roof_pct). flops: operations of one launch, by a part of the
    kernel's name (any case); they take the place of what was counted for the main precision, work_definition says 'given'.
    Raises UsageError for a roof or a kernel that no row has, and for a kernel of which no precision is known.
    """
    if not roofs and not flops:
        return table
    rows = table.to_pylist()
    for name, work in flops.items():
        _set_work([row for row in rows if _is_meant(name, row)], name, work)
    for name in roofs:
        if not any(name.lower() in LEVELS or is_path(name, row["precision"]) for row in rows):
            known = sorted({*LEVELS, *(row["precision"] for row in rows if row["precision"])})
            raise UsageError(f"no kernel has a roof {name}; there are {', '.join(known)}", subject="roof", value=name,
                             choices=known)
    for row in rows:
        _set_roofs(row, roofs)
    added = [pa.field(name, pa.float64()) for name in _ADDED]
    return pa.Table.from_pylist(rows, schema=pa.schema([*_as_fractions(table.schema), *added]))


def is_path(name: str, precision: str | None) -> bool:
    """Return whether a name such as 'bf16' or 'tensor' means this precision, such as 'tensor_bf16_dst_fp32'."""
    known = precision or ""
    is_tensor = known.startswith("tensor") and name.lower() in known
    return known == name.lower() or (is_tensor and name.lower() not in ("fp64", "fp32", "fp16"))


def _is_meant(name: str, row: Mapping[str, Any]) -> bool:
    return bool(row["is_main"]) and any(name.lower() in (row[column] or "").lower() for column in ("name", "kernel_key"))


def _set_work(rows: list[dict[str, Any]], name: str, work: float) -> None:
    """Give rows the operations of a launch."""
    if not rows:
        raise UsageError(f"no kernel has {name!r} in its name: its operations are given for nothing", subject="kernel",
                         value=name)
    for row in rows:
        if row["precision"] is None:
            raise UsageError(f"of which precision are the operations of {row['short_name']}? None were counted: "
                             "collect them (ncu --set roofline)")
        counted = row["work_flop"]
        more = work / counted if counted else None
        row |= {column: row[column] * more if row[column] is not None and more else None for column in _RATES if column in row}
        row |= {"work_flop": work, "work_definition": "given", "roof_pct": None, "datasheet_roof_pct": None}
        if not more and row["duration_ns"] and row["traffic_bytes"]:
            row |= {"achieved_flop_per_s": 1e9 * work / row["duration_ns"], "arithmetic_intensity": work / row["traffic_bytes"]}
            row |= {"plottable": True, "not_plottable_reason": None, "warning": None}
        elif not more and row["plottable"]:
            row |= {"plottable": False, "not_plottable_reason": "operations of a launch were given, and its duration is unknown"}


def _set_roofs(row: dict[str, Any], roofs: Mapping[str, float]) -> None:
    """Give a row its roofs, and its share of what is left when they go first."""
    compute = next((value for name, value in roofs.items() if is_path(name, row["precision"])), None)
    memory = next((value for name, value in roofs.items() if name.lower() == row["level"]), None)
    row |= dict(zip(_ADDED, (compute, memory, None), strict=True))
    if row["plottable"] and (compute or memory or row["work_definition"] == "given"):
        peaks = compute or row["peak_flop_per_s"], memory or row["peak_bytes_per_s"]
        if all(peaks):
            row["given_roof_pct"] = 100 * max(row["achieved_flop_per_s"] / peaks[0], row["achieved_bytes_per_s"] / peaks[1])


def _as_fractions(schema: pa.Schema) -> list[pa.Field]:
    """Return the fields of a table whose operations need not be integers."""
    return [field.with_type(pa.float64()) if field.name == "work_flop" else field for field in schema]
