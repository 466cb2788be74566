"""Allocations and releases that nsys saw at CUDA itself: a batch of its table -> a batch of ours."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from nsightlens import schema
from nsightlens.readers.nsys.columns import batch_of, coded, integers, moments, raw
from nsightlens.readers.nsys.processes import Processes
from nsightlens.readers.nsys.source import Kind

COLUMNS: dict[str, Kind] = dict.fromkeys(
    ("start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType"), "integer")
_PLACE = dict.fromkeys((0, 1), "cpu") | dict.fromkeys((2, 3, 4, 5, 6), "cuda")
"""Whose memory each kind is: pageable and pinned memory is the host's."""
_SIGN = {0: 1, 1: -1}
"""Of an allocation and of a release; what is neither changes nothing that is known."""


def allocations(batch: pa.RecordBatch, processes: Processes, base_ns: int, tally: Counter[str]) -> pa.RecordBatch:
    """Return rows of `allocations` from CUDA_GPU_MEMORY_USAGE_EVENTS."""
    columns = integers(batch, schema.ALLOCATIONS, {"bytes": "bytes", "address": "address", "device": "deviceId"}, tally)
    place = coded(raw(batch, "memKind"), _PLACE)
    which = pc.index_in(raw(batch, "memoryOperationType"), value_set=pa.array(list(_SIGN), pa.int64()), skip_nulls=True)
    sign = pa.array(list(_SIGN.values()), pa.int64()).take(which)
    on_host = pc.fill_null(pc.equal(place.cast(pa.string()), "cpu"), False)
    return batch_of({
        "process_index": processes.index(raw(batch, "globalPid")),
        "at_ns": moments(raw(batch, "start"), base_ns, tally),
        **columns,
        "bytes": pc.multiply(columns["bytes"], sign),
        "device_type": place,
        "device": pc.if_else(on_host, None, columns["device"]),
    })
