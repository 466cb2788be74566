"""Report -> batches of what stands beside the kernels: processes, devices, texts, rules, summaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.readers.batches import Batch, batch_of, conform
from nsightlens.readers.ncu.counters import INT32_MAX, Counters, integer
from nsightlens.readers.ncu.kernels import dimensions, ordinals
from nsightlens.readers.ncu.merge import NcuReport
from nsightlens.readers.ncu.numbers import Floats, percentage
from nsightlens.readers.ncu.page import Label, Launch, whole
from nsightlens.readers.ncu.summary import Summary
from nsightlens.schema import TABLES

_ATTRIBUTES = (
    "clock_rate", "memory_clock_rate", "global_memory_bus_width", "total_memory", "l2_cache_size",
    "max_threads_per_multiprocessor", "compute_capability_major", "compute_capability_minor",
    "pci_domain_id", "pci_bus_id", "pci_device_id",
)  # fmt: skip


def processes(launches: Sequence[Launch], summaries: Sequence[Summary]) -> tuple[Batch, list[int], list[int]]:
    """Return the `processes` batch, and the process of each launch and of each summary."""
    position: dict[tuple[int | None, str | None], int] = {}
    rows: list[dict[str, object]] = []
    found: list[list[int]] = []
    for group in (launches, [summary.launches for summary in summaries]):
        mine = []
        for launch in group:
            host = launch.named_host
            at = position.setdefault((launch.pid, host), len(rows))
            if at == len(rows):
                rows.append({"pid": launch.pid, "host": host, "name": launch.process})
            mine.append(at)
        found.append(mine)
    return ("processes", batch_of("processes", rows)), found[0], found[1]


def devices(report: NcuReport, counters: Counters, process_of: Sequence[int], summed: Sequence[tuple[int, Launch]]) -> Batch:
    """Return the `devices` batch: one row per process and ordinal, with the properties of the GPU that its launches carry.

    summed: processes and launches of summaries; they have only the compute capability.
    """
    groups: dict[tuple[int, int | None], list[int]] = {}
    for i, key in enumerate(zip(process_of, ordinals(report, counters), strict=True)):
        groups.setdefault(key, []).append(i)
    values = {name: counters.of(f"device__attribute_{name}")[0] for name in _ATTRIBUTES}
    values["sm_count"] = counters.of("device__attribute_multiprocessor_count", "launch__sm_count")[0]
    names = gpu_names(report.texts)
    rows: list[dict[str, object]] = []
    for (process, ordinal), members in groups.items():
        attributes = {name: _first(column[members]) for name, column in values.items()}
        row = _device(attributes)
        row["name"] = next((names[i] for i in members if i in names), None)
        printed = next((cc for i in members if (cc := report.launches[i].cc)), None)
        row["compute_capability"] = printed or _capability(attributes)
        if ordinal is not None or any(value is not None for value in row.values()):
            rows.append(row | {"process_index": process, "device": ordinal})
    others = {(process, whole(launch.device)): launch.cc for process, launch in summed}
    rows += [
        {"process_index": process, "device": ordinal, "compute_capability": cc}
        for (process, ordinal), cc in others.items() if ordinal is not None and (process, ordinal) not in groups
    ]
    return "devices", batch_of("devices", rows)


def gpu_names(texts: pa.Table) -> dict[int, str]:
    """Return the product name of the GPU by launch, where the texts of launches (page.TEXTS) have it."""
    named = texts.filter(pc.equal(texts["metric"], "device__attribute_display_name"))
    return dict(zip(named["launch"].to_pylist(), named["value"].to_pylist(), strict=True))


def _first(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known[0]) if len(known) else None


def _device(attributes: dict[str, float | None]) -> dict[str, object]:
    """Return the columns of a device; clock rates are printed in kHz, DRAM moves data twice a cycle."""
    clock, memory_clock, width = attributes["clock_rate"], attributes["memory_clock_rate"], attributes["global_memory_bus_width"]
    domain, bus, slot = (integer(attributes[name]) for name in ("pci_domain_id", "pci_bus_id", "pci_device_id"))
    return {
        "sm_count": integer(attributes["sm_count"], INT32_MAX),
        "memory_bytes": integer(attributes["total_memory"]),
        "l2_bytes": integer(attributes["l2_cache_size"]),
        "threads_per_sm": integer(attributes["max_threads_per_multiprocessor"], INT32_MAX),
        "core_clock_hz": clock * 1e3 if clock else None,
        "memory_clock_hz": memory_clock * 1e3 if memory_clock else None,
        "memory_bandwidth_bytes_per_s": memory_clock * 1e3 * 2 * width / 8 if memory_clock and width else None,
        "pci": None if domain is None or bus is None or slot is None else f"{domain:04x}:{bus:02x}:{slot:02x}.0",
    }


def _capability(attributes: dict[str, float | None]) -> str | None:
    major, minor = integer(attributes["compute_capability_major"]), integer(attributes["compute_capability_minor"])
    return None if major is None or minor is None else f"{major}.{minor}"


def launch_batches(report: NcuReport) -> Iterator[Batch]:
    """Yield the batches of what belongs to launches: texts, rows without a raw name, rules."""
    texts, rules = report.texts, report.rules
    if texts.num_rows:
        yield _batch("metric_texts", {"kernel_row": texts["launch"], "metric": texts["metric"], "value": texts["value"]})
    if any(isinstance(name, Label) for name in report.entries.names):
        yield _unmapped(report)
    if rules.num_rows:
        columns = {name: _none_if_empty(rules[name]) for name in ("section", "rule", "type", "message", "speedup_type")}
        speedup = pa.array([percentage(text) for text in rules["speedup"].to_pylist()], pa.float64())
        yield _batch("advice", {"kernel_row": rules["launch"], **columns, "estimated_speedup_pct": speedup})


def _none_if_empty(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def _unmapped(report: NcuReport) -> Batch:
    entries = report.entries
    labels = [name for name in entries.names if isinstance(name, Label)]
    first = len(entries.names) - len(labels)
    rows = np.flatnonzero(entries.metric >= first)
    code = pa.array(entries.metric[rows] - first)
    fields = {"section": "section", "body_item": "body", "label": "label", "unit": "unit"}
    columns = {
        column: pa.array([getattr(label, name) or None for label in labels], pa.string()).take(code)
        for column, name in fields.items()
    }
    launch = pa.array(np.searchsorted(entries.starts, rows, side="right") - 1)
    value = pa.array(entries.value[rows])
    return _batch("unmapped_metrics", {"kernel_row": launch, **columns, "value": value})


def _batch(table: str, columns: dict[str, Any]) -> Batch:
    batch = pa.table(columns).combine_chunks().to_batches()[0]
    return table, conform(batch, TABLES[table].reader_schema, table)


def summary_batch(summaries: Sequence[Summary], process_of: Sequence[int]) -> Batch:
    """Return the `metric_summaries` batch."""
    rows = []
    for summary, process in zip(summaries, process_of, strict=True):
        launches = summary.launches
        row: dict[str, object] = {"process_index": process, "device": whole(launches.device), "name": launches.name}
        row |= zip(("grid_x", "grid_y", "grid_z"), dimensions(launches.grid), strict=True)
        row |= zip(("block_x", "block_y", "block_z"), dimensions(launches.block), strict=True)
        row |= zip(("minimum", "maximum", "average"), summary.values, strict=True)
        rows.append(row | {"invocations": summary.invocations, "metric": summary.metric})
    return "metric_summaries", batch_of("metric_summaries", rows)
