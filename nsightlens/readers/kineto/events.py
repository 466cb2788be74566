"""One event of a trace as msgspec reads it: only the fields that become columns; the rest is skipped while decoding.

The types are as wide as what writers have put there (an "inf" for a number, a string for a thread id), so that odd values
end in the columns' own cleaning and not in a failed chunk.
"""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from nsightlens.readers.kineto import fast_structs

# The reasons for which msgspec refuses a text: syntax, a wrong type, bad UTF-8, nesting deeper than the stack.
REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

# Not Raw(), of which each event would get its own.
_ABSENT: Any = None


class Args(Struct, gc=False):
    """The arguments that we store, under every spelling that Kineto has used."""

    device: Any = None
    context: Any = None
    stream: Any = None
    original_stream: Any = None
    correlation: Any = None
    external_id: Any = field(default=None, name="External id")
    external_id_g1: Any = field(default=None, name="external id")
    registers: Any = field(default=None, name="registers per thread")
    shared_bytes: Any = field(default=None, name="shared memory")
    blocks_per_sm: Any = field(default=None, name="blocks per SM")
    warps_per_sm: Any = field(default=None, name="warps per SM")
    grid: Raw = _ABSENT
    block: Raw = _ABSENT
    occupancy: Any = field(default=None, name="est. achieved occupancy %")
    graph_id: Any = field(default=None, name="graph id")
    graph_node_id: Any = field(default=None, name="graph node id")
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
    bytes: Any = None
    bandwidth: Any = field(default=None, name="memory bandwidth (GB/s)")
    kind: Any = None
    sync_kind: Any = field(default=None, name="cuda_sync_kind")
    awaited_event: Any = field(default=None, name="wait_on_cuda_event_id")
    awaited_record: Any = field(default=None, name="wait_on_cuda_event_record_corr_id")
    awaited_stream: Any = field(default=None, name="wait_on_stream")
    event_id: Any = None
    shapes: Raw = field(default=_ABSENT, name="Input Dims")
    shapes_old: Raw = field(default=_ABSENT, name="Input dims")
    types: Raw = field(default=_ABSENT, name="Input type")
    concrete_inputs: Raw = field(default=_ABSENT, name="Concrete Inputs")
    call_stack: Any = field(default=None, name="Call stack")
    sequence: Any = field(default=None, name="Sequence number")
    forward_thread: Any = field(default=None, name="Fwd thread id")
    allocated: Any = field(default=None, name="Bytes")
    address: Any = field(default=None, name="Addr")
    device_type: Any = field(default=None, name="Device Type")
    device_id: Any = field(default=None, name="Device Id")
    total_allocated: Any = field(default=None, name="Total Allocated")
    total_reserved: Any = field(default=None, name="Total Reserved")
    name: Any = None
    labels: Any = None


class Event(Struct, gc=False):
    """One event; times are doubles or ints (us)."""

    ph: str | None = None
    cat: str | None = None
    name: Any = None
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: Any = None
    dur: Any = None
    args: Args | None = None


class ExactEvent(Event, gc=False):
    """One event whose times keep the decimal text."""

    ts: Decimal | None = None
    dur: Decimal | None = None


class Counter(Struct, gc=False):
    """The arguments of an event as they stand there: those of a counter have names of the writer's choice."""

    ph: str | None = None
    args: Raw = _ABSENT


class Decoder:
    """Reads events from JSON, times as numbers (fast) or as decimal text (`exact`)."""

    def __init__(self, exact: bool = False) -> None:
        kind = ExactEvent if exact else Event
        self.exact = exact
        self._one = msgspec.json.Decoder(kind)
        self._list = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
        self._counters = msgspec.json.Decoder(list[Counter])

    def one(self, text: bytes) -> Event:
        """Return the event in `text`, an object and nothing else. Raises one of REFUSED."""
        event: Event = self._one.decode(text)
        return self._with_series([event], b"[" + text + b"]")[0] if event.ph == "C" else event

    def all(self, text: bytes | memoryview) -> list[Event]:
        """Return the events in `text`, a list and nothing else: as `typed` ones if they all are. Raises one of REFUSED."""
        if not self.exact:
            with suppress(*REFUSED):
                return fast_structs.DECODER.decode(text)
        events: list[Event] = self._list.decode(text)
        return self._with_series(events, text) if any(event.ph == "C" for event in events) else events

    def _with_series(self, events: list[Event], text: bytes | memoryview) -> list[Event]:
        """Return the events of a list, those that are counters with their series by name in the place of arguments."""
        for event, counter in zip(events, self._counters.decode(text), strict=True):
            if event.ph == "C":
                series: Any = msgspec.json.decode(counter.args) if counter.args else None
                event.args = series
        return events
