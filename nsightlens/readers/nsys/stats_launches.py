"""The rows of `nsys stats --report cuda_gpu_trace`: every launch, copy and set.

One process stands for all: the table does not say whose each row is. There are no API calls, so nothing is linked to a launch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from nsightlens.readers.batches import Batch, batch_of
from nsightlens.readers.nsys.columns import MAX_DURATION_NS, MAX_TIME_NS
from nsightlens.readers.nsys.stats_cells import LAUNCHES
from nsightlens.readers.nsys.stats_table import StatsTable

REPORT = LAUNCHES
LACKS = ("it has the launches, copies and sets of a report and nothing else: no API calls (launch delays, causes of idle time), "
         "no ranges (operators, steps), no processes (all are taken as one)")
_BATCH = 1 << 15
_INT32, _INT64 = 1 << 31, 1 << 63
_INTEGERS = {
    "correlation_id": ("CorrId", _INT64), "context": ("Ctx", _INT64), "stream": ("Strm", _INT64), "grid_x": ("GrdX", _INT32),
    "grid_y": ("GrdY", _INT32), "grid_z": ("GrdZ", _INT32), "block_x": ("BlkX", _INT32), "block_y": ("BlkY", _INT32),
    "block_z": ("BlkZ", _INT32), "registers_per_thread": ("Reg/Trd", _INT32),
}
_OF_BOTH = ("correlation_id", "context", "stream")
_DEVICE = re.compile(r"(.*?)\s*\((\d{1,6})\)")
_OPERATION = re.compile(r"\[CUDA (?:Unified Memory )?(memcpy|memset)\s*(Unified )?\s*(.*?)\]")
_SIDES = {"host": "H", "device": "D", "array": "A", "peer": "P"}
_MEMORY = {"pageable": "pageable", "pinned": "pinned", "device": "device", "array": "array", "managed": "managed",
           "device static": "device_static", "managed static": "managed_static"}


def batches(table: StatsTable) -> Iterator[Batch]:
    """Yield the one process, and the devices, kernels and memory_ops."""
    yield "processes", batch_of("processes", [{"process_index": 0}])
    told: set[int] = set()
    launched = rows(table)
    while some := list(islice(launched, _BATCH)):
        for name in ("kernels", "memory_ops"):
            found = [row for kind, row in some if kind == name]
            new = {row["device"]: row.pop("gpu", None) for row in found}
            fresh = {device: gpu for device, gpu in new.items() if device is not None and device not in told}
            told |= fresh.keys()
            if fresh:
                yield "devices", batch_of("devices", [{"process_index": 0, "device": device, "name": gpu}
                                                      for device, gpu in fresh.items()])
            if found:
                yield name, batch_of(name, found)


def rows(table: StatsTable) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (kernels or memory_ops, row) in order."""
    for text in table.rows():
        launched = _row(text, table)
        if launched is not None:
            table.tally["rows"] += 1
            yield launched


def _row(text: dict[str, str], table: StatsTable) -> tuple[str, dict[str, Any]] | None:
    start = table.time(text, "Start", -MAX_TIME_NS, MAX_TIME_NS)
    if start is None or not text["Name"]:
        table.tally["rows_damaged"] += 1
        return None
    device = _DEVICE.fullmatch(text.get("Device", ""))
    row: dict[str, Any] = {
        "process_index": 0, "start_ns": start, "name": text["Name"],
        "duration_ns": table.time(text, "Duration", 0, MAX_DURATION_NS),
        "device": int(device[2]) if device else None, "gpu": device[1] or None if device else None}
    operation = _OPERATION.fullmatch(text["Name"])
    if operation is None:
        row |= {ours: table.integer(text, *theirs) for ours, theirs in _INTEGERS.items()}
        static, dynamic = (table.size(text, name, exact=True) for name in ("StcSMem", "DymSMem"))
        shared = None if static is None or dynamic is None else static + dynamic
        return "kernels", row | {"static_shared_bytes": static, "dynamic_shared_bytes": dynamic, "shared_bytes": shared}
    row |= {ours: table.integer(text, *_INTEGERS[ours]) for ours in _OF_BOTH}
    return "memory_ops", row | _operation(operation, text) | {"bytes": table.size(text, "Bytes", exact=False)}


def _operation(found: re.Match[str], text: dict[str, str]) -> dict[str, Any]:
    """Return kind, direction and memory of a copy or set."""
    is_unified = bool(found[2]) or "Unified" in text["Name"]
    way = re.fullmatch(r"(\w+?)-?to-?(\w+)", found[3], re.IGNORECASE)
    sides = [_SIDES.get(side.lower(), side.upper()) for side in way.groups()] if way else []
    kind = "memset" if found[1] == "memset" else "migration" if is_unified else "memcpy"
    source, destination = (_MEMORY.get(text.get(name, "").lower()) for name in ("SrcMemKd", "DstMemKd"))
    direction = "to".join(sides) if sides and {*sides} <= {*_SIDES.values()} and kind != "memset" else None
    if kind == "memset":  # the memory that was set stands in the one of the two columns that nsys fills
        source, destination = None, destination or source
    return {"kind": kind, "direction": direction, "source_memory": source, "destination_memory": destination}
