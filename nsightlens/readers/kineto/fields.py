"""Events of one chunk -> what they say, a list per table and field.

The lists are taken from a slice of the events at a time, while these lie in the processor's cache: that, not the decoding, is
what reading a trace spends its time on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from nsightlens.readers.kineto import typed, values, words
from nsightlens.readers.kineto.events import Args, Event
from nsightlens.readers.kineto.sorting import sort
from nsightlens.readers.kineto.tally import Tally

Lists = dict[str, list[Any]]


class Fields:
    """The fields of the events that become rows, by table, in the order of the file.

    typed: all of them were read as `typed` events, so that their ids are integers, `typed.UNKNOWN` or None for certain.
    """

    def __init__(self, tally: Tally) -> None:
        self.tables: dict[str, Lists] = {}
        self.typed = True
        self.tally = tally

    def take(self, events: list[Event]) -> None:
        """Take in the events that follow; what becomes no row is counted."""
        if not events:
            return
        are_typed = isinstance(events[0], typed.Known)
        self.typed = self.typed and are_typed
        for table, rows in sort(events, self.tally).items():
            if rows:
                without = typed.NO_ARGS[table] if are_typed else _NO_ARGS
                said = _FIELDS[table](rows, [row.args or without for row in rows])
                known = self.tables.setdefault(table, said)
                for name in known if known is not said else ():
                    known[name] += said[name]

    def note_processes(self) -> None:
        """Note the pids of CPU-side rows, first the one that calls the GPU's API most; GPU rows carry the device there."""
        on_host = {table: _pids_on_host(said) for table, said in self.tables.items() if table in words.HOST_TABLES}
        callers = set(on_host.get("api_calls", ()))
        raws = callers.union(*on_host.values())
        if len(raws) > 1:
            counts = sum((Counter(self.tables[table]["pid"]) for table in on_host), Counter[Any]())
            ordered = sorted(raws, key=lambda raw: (raw not in callers, -counts[raw], str(raw)))
        else:
            ordered = list(raws)
        self.tally.pids.update((pid, None) for pid in map(values.process_id, ordered) if pid is not None)


def _pids_on_host(said: Lists) -> list[Any]:
    pids = said["pid"]
    if "cat" not in said or not words.GPU_ANNOTATIONS & set(said["cat"]):
        return pids
    return [pid for pid, cat in zip(pids, said["cat"], strict=True) if cat not in words.GPU_ANNOTATIONS]


_NO_ARGS = Args()

# Each field is named where it is read: access by a name in a variable takes twice the time.


def _spans(events: list[Event]) -> Lists:
    return {"name": [e.name for e in events], "ts": [e.ts for e in events], "dur": [e.dur for e in events],
            "pid": [e.pid for e in events], "tid": [e.tid for e in events]}


def _cats(events: list[Event]) -> list[Any]:
    if isinstance(events[0], typed.Known):
        cat_of = typed.CATEGORIES
        return [cat_of[kind] for kind in map(type, events)]
    return [e.cat for e in events]


def _links(args: list[Args]) -> Lists:
    return {"correlation": [a.correlation for a in args], "external_id": [a.external_id for a in args],
            "external_id_g1": [a.external_id_g1 for a in args]}


def _on_device(args: list[Args]) -> Lists:
    return {"device": [a.device for a in args], "context": [a.context for a in args], "stream": [a.stream for a in args],
            "graph_node_id": [a.graph_node_id for a in args]}


def _kernels(events: list[Event], args: list[Args]) -> Lists:
    return {
        **_spans(events), **_links(args), **_on_device(args),
        "grid": [a.grid for a in args], "block": [a.block for a in args],
        "registers": [a.registers for a in args], "shared_bytes": [a.shared_bytes for a in args],
        "blocks_per_sm": [a.blocks_per_sm for a in args], "warps_per_sm": [a.warps_per_sm for a in args],
        "occupancy": [a.occupancy for a in args], "graph_id": [a.graph_id for a in args],
        "collective": [a.collective for a in args], "elements": [a.elements for a in args],
        "element_type": [a.element_type for a in args], "group_size": [a.group_size for a in args],
        "group_name": [a.group_name for a in args], "group_id": [a.group_id for a in args],
        "group_seq": [a.group_seq for a in args],
    }


def _memory_ops(events: list[Event], args: list[Args]) -> Lists:
    return {**_spans(events), "cat": _cats(events), **_links(args), **_on_device(args),
            "bytes": [a.bytes for a in args], "kind": [a.kind for a in args]}


def _api_calls(events: list[Event], args: list[Args]) -> Lists:
    return {**_spans(events), "cat": _cats(events), **_links(args)}


def _ranges(events: list[Event], args: list[Args]) -> Lists:
    return {
        **_spans(events), "cat": _cats(events), "device": [a.device for a in args], "stream": [a.stream for a in args],
        "shapes": [a.shapes for a in args], "shapes_old": [a.shapes_old for a in args], "types": [a.types for a in args],
        "concrete_inputs": [a.concrete_inputs for a in args], "sequence": [a.sequence for a in args],
        "forward_thread": [a.forward_thread for a in args], "external_id": [a.external_id for a in args],
    }


def _allocations(events: list[Event], args: list[Args]) -> Lists:
    return {
        "ts": [e.ts for e in events], "pid": [e.pid for e in events], "tid": [e.tid for e in events],
        "allocated": [a.allocated for a in args], "address": [a.address for a in args],
        "device_type": [a.device_type for a in args], "device_id": [a.device_id for a in args],
        "total_allocated": [a.total_allocated for a in args], "total_reserved": [a.total_reserved for a in args],
    }


_FIELDS: dict[str, Callable[[list[Event], list[Args]], Lists]] = {
    "kernels": _kernels, "memory_ops": _memory_ops, "api_calls": _api_calls, "ranges": _ranges, "allocations": _allocations,
}
