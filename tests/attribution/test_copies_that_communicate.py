"""Copies that a collective runs as (copy engines, zero-CTA, symmetric memory): communication by what lies around them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.store.store import Store
from tests.attribution.test_collectives import THREAD, event
from tests.readers.nsys_report import base, call, global_pid, kernel, span, write


def copied(number: int, at: float, name: str = "Memcpy PtoP (Device -> Device)") -> list[dict[str, Any]]:
    """A call at `at` and the copy of 40 us that it starts, 100 us later."""
    work = event("gpu_memcpy", name, at + 100, 40, device=0, stream=20, correlation=number, bytes=64) | {"pid": 0, "tid": 20}
    return [event("cuda_runtime", "cudaMemcpyBatchAsync", at, 1, correlation=number), work]


def ingested(folder: Path, events: list[dict[str, Any]], rank: int = 0) -> Store:
    trace = {"schemaVersion": 1, "deviceProperties": [], "distributedInfo": {"rank": rank, "world_size": 2},
             "baseTimeNanoseconds": 1_750_000_000 * 10**9, "traceEvents": events}
    (folder / "trace.json").write_text(json.dumps(trace), encoding="utf-8")
    return nl.ingest(folder / "trace.json", store=folder / "store", jobs=1)


AROUND = {
    "nccl:all_to_all": ("user_annotation", "alltoall"),
    "nccl:coalesced": ("user_annotation", "unnamed"),
    "record_param_comms": ("cpu_op", "unnamed"),
    "c10d::reduce_scatter_": ("cpu_op", "reducescatter"),
    "symm_mem::fused_all_gather_matmul": ("cpu_op", "allgather"),
    "symm_mem::_low_contention_reduce_scatter": ("cpu_op", "reducescatter"),
    "aten::copy_": ("cpu_op", None),
    "my all_gather": ("user_annotation", None),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A copy under each of these, apart; a kernel of 10 us over the middle of the first; a set under the second."""
    events = []
    for number, (name, (category, _)) in enumerate(AROUND.items()):
        events += [event(category, name, 1000 * number, 90), *copied(1 + number, 1000 * number + 5)]
    work = event("kernel", "gemm", 120, 10, device=0, stream=7, correlation=99) | {"pid": 0, "tid": 7}
    set_ = event("gpu_memset", "Memset (Device)", 1500, 5, device=0, stream=7, correlation=98) | {"pid": 0, "tid": 7}
    events += [event("cuda_runtime", "cudaLaunchKernel", 95, 1, correlation=99), work,
               event("cuda_runtime", "cudaMemsetAsync", 1050, 1, correlation=98), set_]
    return ingested(tmp_path_factory.mktemp("copies"), events)


def test_what_the_ranges_say(store: Store) -> None:
    rows = store.sql("SELECT collective FROM memory_ops WHERE kind = 'memcpy' ORDER BY start_ns").column(0).to_pylist()
    assert rows == [collective for _, collective in AROUND.values()]
    assert store.sql("SELECT collective FROM memory_ops WHERE kind = 'memset'").column(0).to_pylist() == [None]


def test_all_views_count_them_as_communication(store: Store) -> None:
    """Six copies of 40 us, 10 us of them beside a kernel; two copies and a set are none."""
    assert figures(store, "comm_compute_overlap") == [(10_000, 240_000, 10_000, 230_000)]
    (busy,) = store.view("busy_time").to_pylist()
    assert (busy["communication_ns"], busy["memory_ns"]) == (240_000, 85_000)
    by_type = {row["kernel_type"]: row["type_ns"] for row in store.view("kernel_breakdown").to_pylist()}
    assert by_type == {"communication": 240_000, "compute": 10_000, "memory": 85_000}
    (exposed,) = store.view("exposed_communication").to_pylist()
    assert (exposed["instances"], exposed["total_ns"], exposed["overlapped_ns"]) == (6, 240_000, 10_000)
    tree = {row["node"]: row["total_ns"] for row in store.view("time_tree").to_pylist() if row["depth"] == 1}
    assert (tree["communication"], tree["copies"]) == (230_000, 85_000)


def figures(store: Store, view: str, **options: Any) -> list[tuple[int, ...]]:
    return [(row["compute_ns"], row["communication_ns"], row["overlap_ns"], row["exposed_communication_ns"])
            for row in store.view(view, **options).to_pylist()]


def test_a_pattern_of_kernels_finds_no_copies(store: Store) -> None:
    assert figures(store, "comm_compute_overlap", communication_pattern="^nccl") == [(10_000, 0, 0, 0)]


def test_ranges_of_nccl_in_nsys(tmp_path: Path) -> None:
    """A group of calls starts its copies at its end, which names no operation; setting up a communicator is none."""
    ranges = [span(100, 200, text="ncclAllGather", domainId=1, globalTid=THREAD),
              span(300, 400, text="ncclGroupEnd", domainId=1, globalTid=THREAD),
              span(500, 600, text="ncclCommInitRank", domainId=1, globalTid=THREAD),
              span(50, None, eventType=75, text="NCCL", domainId=1, globalTid=THREAD)]
    calls = [call(at, at + 5, correlationId=number, globalTid=THREAD) for number, at in enumerate((150, 350, 550, 700), 1)]
    copies = [{"start": 1000 * number, "end": 1000 * number + 90, "deviceId": 0, "contextId": 1, "streamId": 7,
               "correlationId": number, "globalPid": global_pid(7), "bytes": 64, "copyKind": 8, "srcKind": 2, "dstKind": 2}
              for number in range(1, 5)]
    path = write(tmp_path / "report.sqlite", base(
        NVTX_EVENTS=ranges, CUPTI_ACTIVITY_KIND_RUNTIME=calls, CUPTI_ACTIVITY_KIND_MEMCPY=copies,
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(9000, 9010, correlationId=9)]))
    with nl.ingest(path, store=tmp_path / "store", jobs=1) as store:
        found = store.sql("SELECT collective FROM memory_ops ORDER BY start_ns").column(0).to_pylist()
    assert found == ["allgather", "unnamed", None, None]
