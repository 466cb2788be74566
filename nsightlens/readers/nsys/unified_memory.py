"""Page faults of unified memory: a batch of nsys's table -> a batch of ours."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from nsightlens import schema
from nsightlens.readers.nsys.columns import Names, batch_of, constant, integers, labelled, raw, times
from nsightlens.readers.nsys.processes import Processes
from nsightlens.readers.nsys.source import Kind

CPU_COLUMNS: dict[str, Kind] = {
    **dict.fromkeys(("start", "globalPid", "address", "sourceLine"), "integer"),
    **dict.fromkeys(("CpuInstruction", "module", "sourceFile"), "name"),
}
GPU_COLUMNS: dict[str, Kind] = dict.fromkeys(
    ("start", "end", "globalPid", "deviceId", "address", "numberOfPageFaults", "faultAccessType"), "integer")
NAMED = {"function": "CpuInstruction", "module": "module", "source_file": "sourceFile"}
_ACCESS = {0: "unknown", 1: "read", 2: "write", 3: "atomic", 4: "prefetch"}


def cpu_page_faults(
    batch: pa.RecordBatch, processes: Processes, base_ns: int, names: dict[str, Names], tally: Counter[str],
) -> pa.RecordBatch:
    """Return rows of `page_faults` from CUDA_UM_CPU_PAGE_FAULT_EVENTS. names: one dictionary per column of NAMED."""
    return batch_of({
        "process_index": processes.index(raw(batch, "globalPid")),
        **times(batch, base_ns, tally),
        "kind": constant("cpu", batch.num_rows),
        "address": raw(batch, "address"),
        "faults": pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows),
        **{ours: names[ours].encode(raw(batch, theirs)) for ours, theirs in NAMED.items()},
        **integers(batch, schema.PAGE_FAULTS, {"source_line": "sourceLine"}, tally),
    })


def gpu_page_faults(batch: pa.RecordBatch, processes: Processes, base_ns: int, tally: Counter[str]) -> pa.RecordBatch:
    """Return rows of `page_faults` from CUDA_UM_GPU_PAGE_FAULT_EVENTS."""
    columns = {"device": "deviceId", "address": "address", "faults": "numberOfPageFaults"}
    return batch_of({
        "process_index": processes.index(raw(batch, "globalPid")),
        **times(batch, base_ns, tally),
        **integers(batch, schema.PAGE_FAULTS, columns, tally),
        "kind": constant("gpu", batch.num_rows),
        "access": labelled(raw(batch, "faultAccessType"), _ACCESS, "type"),
    })
