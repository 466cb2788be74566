"""Events of one chunk -> their fields as columns: an array or a list per table and field.

They are taken from a slice of the events at a time, while these lie in the processor's cache: memory, not decoding, is what
reading a trace waits for. Integers are arrays, times.UNKNOWN where there is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from nsightlens.readers.kineto import categories, fast_structs, times, values
from nsightlens.readers.kineto.counts import Tally
from nsightlens.readers.kineto.events import Args, Event
from nsightlens.readers.kineto.sorting import sort
from nsightlens.readers.kineto.times import UNKNOWN, Ns

Mask = npt.NDArray[np.bool_]
Parsed = dict[str, Any]
_MAX_PID = 1 << 31
_MAX_TRACKS = 1 << 10


class Fields:
    """The fields of the events that become rows, by table, in the order of the file."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self._slices: dict[str, list[Parsed]] = {}

    def take(self, events: list[Event]) -> None:
        """Take in the events that follow; what becomes no row is counted. Raises times.InexactTime."""
        for table, rows in sort(events, self.tally).items():
            if rows:
                are_typed = isinstance(events[0], fast_structs.Known)
                if not are_typed and table != "device_samples":
                    self._note_labels(table, rows)
                without = fast_structs.NO_ARGS[table] if are_typed else _NO_ARGS
                args = [row.args or without for row in rows]
                self._slices.setdefault(table, []).append(_TABLES[table](rows, args, are_typed))

    def tables(self) -> dict[str, Parsed]:
        """Return all fields that were taken in, by table. Nothing can be taken in afterwards."""
        found = {table: _joined(slices) for table, slices in self._slices.items()}
        self._slices.clear()
        self._note_processes(found)
        return found

    def _note_labels(self, table: str, rows: list[Event]) -> None:
        """Note the labels of pids such as "[TP00] 4711", and pids like "trace-1" of API calls: two are of two processes."""
        for pid in {row.pid for row in rows if isinstance(row.pid, str)}:
            label = pid.rstrip("0123456789").strip()
            if label not in ("", "-") and len(self.tally.labels) + len(self.tally.callers) < _MAX_TRACKS:
                self.tally.labels.add(label)
                if table == "api_calls":
                    self.tally.callers.add(pid)

    def _note_processes(self, tables: dict[str, Parsed]) -> None:
        """Note the pids of CPU-side rows, first the one that calls the GPU's API most; GPU rows carry the device there."""
        on_host: Counter[int] = Counter()
        for table in ("api_calls", "ranges", "frame_calls", "allocations"):
            if table in tables:
                pid = tables[table]["pid"]
                on_gpu = tables[table].get("on_gpu")
                on_host.update(_counted(pid))
                if on_gpu is not None:
                    on_host.subtract(_counted(pid[on_gpu]))
        if "kernels" in tables and len(self.tally.tracks) < _MAX_TRACKS:
            self.tally.tracks.update(_tracks(tables["kernels"]))
        callers = _counted(tables["api_calls"]["pid"]) if "api_calls" in tables else {}
        pids = [pid for pid, count in on_host.items() if count and 0 < pid < _MAX_PID]
        ordered = sorted(pids, key=lambda pid: (pid not in callers, -on_host[pid], str(pid)))
        self.tally.pids.update(dict.fromkeys(ordered))


def _counted(pids: Ns) -> dict[int, int]:
    if not len(pids) or bool((pids == pids[0]).all()):
        return {int(pids[0]): len(pids)} if len(pids) else {}
    distinct, counts = np.unique(pids, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True))


def _tracks(kernels: Parsed) -> set[tuple[int, int]]:
    """Return the distinct (device, pid), where both are known."""
    device, pid = kernels["device"], kernels["pid"]
    if np.array_equal(device, pid):
        return {(one, one) for one in _counted(device) if one != UNKNOWN}
    return {(one, track) for one, track in set(zip(device.tolist(), pid.tolist(), strict=True)) if UNKNOWN not in (one, track)}


def _joined(slices: list[Parsed]) -> Parsed:
    if len(slices) == 1:
        return slices[0]
    return {name: np.concatenate([one[name] for one in slices]) if isinstance(first, np.ndarray)
            else list(chain.from_iterable(one[name] for one in slices)) for name, first in slices[0].items()}


_NO_ARGS = Args()

# Each field is named where it is read: access by a name in a variable takes twice the time.


def _spans(events: list[Event], are_typed: bool) -> Parsed:
    return {
        "name": [e.name for e in events],
        "start": times.starts([e.ts for e in events]), "duration": times.nanoseconds([e.dur for e in events]),
        "pid": values.tracks([e.pid for e in events], are_typed), "tid": values.tracks([e.tid for e in events], are_typed),
    }


def _links(events: list[Event], args: list[Args], are_typed: bool) -> Parsed:
    """Return correlation and External id, and which events have whole microseconds."""
    external = values.numbers([a.external_id for a in args], are_typed)
    lacks = external == UNKNOWN
    if lacks.any():
        external = np.where(lacks, values.numbers([a.external_id_g1 for a in args], are_typed), external)
    return {"correlation": values.numbers([a.correlation for a in args], are_typed), "external_id": external,
            "is_whole": times.are_whole([e.ts for e in events])}


def _on_device(events: list[Event], args: list[Args], are_typed: bool) -> Parsed:
    """Return device, context and stream: arguments, and pid and tid of GPU events mean the same.

    Where an exporter drew work on another lane than its stream (graph_lanes), argument and tid are the lane.
    """
    stream = _or_track([a.stream for a in args], [e.tid for e in events], are_typed)
    original = values.numbers([a.original_stream for a in args], are_typed)
    return {
        "device": _or_track([a.device for a in args], [e.pid for e in events], are_typed),
        "stream": np.where(original == UNKNOWN, stream, original),
        "context": values.numbers([a.context for a in args], are_typed),
        "graph_node_id": values.numbers([a.graph_node_id for a in args], are_typed),
    }


def _or_track(said: list[Any], track: list[Any], are_typed: bool) -> Ns:
    """Return the numbers of an argument, and of the track where the argument is absent (not: where it is odd)."""
    found = values.numbers(said, are_typed)
    if not (found == UNKNOWN).any():
        return found
    absent = (None, UNKNOWN)
    others = values.tracks([other if one in absent else None for one, other in zip(said, track, strict=True)], False)
    return np.where(found == UNKNOWN, others, found)


def _cats(events: list[Event], are_typed: bool) -> list[Any]:
    if are_typed:
        cat_of = fast_structs.CATEGORIES
        return [cat_of[kind] for kind in map(type, events)]
    return [e.cat for e in events]


def _kernels(events: list[Event], args: list[Args], are_typed: bool) -> Parsed:
    return {
        **_spans(events, are_typed), **_links(events, args, are_typed), **_on_device(events, args, are_typed),
        "grid": [a.grid for a in args], "block": [a.block for a in args],
        "registers": values.numbers([a.registers for a in args], are_typed),
        "shared_bytes": values.numbers([a.shared_bytes for a in args], are_typed),
        "blocks_per_sm": [a.blocks_per_sm for a in args], "warps_per_sm": [a.warps_per_sm for a in args],
        "occupancy": [a.occupancy for a in args], "graph_id": values.numbers([a.graph_id for a in args], are_typed),
        "collective": [a.collective for a in args], "elements": [a.elements for a in args],
        "element_type": [a.element_type for a in args], "group_size": [a.group_size for a in args],
        "group_name": [a.group_name for a in args], "group_id": [a.group_id for a in args],
        "group_seq": [a.group_seq for a in args],
        "group_description": [a.group_description for a in args], "group_ranks": [a.group_ranks for a in args],
        "source_rank": [a.source_rank for a in args], "destination_rank": [a.destination_rank for a in args],
        "annotation": [a.name for a in args], "annotated_module": [a.module_fqn for a in args],
    }


def _memory_ops(events: list[Event], args: list[Args], are_typed: bool) -> Parsed:
    spans = _spans(events, are_typed)
    size, bandwidth = [a.bytes for a in args], [a.bandwidth for a in args]
    return {
        **spans, **_links(events, args, are_typed), **_on_device(events, args, are_typed),
        "bandwidth_duration": times.from_bandwidths(spans["duration"], [e.dur for e in events], size, bandwidth),
        "cat": _cats(events, are_typed), "bytes": size, "kind": [a.kind for a in args],
    }


def _api_calls(events: list[Event], args: list[Args], are_typed: bool) -> Parsed:
    return {**_spans(events, are_typed), **_links(events, args, are_typed), "cat": _cats(events, are_typed)}


def _ranges(events: list[Event], args: list[Args], are_typed: bool) -> Parsed:
    cats = _cats(events, are_typed)
    return {
        **_spans(events, are_typed), "cat": cats, **_gpu_tracks(events, args, cats, are_typed),
        "shapes": [a.shapes for a in args], "shapes_old": [a.shapes_old for a in args], "types": [a.types for a in args],
        "concrete_inputs": [a.concrete_inputs for a in args], "call_stack": [a.call_stack for a in args],
        "sequence": values.numbers([a.sequence for a in args], are_typed),
        "forward_thread": values.numbers([a.forward_thread for a in args], are_typed),
        "external_id": values.numbers([a.external_id for a in args], are_typed),
    }


def _frame_calls(events: list[Event], _: list[Args], are_typed: bool) -> Parsed:
    return _spans(events, are_typed)


def _gpu_tracks(events: list[Event], args: list[Args], cats: list[Any], are_typed: bool) -> Parsed:
    """Return which ranges the tool drew on the GPU's track, and the device and stream of these."""
    on_gpu = np.zeros(len(events), dtype=np.bool_)
    device, stream = np.full(len(events), UNKNOWN), np.full(len(events), UNKNOWN)
    if categories.GPU_ANNOTATIONS & set(cats):
        on_gpu = np.fromiter(map(categories.GPU_ANNOTATIONS.__contains__, cats), np.bool_, len(cats))
        rows = np.flatnonzero(on_gpu)
        drawn, arguments = [events[row] for row in rows.tolist()], [args[row] for row in rows.tolist()]
        device[rows] = _or_track([a.device for a in arguments], [e.pid for e in drawn], are_typed)
        stream[rows] = _or_track([a.stream for a in arguments], [e.tid for e in drawn], are_typed)
    return {"on_gpu": on_gpu, "device": device, "stream": stream}


def _synchronizations(events: list[Event], args: list[Any], are_typed: bool) -> Parsed:
    return {
        **_spans(events, are_typed), **_event_calls(events, args, are_typed), "kind": [a.sync_kind for a in args],
        "event_id": values.numbers([a.awaited_event for a in args], are_typed),
        "event_record_id": values.numbers([a.awaited_record for a in args], are_typed),
        "awaited_stream": values.numbers([a.awaited_stream for a in args], are_typed),
    }


def _cuda_events(events: list[Event], args: list[Any], are_typed: bool) -> Parsed:
    return {**_event_calls(events, args, are_typed), "event_id": values.numbers([a.event_id for a in args], are_typed)}


def _event_calls(events: list[Event], args: list[Any], are_typed: bool) -> Parsed:
    """Return where waits and records of events are, and their calls. Their tid is a lane: the stream is an argument."""
    return {
        "device": _or_track([a.device for a in args], [e.pid for e in events], are_typed),
        "stream": values.numbers([a.stream for a in args], are_typed),
        "context": values.numbers([a.context for a in args], are_typed),
        "correlation": values.numbers([a.correlation for a in args], are_typed),
    }


def _overheads(events: list[Event], args: list[Any], are_typed: bool) -> Parsed:
    return {**_spans(events, are_typed), "correlation": values.numbers([a.correlation for a in args], are_typed)}


def _allocations(events: list[Event], args: list[Args], are_typed: bool) -> Parsed:
    return {
        "at": times.starts([e.ts for e in events]),
        "pid": values.tracks([e.pid for e in events], are_typed), "tid": values.tracks([e.tid for e in events], are_typed),
        "allocated": values.numbers([a.allocated for a in args], are_typed), "address": [a.address for a in args],
        "device_type": values.numbers([a.device_type for a in args], are_typed),
        "device_id": values.numbers([a.device_id for a in args], are_typed),
        "total_allocated": values.numbers([a.total_allocated for a in args], are_typed),
        "total_reserved": values.numbers([a.total_reserved for a in args], are_typed),
    }


def _device_samples(events: list[Event], args: list[Any], _: bool) -> Parsed:
    """Return a row per series of the counters, whose arguments are the series by name."""
    rows = [(event, series, value) for event, named in zip(events, args, strict=True) for series, value in named.items()]
    devices = [event.pid if event.cat in categories.COUNTERS else _gpu(event) for event, _, _ in rows]
    return {
        "at": times.starts([event.ts for event, _, _ in rows]),
        "pid": values.tracks([event.pid for event, _, _ in rows], False),
        "device": values.numbers(devices, False),
        "metric": [(event.name if isinstance(event.name, str) else "", series) for event, series, _ in rows],
        "value": [value for _, _, value in rows],
    }


def _gpu(event: Event) -> int | None:
    """Return the GPU that a counter is of, by its track or its name; None where neither says one."""
    track = categories.gpu_number(event.pid)
    return categories.gpu_number(event.name) if track is None else track


_TABLES: dict[str, Callable[[list[Event], list[Args], bool], Parsed]] = {
    "kernels": _kernels, "memory_ops": _memory_ops, "api_calls": _api_calls, "ranges": _ranges, "allocations": _allocations,
    "device_samples": _device_samples, "frame_calls": _frame_calls,
    "synchronizations": _synchronizations, "cuda_events": _cuda_events, "overheads": _overheads,
}
