"""OpenACC and OpenMP in a report of nsys: ranges of threads, which lie around launches as NVTX does."""

from __future__ import annotations

from pathlib import Path

import nsightlens as nl
from tests.readers.nsys_report import Row, base, call, global_pid, kernel, span, strings, write

THREAD = global_pid(7) + 70


def directive(start: int, end: int, name: int) -> Row:
    return {"start": start, "end": end, "nameId": name, "globalTid": THREAD, "eventKind": 1}


def test_directives_are_ranges(tmp_path: Path) -> None:
    report = base(
        StringIds=strings("saxpy", "saxpy", "cudaLaunchKernel_v7000", "Compute Construct@saxpy.c:12", "Parallel", "Lock"),
        CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH=[directive(100, 300, 4)],
        CUPTI_ACTIVITY_KIND_OPENACC_DATA=[directive(400, 450, 4)],
        OPENMP_EVENT_KIND_PARALLEL=[directive(50, 500, 5)],
        OPENMP_EVENT_KIND_LOCK_INIT=[{"start": 60, "nameId": 6, "globalTid": THREAD}],
        NVTX_EVENTS=[span(40, 600, text="step", globalTid=THREAD)],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(150, 160, correlationId=1, globalTid=THREAD)],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1000, 1500, correlationId=1)])
    with nl.ingest(write(tmp_path / "report.sqlite", report), store=tmp_path / "store", jobs=1) as store:
        rows = store.sql("SELECT kind, name, duration_ns FROM ranges ORDER BY start_ns").to_pylist()
        assert [tuple(row.values()) for row in rows] == [
            ("nvtx_push_pop", "step", 560), ("openmp", "Parallel", 450), ("openacc", "Compute Construct@saxpy.c:12", 200),
            ("openacc", "Compute Construct@saxpy.c:12", 50)]
        assert store.sql("SELECT range_path FROM kernels").column(0).to_pylist() == [
            "step / Parallel / Compute Construct@saxpy.c:12"]
        assert [(row["total_ns"], row["time_pct"]) for row in store.view("openacc_sum").to_pylist()] == [(250, 100.0)]
        assert [row["name"] for row in store.view("openmp_sum").to_pylist()] == ["Parallel"]
        projected = {row["name"]: row["gpu_ns"] for row in store.view("nvtx_gpu_projection").to_pylist()}
        assert projected == dict.fromkeys(("step", "Parallel", "Compute Construct@saxpy.c:12"), 500)
        (unread,) = store.sql("SELECT unread FROM profiles").column(0).to_pylist()
        assert dict(unread) == {"OPENMP_EVENT_KIND_LOCK_INIT": 1}, "instants are not read, and said"
