"""What findings say of each rule: from which share on, what it comes from and what can be done, what speaks against it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advice:
    """The texts of a rule. limit_pct: share above which it fires; of_host: whether a profiler that slows the host adds to it."""

    limit_pct: float
    why: str
    against: str
    more: str
    what: str = ""
    of_host: bool = False


ADVICE = {
    "straggler": Advice(
        5, "Its host is slower, it has more work, or something else runs beside it: compare its idle time and its work with "
        "those of the other ranks before touching the communication.",
        "Ranks that are late together hide each other, and a profiler may slow one host more than others.",
        "nsightlens compare ranks", of_host=True),
    "slow_link": Advice(
        2, "Its ranks, or the links between them, are slower than those of like groups: see which nodes, switches and adapters "
        "they have in common (NCCL_DEBUG=INFO says what each channel uses), and run nccl-tests on them alone.",
        "A group that spans more nodes than its peers is slower by nature, and what runs beside it shares its links.",
        "nsightlens show communicator_summary"),
    "communication": Advice(
        10, "Collectives and transfers run while nothing else does: overlap them with computation, or send less and in larger "
        "pieces.", "It includes waiting for ranks that are late, where collectives could not be matched.",
        "nsightlens show comm_compute_overlap"),
    "copies": Advice(
        10, "Keep the data on the GPU, copy less, or copy beside kernels: from pinned memory, asynchronously, in another stream.",
        "Where the data must be new each time, only hiding the copies helps, at most until kernels take as long.",
        "nsightlens show memory_op_summary"),
    "data_loader": Advice(
        5, "Input is not ready in time: more DataLoader workers (num_workers), pinned memory, prefetching.",
        "More workers help until the processors or the storage are used up.", "nsightlens show step_breakdown", of_host=True),
    "api_call": Advice(
        10, "The GPU has nothing to do until the call returns: call it less often, or ahead.", "The profiler adds to each call.",
        "nsightlens show cuda_api_summary", of_host=True),
    "host": Advice(
        20, "Work reaches the GPU too slowly: see what the host does there, launch fewer and larger kernels (fusion, CUDA "
        "graphs), and let it run ahead of the GPU.",
        "The start and the end of a program count, where no steps are marked.", "nsightlens show idle_causes", of_host=True),
    "nothing": Advice(
        0, "Nothing is worth doing outside the kernels, as far as was recorded; what they could gain is in headroom.",
        "Small losses may add up below the limits.", "nsightlens show headroom"),
}
_PLUGINS = "(the TensorBoard plugin's rule)"
PLUGIN = {
    "memory": Advice(
        0, "", "It hurts only where it limits what fits, or where the allocator must free and allocate again.",
        "nsightlens show memory_peak", what=f"the GPU's memory is nearly full {_PLUGINS}"),
    "tensor_cores": Advice(
        10, "", "Lower precision may cost accuracy; where no counter says whether tensor cores ran, the kernel's name does.",
        "nsightlens show operator_summary", what=f"operators that tensor cores could run use none {_PLUGINS}"),
    "ddp_without_nccl": Advice(
        0, "", "Where ranks have no GPUs of their own, NCCL does not run.", "nsightlens show distributed_overview",
        what=f"DistributedDataParallel without NCCL {_PLUGINS}"),
    "data_parallel": Advice(
        0, "", "It needs a process per GPU.", "nsightlens show gpu_summary", what=f"DataParallel on several GPUs {_PLUGINS}"),
}
"""Rules of the plugin that none of ours knows better."""
_ONCE = "Where the call is made once, at the start, a longer run hides it."
_CALLS = (
    (("Malloc", "Free", "Alloc", "HostRegister", "MemCreate", "MemMap"), _ONCE,
     "Memory is allocated or freed while the GPU waits: allocate once and reuse it (a pool, cudaMallocAsync). The first call "
     "also creates the context."),
    (("ModuleLoad", "LibraryLoad", "ModuleGetFunction", "FuncGetAttributes", "CtxCreate", "InitDevice", "PrimaryCtx"), _ONCE,
     "The context is created or kernels are loaded: warm up before what is measured."),
    (("GraphInstantiate", "GraphExecUpdate", "StreamEndCapture"), _ONCE,
     "CUDA graphs are made while the GPU waits: make them once, ahead."),
    (("Memcpy", "Memset", "Prefetch"), "",
     "The host waits for copies before it goes on: copy asynchronously, from pinned memory."),
    (("Synchronize", "StreamQuery", "EventQuery"), "",
     "The host waits for the GPU, and the GPU then for the host: synchronise less often, and launch ahead."),
    (("LaunchKernel", "GraphLaunch"), "",
     "Launching takes longer than the kernels: launch fewer and larger ones (fusion, CUDA graphs)."),
)


def of_call(name: str) -> dict[str, str]:
    """Return what calls of a function come from and what can be done (why), what speaks against it, and what shows more."""
    general = ADVICE["api_call"]
    more = "nsightlens show idle_causes" if "Synchronize" in name else general.more
    return next(({"why": why, "against": against or general.against, "more": more} for parts, against, why in _CALLS
                 if any(part in name for part in parts)), {"why": general.why, "against": general.against, "more": more})
