"""What findings say of each rule: from which share on, what it comes from and what can be done, what speaks against it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advice:
    """The texts of a rule.

    limit_pct: share above which it fires; of_host: whether a profiler that slows the host adds to it; confidence: high where the
    time itself was seen, medium or low where it is what a change may bring.
    """

    limit_pct: float
    why: str
    against: str
    more: str
    what: str = ""
    of_host: bool = False
    confidence: str = "high"


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
    "pipeline": Advice(
        10, "p stages with m micro-batches idle for (p - 1) / (m + p - 1) of a step even where they are equal: use more "
        "micro-batches, or an interleaved or zero-bubble schedule, and move layers away from the stage that waits least.",
        "It includes the transfers themselves, and waiting for a stage whose data-parallel or tensor-parallel peers are late.",
        "nsightlens show pipeline_bubbles"),
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
    "tiny_kernels": Advice(
        10, "The host launches more slowly than the GPU works: capture what repeats as a CUDA graph, fuse it "
        "(torch.compile), or give each kernel more work.", "Without a profiler, launching may be fast enough.",
        "nsightlens show frequent_kernel_sequences", of_host=True),
    "fusion": Advice(
        15, "Each reads from memory what the one before it wrote: fuse them (torch.compile, a fused operator).",
        "That one follows another does not say that it reads what that wrote. The share is all but the longest of each chain.",
        "nsightlens show kernel_view", confidence="low"),
    "tensor_cores": Advice(
        10, "Let them run on tensor cores: TF32 (torch.set_float32_matmul_precision('high')), mixed precision (AMP), sizes that "
        "are multiples of 8.", "Lower precision may cost accuracy, kernels that memory bounds gain less, and which cores run is "
        "read from the kernel's name.", "nsightlens show kernel_view", confidence="medium"),
    "headroom": Advice(
        5, "The kernel is far below what the GPU can do: see what holds it up (nsightlens plan-ncu, then roofline), another "
        "algorithm, layout or library, larger pieces of work.",
        "Caches, launch latency and small grids keep kernels from their roof; the gain is an upper bound.",
        "nsightlens show headroom", confidence="medium"),
    "warm_up": Advice(
        5, "Compilation, autotuning, allocation and caches fall into the first steps: let the profiler wait "
        "(schedule(wait, warmup)), or leave these steps out.", "A longer run makes their share smaller.",
        "nsightlens show step_breakdown"),
    "clock": Advice(
        2, "Nearly all of its kernels are slower: see clocks, temperature and power caps (nvidia-smi -q -d CLOCK,PERFORMANCE), "
        "and what else runs on that GPU.", "Other input makes other work, and memory has a clock of its own.",
        "nsightlens show device_sample_summary", confidence="medium"),
    "profiler": Advice(
        5, "Host and idle time include it: quote step times of a run without a profiler, and record less (no stacks, shapes, "
        "sampling).", "Threads that nothing waited for cost nothing.", "nsightlens show profiler_overhead"),
    "capture": Advice(
        0, "Shares of time, and that something is not there, are not certain: capture again, or read them as lower bounds.",
        "What is here may stand for the rest.", "nsightlens show diagnostic_summary"),
    "nothing": Advice(
        0, "That is as far as was recorded; what kernels could gain where they are below their roof is in headroom.",
        "Small losses may add up below the limits.", "nsightlens show headroom"),
}
_PLUGINS = "(the TensorBoard plugin's rule)"
PLUGIN = {
    "memory": Advice(
        0, "", "It hurts only where it limits what fits, or where the allocator must free and allocate again.",
        "nsightlens show memory_peak", what=f"the GPU's memory is nearly full {_PLUGINS}"),
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
