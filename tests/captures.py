"""Tiny captures for tests, written as the tools write them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

BASE_NS = 1_750_000_000_000_000_000 // 7_889_238_000_000_000 * 7_889_238_000_000_000
GEMM = "ampere_sgemm_128x64_nn"


def kineto(
    path: Path, kernels: Sequence[tuple[str, float, float]] = ((GEMM, 1000.0, 10.0),), *, rank: int | None = None, pid: int = 77,
    host: str | None = None, world_size: int = 2,
) -> Path:
    """Write a G5 trace with one launch call per (kernel name, start us, duration us)."""
    events: list[dict[str, object]] = []
    for number, (name, start, duration) in enumerate(kernels, 1):
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": pid, "tid": pid, "ts": start - 5.0,
                       "dur": 2.0, "args": {"External id": number, "cbid": 211, "correlation": number}})
        events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": duration, "args": {
            "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": number, "registers per thread": 32,
            "shared memory": 0, "grid": [number, 1, 1], "block": [128, 1, 1]}})
    trace: dict[str, object] = {
        "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100", "totalGlobalMem": 1 << 30, "computeMajor": 8,
                                                  "computeMinor": 0, "numSms": 108, "maxThreadsPerMultiprocessor": 2048}],
        "cupti_version": 22, "displayTimeUnit": "ms", "baseTimeNanoseconds": BASE_NS}
    if rank is not None:
        trace["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world_size}
    if host is not None:
        trace["host_name"] = host
    trace["traceEvents"] = [*events, {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 2e6}]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(trace, indent=2))
    return path


def in_groups(path: Path, groups: Sequence[tuple[str, str, list[int]]], members: dict[str, str]) -> None:
    """Add process groups (name, description, ranks) to a trace that `kineto` wrote. members: kernel name -> its group."""
    trace = json.loads(path.read_text())
    trace["distributedInfo"]["pg_config"] = [
        {"pg_name": name, "pg_desc": text, "backend_config": "cuda:nccl", "pg_size": len(ranks), "ranks": ranks}
        for name, text, ranks in groups]
    calls: dict[str, int] = {}
    for event in trace["traceEvents"]:
        group = members.get(event["name"])
        if event.get("cat") == "kernel" and group:
            calls[group] = calls.get(group, 0) + 1
            operation = "send" if "SendRecv" in event["name"] else "allreduce"
            event["args"] |= {"Process Group Name": group, "Collective name": operation,
                              "Seq": calls[group], "Group size": 4, "In msg nelems": 64, "dtype": "Float"}
    path.write_text(json.dumps(trace))


_NCU = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device",
        "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value")


def ncu(path: Path, metrics: dict[str, tuple[str, str]], *, launches: int = 1, pid: int = 5, name: str = GEMM,
        cc: str = "8.0") -> Path:
    """Write a long metrics CSV with {metric: (unit, value)} for each launch."""
    rows = [_NCU]
    for number in range(launches):
        rows += [(str(number), str(pid), "python", "127.0.0.1", name, "1", "7", "(128, 1, 1)", "(4, 1, 1)", "0", cc,
                  "Command line profiler metrics", metric, unit, value) for metric, (unit, value) in metrics.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows))
    return path
