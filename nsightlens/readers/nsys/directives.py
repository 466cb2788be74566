"""Events of OpenACC and OpenMP: a batch of nsys's tables -> a batch of ours, ranges of the thread that met the directive."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from nsightlens.readers.nsys.columns import Names, batch_of, constant, raw, threads, times
from nsightlens.readers.nsys.processes import Processes
from nsightlens.readers.nsys.source import OPENACC, OPENMP, Kind

COLUMNS: dict[str, Kind] = {**dict.fromkeys(("start", "end", "globalTid"), "integer"), "nameId": "name"}
KINDS = dict.fromkeys(OPENACC, "openacc") | dict.fromkeys(OPENMP, "openmp")


def ranges(
    batch: pa.RecordBatch, kind: str, processes: Processes, base_ns: int, names: Names, tally: Counter[str],
) -> pa.RecordBatch:
    """Return rows of `ranges` of a kind from its table."""
    global_tid = raw(batch, "globalTid")
    return batch_of({
        "process_index": processes.index(global_tid),
        "thread": threads(global_tid),
        **times(batch, base_ns, tally),
        "kind": constant(kind, batch.num_rows),
        "name": names.encode(raw(batch, "nameId")),
    })
