"""Kineto's words -> ours: categories, directions, kinds of memory, element sizes, device types."""

from __future__ import annotations

import re

# Category -> the table that takes its complete events. The capitalised ones are of 2021, gpu_user_Annotation of one 2022 build.
TABLE_OF = {
    "kernel": "kernels", "Kernel": "kernels",
    "gpu_memcpy": "memory_ops", "Memcpy": "memory_ops", "gpu_memset": "memory_ops", "Memset": "memory_ops",
    "cuda_runtime": "api_calls", "Runtime": "api_calls", "cuda_driver": "api_calls",
    "xpu_runtime": "api_calls", "xpu_driver": "api_calls",
    "privateuse1_runtime": "api_calls", "privateuse1_driver": "api_calls",
    "cpu_op": "ranges", "Operator": "ranges", "user_annotation": "ranges", "python_function": "ranges",
    "gpu_user_annotation": "ranges", "gpu_user_Annotation": "ranges",
    "cuda_sync": "synchronizations", "cuda_event": "cuda_events", "overhead": "overheads",
}
KIND_OF = {
    "gpu_memcpy": "memcpy", "Memcpy": "memcpy", "gpu_memset": "memset", "Memset": "memset",
    "cpu_op": "operator", "Operator": "operator", "user_annotation": "annotation", "python_function": "module",
    "gpu_user_annotation": "gpu_annotation", "gpu_user_Annotation": "gpu_annotation",
    "cuda_runtime": "runtime", "Runtime": "runtime", "cuda_driver": "driver", "xpu_runtime": "runtime", "xpu_driver": "driver",
    "privateuse1_runtime": "runtime", "privateuse1_driver": "driver",
}
GPU_ANNOTATIONS = frozenset(("gpu_user_annotation", "gpu_user_Annotation"))
CAPITALISED = frozenset(("Kernel", "Memcpy", "Memset", "Runtime", "Operator"))
FLOWS = frozenset(("ac2g", "fwdbwd", "async", "async_gpu", "async_cpu_to_gpu", "forward_backward"))
# Every category that Kineto has written: one of them identifies its trace among other Chrome traces.
CATEGORIES = frozenset(TABLE_OF) | FLOWS | {
    "Trace", "cpu_instant_event", "external_correlation", "mtia_runtime", "mtia_ccp_events", "mtia_insight", "mtia_counters",
    "glow_runtime", "cuda_profiler_range", "hpu_op", "collective_comm", "xpu_scope_profiler", "xpu_sync", "hardware_counters",
}
COUNTERS = frozenset(("mtia_counters", "hardware_counters"))
"""Of counters whose pid is the device."""
# Categories that no table takes and that are never the work of an accelerator.
IDLE_CATEGORIES = frozenset((
    "Trace", "cpu_instant_event", "external_correlation", "xpu_sync", "mtia_runtime", "cuda_profiler_range",
))
FRAME = "python_function"
MODULE = "nn.Module: "
MEMORY = "[memory]"
END_MARKER = "Record Window End"
COUNTER = "C"
PHASES = {"M": "metadata", "i": "instants", "s": "flows", "f": "flows", COUNTER: "counters"}

# Bytes of an element by c10's name of the type, and by torch's, which annotations of CUDA graphs have.
# A type that is not here leaves the message size unknown.
ELEMENT_BYTES = {
    "Byte": 1, "Char": 1, "Short": 2, "Int": 4, "Long": 8, "Half": 2, "Float": 4, "Double": 8, "Bool": 1, "BFloat16": 2,
    "ComplexHalf": 4, "ComplexFloat": 8, "ComplexDouble": 16, "UInt16": 2, "UInt32": 4, "UInt64": 8,
    "QInt8": 1, "QUInt8": 1, "QInt32": 4,
    "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint16": 2, "uint32": 4, "uint64": 8, "bool": 1,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex32": 4, "complex64": 8, "complex128": 16,
    "float8_e5m2": 1, "float8_e4m3fn": 1, "float8_e5m2fnuz": 1, "float8_e4m3fnuz": 1, "float8_e8m0fnu": 1,
    "Float8_e5m2": 1, "Float8_e4m3fn": 1, "Float8_e5m2fnuz": 1, "Float8_e4m3fnuz": 1, "Float8_e8m0fnu": 1,
}
WAIT_OF = {"Event Sync": "event", "Stream Sync": "stream", "Context Sync": "context", "Stream Wait Event": "stream_wait_event"}
OVERHEAD_OF = {
    "Driver Compiler": ("cuda", "driver_compiler"), "Runtime Triggered Module Loading": ("cuda", "module_loading"),
    "Lazy Function Loading": ("cuda", "function_loading"), "Command Buffer Full": ("cuda", "command_buffer_full"),
    "Buffer Flush": ("profiler", "buffer_flush"), "Instrumentation": ("profiler", "instrumentation"),
    "Resource": ("profiler", "resource"), "Activity Buffer Request": ("profiler", "buffer_request"),
}
"""Name of an overhead -> its source and kind. Any other says neither."""
DEVICE_TYPES = {0: "cpu", 1: "cuda"}

LONGEST_STACK, MOST_FRAMES = 1 << 16, 1000
"""Characters and frames of a stack that Python, which stops at 1,000 calls within each other, may have written."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_FRAME_END = re.compile(r"[;\n]")
_GPU = re.compile(r"GPU (\d{1,9})\b.*", re.DOTALL)
_UNIT = re.compile(r"(.*\S)\s*\(([^()]+)\)", re.DOTALL)
_STEP = re.compile(r"ProfilerStep\s*#\s*(\d{1,18})")
_VERSION = re.compile(r"_v\d+$")
_DIRECTION = re.compile(r"(?<![A-Za-z])(HtoD|DtoH|DtoD|HtoH|PtoP|HtoA|AtoH|AtoA|AtoD|DtoA)(?![A-Za-z])")
_INTEL_DIRECTION = re.compile(r"(?<![A-Za-z0-9])([MHD])2([MHD])(?![A-Za-z0-9])")
_LONG_DIRECTION = re.compile(r"(Host|Device|Peer|Array)To(Host|Device|Peer|Array)(?![a-z])")
_MEMORIES = re.compile(r"\(\s*([\w ]+?)\s*(?:->\s*([\w ]+?)\s*)?\)\s*$")
_MEMORY = {
    "pageable": "pageable", "pinned": "pinned", "device": "device", "array": "array", "managed": "managed",
    "device static": "device_static", "managed static": "managed_static",
}


def step_number(name: str) -> int | None:
    """Return N of "ProfilerStep#N", None for another name."""
    step = _STEP.fullmatch(name)
    return int(step[1]) if step else None


def frame_name(name: str | None) -> str | None:
    """Return the name of a frame without addresses, of which each object has one: <built-in method size of Tensor object>."""
    return None if name is None else _ADDRESS.sub("", name)


def call_stack(text: str) -> str | None:
    """Return the frames of a stack that an operator carries, joined by ';'; None for none, and for more than Python allows."""
    frames = [frame for frame in map(str.strip, _FRAME_END.split(_ADDRESS.sub("", text))) if frame]
    return ";".join(frames) if frames and len(text) <= LONGEST_STACK and len(frames) <= MOST_FRAMES else None


def gpu_number(label: object) -> int | None:
    """Return N of "GPU N Counters", None for another label."""
    gpu = _GPU.fullmatch(label) if isinstance(label, str) else None
    return int(gpu[1]) if gpu and int(gpu[1]) < 1 << 31 else None


def metric_and_unit(name: str, series: str) -> tuple[str, str | None]:
    """Return the name of a counter's series, and its unit: of "SM Active (%)" and "" SM Active and %."""
    whole = name if series in name else f"{name} {series}"
    found = _UNIT.fullmatch(whole)
    return (found[1], found[2]) if found else (whole, None)


def api_name(name: str) -> str:
    """Return the function's name without the version suffix of its ABI (cudaStreamGetCaptureInfo_v2)."""
    return _VERSION.sub("", name)


def direction(label: str) -> str | None:
    """Return HtoD and the like out of "Memcpy HtoD (Pageable -> Device)", "CopyHostToDevice", "HtoD" or Intel's "Memcpy M2D".

    Intel's M is memory of the system, H memory of the host that its runtime allocated; S, shared memory, has no side.
    """
    short = _DIRECTION.search(label)
    if short:
        return short[1]
    intel = _INTEL_DIRECTION.search(label)
    if intel:
        return "to".join(side.replace("M", "H") for side in intel.groups())
    long = _LONG_DIRECTION.search(label)
    found = f"{long[1][0]}to{long[2][0]}" if long else ""
    return found if _DIRECTION.fullmatch(found) else None


def source_memory(label: str) -> str | None:
    """Return the kind of memory that a copy reads, None for a set or where the label does not say."""
    found = _MEMORIES.search(label)
    return _MEMORY.get(found[1].lower()) if found and found[2] else None


def destination_memory(label: str) -> str | None:
    """Return the kind of memory that a copy or set writes, None where the label does not say."""
    found = _MEMORIES.search(label)
    return _MEMORY.get((found[2] or found[1]).lower()) if found else None
