"""The tables of a profile that have few rows: the profile itself, its processes, its devices, and what was wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from nsightlens.columns.row_templates import stored_schema
from nsightlens.discovery.files import path_text
from nsightlens.discovery.ranks import Selection
from nsightlens.pipeline.identity import ProfileIdentity
from nsightlens.pipeline.processes import Row
from nsightlens.pipeline.profile_rows import ProfileRows
from nsightlens.readers.batches import diagnostic, rows_to_batch
from nsightlens.schema import Table
from nsightlens.store import rules
from nsightlens.store.secret_free_rows import without_secrets_in_prose


def batch(table: Table, identified: ProfileIdentity, recorded: ProfileRows) -> pa.RecordBatch:
    """Return the stored rows of one of the small tables."""
    listed: dict[str, Callable[[], Iterable[Row]]] = {
        "processes": lambda: ({**p.row, "process_id": p.process_id} for p in identified.processes),
        "devices": identified.devices.values,
        "profiles": lambda: [_profile(identified, recorded)],
        "diagnostics": lambda: _diagnostics(identified),
    }
    stamp = {"tool": identified.profile.tool, "profile_id": identified.profile.profile_id}
    rows = rows_to_batch([{**row, **stamp} for row in listed[table.name]()], stored_schema(table), table.name)
    return without_secrets_in_prose(rows, table)


def _profile(identified: ProfileIdentity, recorded: ProfileRows) -> Row:
    heads = [w.small["profiles"][0] for w in identified.windows if w.small["profiles"]]
    row: dict[str, Any] = dict(heads[0]) if heads else {}
    for total in ("events", "events_lost"):
        counted = [h[total] for h in heads]
        row[total] = sum(counted) if counted and None not in counted else None
    row["truncated"] = any(h["truncated"] for h in heads)
    row["first_bad_byte"] = next((h["first_bad_byte"] for h in heads if h["first_bad_byte"] is not None), None)
    row |= {name: recorded.columns.rows(name) for name in ("kernels", "memory_ops", "api_calls", "ranges")}
    sidecar = identified.profile.sidecar
    row |= asdict(sidecar.selection if sidecar else Selection())
    row["settings"] = [*(row.get("settings") or ()), *(sidecar.settings if sidecar else ())] or None
    return row | {
        "kernel_ns": recorded.columns.kernel_ns,
        "gpu_first_ns": min((first for first, _ in identified.gpu_spans), default=None),
        "gpu_last_ns": max((last for _, last in identified.gpu_spans), default=None),
        "execution_id": sidecar.execution if sidecar else None,
        "simulated": sidecar.simulated if sidecar else False,
        "windows": len(identified.windows),
        "rules_version": rules.VERSIONS["names"],
    }


def _diagnostics(identified: ProfileIdentity) -> list[Row]:
    profile = identified.profile
    rows: list[Row] = []
    for code, message, count in identified.warnings:
        rows.extend(diagnostic("warning", code, message, count)[1].to_pylist())
    for window, paths in zip(identified.windows, profile.windows, strict=True):
        rows.extend({"path": path_text(paths[0]), **row} for row in window.small["diagnostics"])
    return [{"path": path_text(profile.windows[0][0]), **row} for row in rows]
