"""One event as msgspec reads it when all its fields are what Kineto writes: a struct per category, with no field in vain.

It takes half the time of `events.Event`, and says nothing about any other event: whoever meets one reads all events around it
as that. The structs have the names of `events`, so that what is made of them does not care which they are.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, ClassVar, Literal, cast

import msgspec
from msgspec import Raw, Struct, defstruct, field

from nsightlens.readers.kineto import categories, times

_ABSENT: Any = None  # not Raw(), of which each event would get its own
UNKNOWN = times.UNKNOWN
"""What an integer that is absent reads as: lists of integers without None become arrays in a third of the time."""


class LinkArgs(Struct, gc=False):
    """What links an event to others."""

    correlation: int | None = UNKNOWN
    external_id: int | None = field(default=UNKNOWN, name="External id")
    external_id_g1: int | None = field(default=UNKNOWN, name="external id")


class GpuArgs(LinkArgs, gc=False):
    """The arguments of GPU work."""

    device: int | None = UNKNOWN
    context: int | None = UNKNOWN
    stream: int | None = UNKNOWN
    original_stream: int | None = UNKNOWN
    graph_node_id: int | None = field(default=UNKNOWN, name="graph node id")


class CopyArgs(GpuArgs, gc=False):
    """The arguments of copies and sets."""

    bytes: Any = None
    bandwidth: Any = field(default=None, name="memory bandwidth (GB/s)")
    kind: Any = None


class KernelArgs(GpuArgs, gc=False):
    """The arguments of kernels."""

    registers: int | None = field(default=UNKNOWN, name="registers per thread")
    shared_bytes: int | None = field(default=UNKNOWN, name="shared memory")
    blocks_per_sm: Any = field(default=None, name="blocks per SM")
    warps_per_sm: Any = field(default=None, name="warps per SM")
    grid: Raw = _ABSENT
    block: Raw = _ABSENT
    occupancy: Any = field(default=None, name="est. achieved occupancy %")
    graph_id: int | None = field(default=UNKNOWN, name="graph id")
    name: Any = None
    module_fqn: Any = None
    collective: Any = field(default=None, name="Collective name")
    elements: Any = field(default=None, name="In msg nelems")
    element_type: Any = field(default=None, name="dtype")
    group_size: Any = field(default=None, name="Group size")
    group_name: Any = field(default=None, name="Process Group Name")
    group_id: Any = field(default=None, name="Process Group ID")
    group_seq: Any = field(default=None, name="Seq")
    group_description: Any = field(default=None, name="Process Group Description")
    group_ranks: Any = field(default=None, name="Process Group Ranks")
    source_rank: Any = field(default=None, name="Src Rank")
    destination_rank: Any = field(default=None, name="Dst Rank")


class RangeArgs(Struct, gc=False):
    """The arguments of ranges."""

    external_id: int | None = field(default=UNKNOWN, name="External id")
    sequence: int | None = field(default=UNKNOWN, name="Sequence number")
    forward_thread: int | None = field(default=UNKNOWN, name="Fwd thread id")
    shapes: Raw = field(default=_ABSENT, name="Input Dims")
    shapes_old: Raw = field(default=_ABSENT, name="Input dims")
    types: Raw = field(default=_ABSENT, name="Input type")
    concrete_inputs: Raw = field(default=_ABSENT, name="Concrete Inputs")
    call_stack: Any = field(default=None, name="Call stack")
    device: int | None = UNKNOWN
    stream: int | None = UNKNOWN


class SyncArgs(Struct, gc=False):
    """The arguments of waits for the GPU. awaited_record: correlation id of the call that recorded the event."""

    correlation: int | None = UNKNOWN
    device: int | None = UNKNOWN
    context: int | None = UNKNOWN
    stream: int | None = UNKNOWN
    sync_kind: Any = field(default=None, name="cuda_sync_kind")
    awaited_event: int | None = field(default=UNKNOWN, name="wait_on_cuda_event_id")
    awaited_record: int | None = field(default=UNKNOWN, name="wait_on_cuda_event_record_corr_id")
    awaited_stream: int | None = field(default=UNKNOWN, name="wait_on_stream")


class EventArgs(Struct, gc=False):
    """The arguments of records of CUDA events."""

    correlation: int | None = UNKNOWN
    device: int | None = UNKNOWN
    context: int | None = UNKNOWN
    stream: int | None = UNKNOWN
    event_id: int | None = UNKNOWN


class AllocationArgs(Struct, gc=False):
    """The arguments of allocations."""

    allocated: int | None = field(default=UNKNOWN, name="Bytes")
    address: Any = field(default=None, name="Addr")
    device_type: int | None = field(default=UNKNOWN, name="Device Type")
    device_id: int | None = field(default=UNKNOWN, name="Device Id")
    total_allocated: int | None = field(default=UNKNOWN, name="Total Allocated")
    total_reserved: int | None = field(default=UNKNOWN, name="Total Reserved")


class Known(Struct, gc=False):
    """An event of a category that we know. table: which takes it, None where none does."""

    cat: ClassVar[str] = ""
    table: ClassVar[str | None] = None
    flow: ClassVar[bool] = False


class Span(Known, gc=False):
    """A complete event; times are doubles or ints (us)."""

    ph: Literal["X"]
    name: str
    pid: int
    tid: int
    ts: int | float
    dur: int | float


class Allocation(Known, gc=False):
    """A [memory] event."""

    ph: Literal["i"]
    name: Literal["[memory]"]
    pid: int
    tid: int
    ts: int | float
    args: AllocationArgs


class Flow(Known, gc=False):
    """An arrow from one event to another."""

    flow: ClassVar[bool] = True
    ph: Literal["s", "t", "f"]
    name: str


class Passed(Known, gc=False):
    """Any other event that no table takes."""

    args: ClassVar[None] = None
    ph: str
    name: str


class NoCounter(Passed, gc=False):
    """An event of a category that has counters too, which are read as `events.Event`."""

    ph: Literal["X", "i", "M"]


_ARGS = {"kernels": KernelArgs, "memory_ops": CopyArgs, "api_calls": LinkArgs, "ranges": RangeArgs, "synchronizations": SyncArgs,
         "cuda_events": EventArgs, "overheads": LinkArgs}


def _kind(category: str) -> type[Known]:
    table = categories.TABLE_OF.get(category)
    base: type[Known] = Span if table else Flow if category in categories.FLOWS else Passed
    if category in categories.COUNTERS:
        base = NoCounter
    if category == "cpu_instant_event":
        base, table = Allocation, "allocations"
    args = [("args", _ARGS[table] | None, None)] if table in _ARGS else []
    kind: Any = defstruct("Event", args, bases=(base,), tag_field="cat", tag=category, gc=False,
                          namespace={"cat": category, "table": table})
    return cast("type[Known]", kind)


NO_ARGS: dict[str, Any] = {table: kind() for table, kind in
                           (_ARGS | {"frame_calls": RangeArgs, "allocations": AllocationArgs}).items()}
"""What an event of each table says that has no arguments."""
KINDS = tuple(_kind(category) for category in sorted(categories.CATEGORIES))
CATEGORIES: dict[Any, str] = {kind: kind.cat for kind in KINDS}
DECODER: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(list[reduce(or_, KINDS)])  # type: ignore[misc]
"""Raises one of `events.REFUSED` for a list in which any event is not one of KINDS."""
