"""The texts of each rule of findings: its limit, the likely cause and what to do, and what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nsightlens.terminal.command import Command
from nsightlens.views.figures import counted, duration


@dataclass(frozen=True, slots=True)
class Advice:
    """The texts of a rule.

    limit_pct: share above which it fires; of_host: whether a profiler that slows the host adds to it; confidence: high where the
    time itself was seen, medium or low where it is what a change may bring.
    """

    limit_pct: float
    why: str
    against: str
    command: Command
    what: str = ""
    of_host: bool = False
    confidence: str = "high"


ADVICE = {
    "straggler": Advice(
        5, "Its host is slower, it has more work, or something else runs beside it: compare its idle time and work with those "
        "of the other ranks before you touch the communication.",
        "Ranks that are late together hide each other, and a profiler may slow one host more than others.",
        Command("compare ranks"), of_host=True),
    "slow_link": Advice(
        2, "Its ranks, or the links between them, are slower than those of comparable groups. Check which nodes, switches and "
        "adapters they share (NCCL_DEBUG=INFO lists what each channel uses), and run nccl-tests on them alone.",
        "A group that spans more nodes than its peers is naturally slower, and other traffic may share its links.",
        Command("show", ("communicator_summary",))),
    "pipeline": Advice(
        10, "Even if balanced, p stages with m micro-batches idle for (p - 1) / (m + p - 1) of a step. Use more micro-batches "
        "or an interleaved or zero-bubble schedule, and move layers away from the stage that waits least.",
        "The time includes the transfers themselves, and waiting for stages with late data-parallel or tensor-parallel peers.",
        Command("show", ("pipeline_bubbles",))),
    "communication": Advice(
        10, "Collectives and transfers run while nothing else does: overlap them with computation, or send less, in fewer, "
        "larger messages.", "The time includes waits for late ranks where collectives could not be matched.",
        Command("show", ("comm_compute_overlap",))),
    "copies": Advice(
        10, "Keep the data on the GPU, copy less, or overlap copies with kernels: asynchronously, from pinned "
        "memory, on another stream.",
        "If every step needs new data, copies can only be hidden, and only while kernels run.",
        Command("show", ("memory_op_summary",))),
    "data_loader": Advice(
        5, "Input is not ready in time: try more DataLoader workers (num_workers), pinned memory or prefetching.",
        "More workers help only until CPU cores or storage are saturated.", Command("show", ("step_breakdown",)), of_host=True),
    "api_call": Advice(
        10, "The GPU has nothing to do until the call returns: call it less often, or earlier.",
        "The profiler slows each call.",
        Command("show", ("cuda_api_summary",)), of_host=True),
    "host": Advice(
        20, "Work reaches the GPU too slowly: find out what the host does meanwhile, launch fewer and larger kernels "
        "(fusion, CUDA or HIP graphs), and let the host run ahead of the GPU.",
        "If no steps are marked, the start and end of the program count, too.",
        Command("show", ("idle_causes",)), of_host=True),
    "tiny_kernels": Advice(
        10, "The host launches kernels more slowly than the GPU runs them: capture the repeating part as a CUDA or HIP "
        "graph, fuse it (torch.compile), or give each kernel more work.", "Without a profiler, launches may be fast enough.",
        Command("show", ("launch_statistics",)), of_host=True),
    "fusion": Advice(
        15, "Each kernel may read from memory what the one before it wrote: fuse them (torch.compile, a fused operator).",
        "A kernel need not read what the one before it wrote. The share counts all but the longest of each chain.",
        Command("show", ("kernel_view",)), confidence="low"),
    "tensor_cores": Advice(
        10, "Run them on tensor (matrix) cores: TF32 (torch.set_float32_matmul_precision('high')), mixed precision (AMP), "
        "sizes that are multiples of 8.", "Lower precision may cost accuracy, memory-bound kernels gain less, and the use of "
        "tensor cores is inferred from the kernel's name.", Command("show", ("kernel_view",)), confidence="medium"),
    "headroom": Advice(
        5, "The kernel is far below what the GPU can do: find out what limits it (the commands plan-ncu and roofline), and try "
        "another algorithm, layout or library, or more work per launch.",
        "Caches, launch latency and small grids keep kernels from their roof; the gain is an upper bound.",
        Command("show", ("headroom",)), confidence="medium"),
    "warm_up": Advice(
        5, "Compilation, autotuning, allocation and cold caches slow the first steps: let the profiler wait "
        "(schedule(wait, warmup)), or leave these steps out.", "In a longer run their share is smaller.",
        Command("show", ("step_breakdown",))),
    "clock": Advice(
        2, "Nearly all of its kernels are slower: check clocks, temperature and power caps (nvidia-smi -q -d CLOCK,PERFORMANCE), "
        "and what else runs on that GPU.", "Different input means different work, and memory has its own clock.",
        Command("show", ("device_sample_summary",)), confidence="medium"),
    "profiler": Advice(
        5, "Host and idle time include its overhead: quote step times from a run without a profiler, and record less (no stacks, "
        "shapes, sampling).", "Overhead costs no time in threads that nothing waits for.", Command("show", ("profiler_share",))),
    "capture": Advice(
        0, "Neither shares of time nor the absence of work is certain: capture again, or read shares as lower bounds.",
        "What was captured may still be representative.", Command("show", ("diagnostic_summary",))),
    "nothing": Advice(
        0, "This covers only what was recorded; headroom shows what kernels below their roof could gain.",
        "Losses below the limits may add up.", Command("show", ("headroom",))),
}
_PLUGINS = "(the TensorBoard plugin's rule)"
PLUGIN = {
    "memory": Advice(
        0, "", "It hurts only if it limits the batch or model size, or makes the allocator free and allocate again.",
        Command("show", ("memory_peak",)), what=f"the GPU's memory is nearly full {_PLUGINS}"),
    "ddp_without_nccl": Advice(
        0, "", "Where ranks have no GPUs of their own, NCCL does not run.", Command("show", ("distributed_overview",)),
        what=f"DistributedDataParallel without NCCL {_PLUGINS}"),
    "data_parallel": Advice(
        0, "", "It needs a process per GPU.", Command("show", ("gpu_summary",)), what=f"DataParallel on several GPUs {_PLUGINS}"),
}
"""Rules of the plugin that none of ours knows better."""
_ONCE = "If the call is made once, at the start, a longer run hides it."
_SHORT_NS = 100_000
"""Up to here a kernel is short, and idle time per kernel is of the size that a launch takes."""
_CALLS = (
    (("HostRegister", "HostUnregister", "HostAlloc", "AllocHost", "MallocHost", "HostMalloc", "FreeHost", "HostFree"), _ONCE,
     "Host memory is pinned (page-locked), or released, while the GPU waits: pin buffers once and reuse them. Libraries pin too, "
     "such as MPI in MPI_Init. The first call also creates the context."),
    (("Malloc", "Free", "Alloc", "MemCreate", "MemMap"), _ONCE,
     "Memory is allocated or freed while the GPU waits: allocate once and reuse it (a memory "
     "pool). The first call also creates the context."),
    (("ModuleLoad", "LibraryLoad", "ModuleGetFunction", "FuncGetAttributes", "CtxCreate", "InitDevice", "PrimaryCtx"), _ONCE,
     "The context is created or kernels are loaded: warm up before you measure."),
    (("GraphInstantiate", "GraphExecUpdate", "StreamEndCapture"), _ONCE,
     "Graphs are built while the GPU waits: build them once, beforehand."),
    (("Memcpy", "Memset", "Prefetch"), "",
     "The host waits for copies before it goes on: copy asynchronously, from pinned memory."),
    (("Synchronize", "StreamQuery", "EventQuery"), "",
     "The host waits for the GPU, and then the GPU for the host: synchronise less often, and launch ahead."),
    (("LaunchKernel", "GraphLaunch"), "",
     "Launching takes longer than the kernels: launch fewer and larger ones (fusion, CUDA or HIP graphs)."),
)


def of_call(name: str) -> dict[str, Any]:
    """Return what calls of a function come from and what can be done (why), what speaks against it, and what shows more."""
    general = ADVICE["api_call"]
    command = Command("show", ("idle_causes",)) if "Synchronize" in name else general.command
    return next(({"why": why, "against": against or general.against, "command": command} for parts, against, why in _CALLS
                 if any(part in name for part in parts)), {"why": general.why, "against": general.against, "command": command})


def of_launches(row: Mapping[str, Any] | None, idle_ns: int) -> tuple[str, dict[str, str]]:
    """Return how many kernels a late host launched and how long they were, and what it can do (why); nothing where none is known.

    row: kernels, and total_ns of them; idle_ns: how long the GPU idled in all.
    """
    if row is None:
        return "", {}
    mean, each = row["total_ns"] / row["kernels"], idle_ns / row["kernels"]
    said = f": {counted(row['kernels'], 'kernel')} of {duration(mean)} on average, and {duration(each)} of idle time for each"
    if max(each, mean) <= _SHORT_NS:
        return said, {"why": "The kernels are too short for the rate of launches. Launch fewer and larger kernels: CUDA or HIP "
                             "graphs, torch.compile, a bigger batch."}
    return said, {"why": "Launching alone does not take that long. Find out what the CPU does meanwhile (idle_causes, "
                         "idle_by_range, cpu_sample_summary), and let it run ahead of the GPU."}
