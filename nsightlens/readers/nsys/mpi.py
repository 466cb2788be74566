"""MPI events: a batch of nsys's table -> a batch of ours."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from nsightlens import schema
from nsightlens.readers.nsys.columns import Names, batch_of, constant, integers, raw, threads, times
from nsightlens.readers.nsys.processes import Processes
from nsightlens.readers.nsys.source import MPI_COLLECTIVES, MPI_OTHER, MPI_P2P, MPI_START_WAIT, Kind

_INTEGERS = {
    "peer_rank": "remoteRank", "root_rank": "rootRank", "tag": "tag", "bytes": "size", "receive_bytes": "recvSize",
    "communicator": "commHandle", "communicator_uid": "commUid", "request": "requestHandle",
}
COLUMNS: dict[str, Kind] = {
    **dict.fromkeys(("start", "end", "globalTid", *_INTEGERS.values()), "integer"), "textId": "name",
}
KINDS = {MPI_P2P: "p2p", MPI_COLLECTIVES: "collective", MPI_START_WAIT: "start_wait", MPI_OTHER: "other"}


def calls(
    batch: pa.RecordBatch, kind: str, processes: Processes, base_ns: int, names: Names, tally: Counter[str],
) -> pa.RecordBatch:
    """Return rows of `mpi_calls` of a kind from its table: what the table does not have is NULL."""
    global_tid = raw(batch, "globalTid")
    return batch_of({
        "process_index": processes.index(global_tid),
        "thread": threads(global_tid),
        **times(batch, base_ns, tally),
        "name": names.encode(raw(batch, "textId")),
        "kind": constant(kind, batch.num_rows),
        **integers(batch, schema.MPI_CALLS, _INTEGERS, tally),
    })
