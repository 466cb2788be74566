"""Which writer made a trace: Kineto's generation and the vendor of the GPU, by content (schemaVersion is always 1)."""

from __future__ import annotations

from nsightlens.readers.kineto.categories import CAPITALISED
from nsightlens.readers.kineto.counts import Tally
from nsightlens.readers.kineto.envelope import Clock, TraceHeader

_G2_KEY = b'"Profiler Event Index"'


def generation(header: TraceHeader, clock: Clock, marks: set[str], begin: bytes) -> str | None:
    """Return G1 to G6, None where the times are relative to nothing. begin: the first events as bytes."""
    if clock.epoch_ns(None) is None:
        if header.base_ns is None:
            return None
        newest = "graph_node_id" in marks or _first_phase(begin) == b"M"
        return "G6" if newest else "G5"
    if clock.exact:
        return "G4"
    if marks & CAPITALISED:
        return "G1"
    return "G2" if "async_cpu_to_gpu" in marks or _G2_KEY in begin else "G3"


def _first_phase(begin: bytes) -> bytes:
    return begin.partition(b'"ph"')[2].lstrip(b' \t\r\n:"')[:1]


def vendor(header: TraceHeader, tally: Tally) -> str | None:
    """Return cuda, rocm, xpu, mtia or cpu; None where GPU work is there and nothing shows whose."""
    properties = list(header.devices.values())
    names = " ".join(str(p.get("name", "")) for p in properties).lower()
    if header.roctracer_version or header.rocprofiler_version or header.hip_runtime_version or "hip" in tally.marks:
        return "rocm"
    if header.cupti_version or header.cuda_runtime_version or "registers" in tally.marks:
        return "cuda"
    if any(mark.startswith("mtia") for mark in tally.marks):
        return "mtia"
    if any(mark.startswith("xpu") for mark in tally.marks):
        return "xpu"
    if "amd" in names or "radeon" in names:
        return "rocm"
    if any("computeMajor" in p for p in properties):
        return "cuda"
    return None if tally.gpu_rows or properties else "cpu"
