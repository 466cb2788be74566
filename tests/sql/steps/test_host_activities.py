"""Which ranges of the host are communication."""

from __future__ import annotations

import pytest

from tests.catalogs import catalog

WHO = {"run": "r", "tool": "nsys", "profile_id": "p", "process_id": "q", "window_index": 0, "thread": 1}


@pytest.mark.parametrize(("domain", "moves", "sets_up"), [
    ("MPI", ("MPI_Send", "MPI_Recv", "MPI_Wait", "MPI_Allreduce", "MPI_Barrier", "MPI_Get", "MPI_Win_fence", "PMPI_Bcast"),
     ("MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Comm_split", "MPI_Type_commit", "MPI_Win_create", "PMPI_Comm_dup")),
    ("NCCL", ("ncclAllReduce", "ncclGroupEnd", "ncclSend"), ("ncclCommInitRank", "ncclCommDestroy", "ncclCommSplit")),
    ("NVSHMEM", ("nvshmem_quiet", "nvshmemx_putmem_on_stream"), ("nvshmem_init", "nvshmemx_init_attr", "nvshmem_malloc")),
    ("solver", (), ("MPI_Send", "step")),
])
def test_calls_that_set_up_are_no_communication(domain: str, moves: tuple[str, ...], sets_up: tuple[str, ...]) -> None:
    ranges = [WHO | {"range_id": at, "kind": "nvtx_push_pop", "domain": domain, "name": name, "start_ns": at, "duration_ns": 1}
              for at, name in enumerate((*moves, *sets_up))]
    found = catalog(ranges=ranges).sql("SELECT start_ns, category FROM _host_activities ORDER BY ALL").fetchall()
    assert found == [(at, "communication_call") for at in range(len(moves))]
