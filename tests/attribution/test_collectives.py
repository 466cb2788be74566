"""The collective of a communication kernel: what the ranges around its launch name, under PyTorch and under NCCL's own NVTX."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.store.store import Store
from tests.places import ROOT
from tests.readers.nsys_report import base, call, global_pid, kernel, span, strings, write

DATA = ROOT.parent / "shared" / "data"
TWO_GPUS = DATA / "nsys" / "GindaChen__nsys-ai__mfu_2gpu_before.sqlite"
ONE_OF_16 = DATA / "kineto" / "facebookresearch__HolisticTraceAnalysis__neg_queue_cudagraph_rank0.json.gz"
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
THREAD = global_pid(7) + 70


def event(category: str, name: str, start: float, duration: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 77, "tid": 1, "ts": start, "dur": duration, "args": args}


def launched(number: int, at: float, name: str = SEND_RECV, **args: Any) -> list[dict[str, Any]]:
    """A call at `at` and the kernel that it launches, 1000 us later."""
    work = event("kernel", name, at + 1000, 0.5, device=0, stream=7, correlation=number, **args) | {"pid": 0, "tid": 7}
    return [event("cuda_runtime", "cudaLaunchKernelExC", at, 1, correlation=number), work]


COUNTED = "SELECT collective, count(*) AS n FROM kernels WHERE family = 'collective' GROUP BY ALL ORDER BY ALL"


def collectives(store: Store) -> list[tuple[str, str | None]]:
    rows = store.sql("SELECT family, collective FROM kernels ORDER BY correlation_id, start_ns").to_pylist()
    return [(row["family"], row["collective"]) for row in rows]


def test_the_innermost_range_that_names_one_decides(tmp_path: Path) -> None:
    events = [
        event("cpu_op", "c10d::alltoall_base_", 0, 100), event("cpu_op", "record_param_comms", 1, 90),
        event("user_annotation", "nccl:all_to_all", 2, 20), *launched(1, 3),
        *launched(2, 30),
        event("user_annotation", "nccl:coalesced", 40, 20), event("user_annotation", "nccl:_all_gather_base", 41, 4),
        *launched(3, 42),
        *launched(4, 50),
        event("cpu_op", "record_param_comms", 200, 10), *launched(5, 201),
        *launched(6, 300),
        event("user_annotation", "nccl:all_reduce", 400, 50), *launched(7, 401, **{"Collective name": "_allgather_base"}),
        *launched(8, 410, name="void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)"),
    ]
    trace = {"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": 1_750_000_000 * 10**9, "traceEvents": events}
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    assert collectives(nl.ingest(tmp_path / "trace.json", store=tmp_path / "store")) == [
        ("collective", "alltoall"), ("collective", "alltoall"), ("collective", "allgather"), ("collective", "alltoall"),
        ("collective", None), ("collective", None), ("collective", "_allgather_base"), ("elementwise", None)]


def test_functions_of_nccl_in_nsys(tmp_path: Path) -> None:
    """A group of sends and receives is launched by ncclGroupEnd, which names nothing; a range of PyTorch around it does."""
    ranges = [
        span(100, 200, text="ncclAllReduce", domainId=1, globalTid=THREAD),
        span(300, 310, text="ncclSend", domainId=1, globalTid=THREAD),
        span(320, 390, text="ncclGroupEnd", domainId=1, globalTid=THREAD),
        span(400, 600, text="c10d::alltoall_base_, op_id = 7", globalTid=THREAD),
        span(420, 430, text="ncclSend", domainId=1, globalTid=THREAD),
        span(450, 550, text="ncclGroupEnd", domainId=1, globalTid=THREAD),
        span(50, None, eventType=75, text="NCCL", domainId=1, globalTid=THREAD),
    ]
    calls = [call(at, at + 5, correlationId=number, globalTid=THREAD) for number, at in enumerate((150, 350, 500, 700), 1)]
    kernels = [kernel(1000 * number, 1000 * number + 90, correlationId=number, demangledName=1, shortName=1)
               for number in range(1, 5)]
    path = write(tmp_path / "report.sqlite", base(
        StringIds=strings(SEND_RECV, "ncclDevKernel_SendRecv", "cudaLaunchKernel_v7000"), CUPTI_ACTIVITY_KIND_KERNEL=kernels,
        CUPTI_ACTIVITY_KIND_RUNTIME=calls, NVTX_EVENTS=ranges))
    assert collectives(nl.ingest(path, store=tmp_path / "store")) == [
        ("collective", "allreduce"), ("collective", None), ("collective", "alltoall"), ("collective", None)]


@pytest.mark.skipif(not TWO_GPUS.exists(), reason="the shared captures are not here")
def test_all_to_alls_of_pytorch_in_a_real_nsys_report(tmp_path: Path) -> None:
    """66 ncclDevKernel_SendRecv; the calls of two of them lie before the slice."""
    store = nl.ingest(TWO_GPUS, store=tmp_path / "store")
    rows = store.sql(COUNTED).to_pylist()
    assert {row["collective"]: row["n"] for row in rows} == {"alltoall": 64, None: 2}


@pytest.mark.skipif(not ONE_OF_16.exists(), reason="the shared captures are not here")
def test_send_and_receive_kernels_of_every_collective_in_a_real_trace(tmp_path: Path) -> None:
    """80 ncclKernel_SendRecv, which one NCCL of 2023 ran for all operations."""
    store = nl.ingest(ONE_OF_16, store=tmp_path / "store")
    rows = store.sql(COUNTED).to_pylist()
    assert {row["collective"]: row["n"] for row in rows} == {
        "allgather": 10, "allreduce": 10, "alltoall": 45, "reducescatter": 10, None: 5}
