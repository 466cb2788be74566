"""Allocations that nsys saw at CUDA: GPU memory over time, its peak, and what was released."""

from __future__ import annotations

from pathlib import Path

import nsightlens as nl
from tests.readers.nsys_report import Row, base, global_pid, kernel, write


def event(start: int, bytes_: int, address: int, *, releases: bool = False, kind: int = 2, device: int = 0) -> Row:
    return {"start": start, "globalPid": global_pid(7), "deviceId": device, "contextId": 1, "address": address, "pc": 0,
            "bytes": bytes_, "memKind": kind, "memoryOperationType": int(releases)}


def test_memory_over_time(tmp_path: Path) -> None:
    events = [event(100, 64, 1), event(200, 32, 2), event(300, 64, 1, releases=True), event(400, 16, 3, kind=4),
              event(150, 1000, 9, kind=1), event(250, 8, 1, device=1)]
    report = base(CUDA_GPU_MEMORY_USAGE_EVENTS=events, CUPTI_ACTIVITY_KIND_KERNEL=[kernel(120, 130)])
    with nl.ingest(write(tmp_path / "report.sqlite", report), store=tmp_path / "store", jobs=1) as store:
        curve = [(row["device_type"], row["device"], row["bytes"], row["allocated_bytes"])
                 for row in store.view("memory_curve").to_pylist()]
        assert curve == [("cpu", None, 1000, 1000), ("cuda", 0, 64, 64), ("cuda", 0, 32, 96), ("cuda", 0, -64, 32),
                         ("cuda", 0, 16, 48), ("cuda", 1, 8, 8)]
        peaks = {(row["device_type"], row["device"]): (row["peak_allocated_bytes"], row["net_bytes"])
                 for row in store.view("memory_peak").to_pylist()}
        assert peaks == {("cpu", None): (1000, 1000), ("cuda", 0): (96, 48), ("cuda", 1): (8, 8)}
        held = {row["bytes"]: row["held_ns"] for row in store.view("memory_events").to_pylist()}
        assert held[64] == 200 and held[32] is None
        assert store.sql("SELECT unread FROM profiles").column(0).to_pylist() == [None]
