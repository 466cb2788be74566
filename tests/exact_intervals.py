"""The exact intervals of a PyTorch-profiler trace, computed from the file with json alone, in integer ns."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

COMMUNICATION = re.compile("nccl.*Kernel")
KERNELS = ("kernel", "Kernel")
MEMORY = ("gpu_memcpy", "gpu_memset", "Memcpy", "Memset")


def plain(path: Path) -> list[dict[str, Any]]:
    """Return the events as json reads them, decimals as text."""
    loaded = json.loads(decompressed(path), parse_float=str)
    assert isinstance(loaded["traceEvents"], list)
    return loaded["traceEvents"]


def decompressed(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def ns(us: Any) -> int:
    """Return microseconds (an int, or the text of a decimal number) in ns."""
    if isinstance(us, int):
        return us * 1000
    whole, _, fraction = us.partition(".")
    assert len(fraction) <= 3 and "e" not in us and not whole.startswith("-")
    return int(whole) * 1000 + int(fraction.ljust(3, "0"))


def finer(event: dict[str, Any]) -> int | None:
    """Return the duration in ns that the printed bandwidth of a copy or set tells, where the written one was cut to whole us."""
    bandwidth = event.get("args", {}).get("memory bandwidth (GB/s)")
    if not isinstance(event["dur"], int) or bandwidth is None:
        return None
    found: int = round(event["args"]["bytes"] / float(bandwidth))
    assert found // 1000 == event["dur"], "Kineto cuts the ns that it has divided the bytes by"
    return found


def union(intervals: Iterable[tuple[int, int]]) -> int:
    """Return the length of the union of (start, end) pairs."""
    total, reached = 0, -(1 << 62)
    for start, end in sorted(intervals):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def exact_intervals(path: Path) -> dict[str, int]:
    """Return the figures that oracle/exact_intervals_ns.json holds, counted again."""
    spans: dict[str, list[tuple[int, int]]] = {"compute": [], "communication": [], "memory": []}
    for event in plain(path):
        if event.get("ph") == "X" and event.get("cat") in (*KERNELS, *MEMORY):
            kernel = "communication" if COMMUNICATION.match(event["name"]) else "compute"
            start = ns(event["ts"])
            spans["memory" if event["cat"] in MEMORY else kernel].append((start, start + ns(event["dur"])))
    kernels = spans["compute"] + spans["communication"]
    everything = kernels + spans["memory"]
    span = max(end for _, end in everything) - min(start for start, _ in everything)
    return {
        "span_ns": span, "union_gpu_ns": union(everything), "idle_ns": span - union(everything),
        "union_compute_kernel_ns": union(spans["compute"]), "union_nccl_ns": union(spans["communication"]),
        "overlap_nccl_compute_ns": union(spans["compute"]) + union(spans["communication"]) - union(kernels),
        "union_memcpy_memset_ns": union(spans["memory"]),
    }
