"""Rows of one chunk, as events -> a batch per table.

`process_index` numbers the processes of the chunk (the order of `Tally.pids`); -1 stands for work on a GPU, whose pid is
the device, and for a pid that no process has. Whoever puts the chunks together renumbers them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nsightlens.readers import Batch
from nsightlens.readers.kineto import times, typed, values, words
from nsightlens.readers.kineto.events import Args, Event
from nsightlens.readers.kineto.sorting import Rows, pid_of
from nsightlens.readers.kineto.tally import Tally

Columns = dict[str, pa.Array]

_NO_ARGS = Args()
_INT32 = pa.int32()


def batches(rows: Rows, origin_ns: int, tally: Tally) -> list[Batch]:
    """Return a batch per table that has rows, times relative to `origin_ns`.

    Raises times.InexactTime where the events must be decoded as `exact` ones.
    """
    are_typed = any(isinstance(events[0], typed.Known) for events in rows.values() if events)
    builder = Builder(origin_ns, tally, are_typed)
    made = {
        "kernels": builder.kernels, "memory_ops": builder.memory_ops, "api_calls": builder.api_calls,
        "ranges": builder.ranges, "allocations": builder.allocations,
    }
    return [
        (table, pa.RecordBatch.from_pydict(made[table](events, [event.args or _NO_ARGS for event in events])))
        for table, events in rows.items() if events
    ]


class Builder:
    """Makes the columns of one chunk's rows, and counts in `tally` what a value told beside."""

    def __init__(self, origin_ns: int, tally: Tally, are_typed: bool) -> None:
        self._origin_ns = origin_ns
        self._integers = values.true_integers if are_typed else values.integers
        self._tally = tally
        self._numbers = {pid: number for number, pid in enumerate(tally.pids)}

    def kernels(self, events: list[Event], args: list[Args]) -> Columns:
        """Return the columns of GPU kernels."""
        self._tally.marks.update(
            mark for mark in ("registers", "graph_node_id") if any(getattr(a, mark) is not None for a in args))
        return {
            "name": values.texts([event.name for event in events]),
            **self._times(events), **self._on_device(events, args), **self._links(events, args),
            **_dimensions("grid", [a.grid for a in args]), **_dimensions("block", [a.block for a in args]),
            "registers_per_thread": values.integers([a.registers for a in args], _INT32),
            "shared_bytes": values.integers([a.shared_bytes for a in args]),
            "blocks_per_sm": values.floats([a.blocks_per_sm for a in args]),
            "warps_per_sm": values.floats([a.warps_per_sm for a in args]),
            "estimated_occupancy_pct": values.floats([a.occupancy for a in args]),
            "graph_id": values.integers([a.graph_id or None for a in args]),
            "graph_node_id": values.integers([a.graph_node_id or None for a in args]),
            **(_collectives(args) if any(a.collective is not None for a in args) else {}),
        }

    def memory_ops(self, events: list[Event], args: list[Args]) -> Columns:
        """Return the columns of copies and sets; direction and memories stand in the name, ROCm's also in `kind`."""
        name = values.texts([event.name for event in events])
        kind = [words.KIND_OF[event.cat or ""] for event in events]
        label = [f"{e.name} {a.kind}" if k == "memcpy" else None for e, a, k in zip(events, args, kind, strict=True)]
        return {
            "kind": values.texts(kind), "name": name,
            **self._times(events), **self._on_device(events, args), **self._links(events, args),
            "direction": values.mapped(values.texts(label), words.direction),
            "source_memory": values.mapped(name, words.source_memory),
            "destination_memory": values.mapped(name, words.destination_memory),
            "bytes": values.integers([a.bytes for a in args]),
            "graph_node_id": values.integers([a.graph_node_id or None for a in args]),
        }

    def api_calls(self, events: list[Event], args: list[Args]) -> Columns:
        """Return the columns of runtime and driver calls."""
        name = values.mapped(values.texts([event.name for event in events]), words.api_name)
        if any(one is not None and one.startswith("hip") for one in name.dictionary.to_pylist()):
            self._tally.marks.add("hip")
        return {
            "name": name, "api": values.texts([words.KIND_OF[event.cat or ""] for event in events]),
            "process_index": self._process(events), "thread": self._integers([event.tid for event in events]),
            **self._times(events), **self._links(events, args),
        }

    def ranges(self, events: list[Event], args: list[Args]) -> Columns:
        """Return the columns of operators, annotations, modules and steps."""
        name = values.texts([event.name for event in events])
        kind = values.mapped(values.texts([event.cat for event in events]), words.KIND_OF.get)
        self._tally.operators += int(np.count_nonzero(_is(kind, "operator")))
        return {
            "name": name, **_kinds_and_steps(name, kind), **self._tracks(events, args, kind), **self._times(events),
            "shapes": values.json_texts([a.shapes_old if a.shapes is None else a.shapes for a in args]),
            "types": values.json_texts([a.types for a in args]),
            "concrete_inputs": values.json_texts([a.concrete_inputs for a in args]),
            "sequence": self._integers([a.sequence for a in args]),
            "forward_thread": self._integers([a.forward_thread or None for a in args]),
            "external_id": self._integers([a.external_id for a in args]),
        }

    def allocations(self, events: list[Event], args: list[Args]) -> Columns:
        """Return the columns of [memory] events."""
        at = times.starts([event.ts for event in events])
        self._tally.untimed += int(np.count_nonzero(at == times.UNKNOWN))
        types = [values.integer(a.device_type) for a in args]
        return {
            "process_index": self._process(events), "thread": self._integers([event.tid for event in events]),
            "at_ns": times.column(times.since(at, self._origin_ns)),
            "bytes": values.integers([a.allocated for a in args]),
            "address": values.integers([_signed(a.address) for a in args]),
            "device_type": values.texts([words.DEVICE_TYPES.get(t, t) if t is not None else None for t in types]),
            "device": values.integers([a.device_id if t and a.device_id != -1 else None
                                       for a, t in zip(args, types, strict=True)], _INT32),
            "total_allocated_bytes": values.integers([a.total_allocated for a in args]),
            "total_reserved_bytes": values.integers([a.total_reserved for a in args]),
        }

    def _process(self, events: list[Event]) -> pa.Array:
        raws = {event.pid for event in events}
        number = {raw: self._numbers.get(pid_of(raw) or 0, -1) for raw in raws}
        if len(raws) == 1:
            return _same(number[raws.pop()], len(events))
        return pa.array([number[event.pid] for event in events], _INT32)

    def _times(self, events: list[Event]) -> Columns:
        start = times.starts([event.ts for event in events])
        duration = times.nanoseconds([event.dur for event in events])
        self._tally.untimed += int(np.count_nonzero((start == times.UNKNOWN) | (duration == times.UNKNOWN)))
        duration, impossible = times.possible(duration)
        self._tally.impossible += impossible
        return {"start_ns": times.column(times.since(start, self._origin_ns)), "duration_ns": times.column(duration)}

    def _on_device(self, events: list[Event], args: list[Args]) -> Columns:
        """Return device, context and stream: arguments, and pid and tid of GPU events mean the same."""
        device = values.integers([e.pid if a.device is None else a.device for e, a in zip(events, args, strict=True)], _INT32)
        stream = [e.tid if a.stream is None else a.stream for e, a in zip(events, args, strict=True)]
        self._tally.devices.update(number for number in device.unique().to_pylist() if number is not None)
        self._tally.gpu_rows += len(events)
        return {"process_index": _same(-1, len(events)), "device": device, "stream": self._integers(stream),
                "context": self._integers([a.context for a in args])}

    def _links(self, events: list[Event], args: list[Args]) -> Columns:
        """Return correlation id and External id, the latter only where it is a link.

        Kineto of 2022 to early 2024, which wrote whole microseconds, put the correlation id there a second time.
        """
        correlation = [a.correlation for a in args]
        ids = [a.external_id_g1 if a.external_id is None else a.external_id for a in args]
        ids = [one or None for one in ids]
        if any(type(event.ts) is not float for event in events):
            own = [one if one != other or not times.is_whole(event.ts) else None
                   for one, other, event in zip(ids, correlation, events, strict=True)]
            self._tally.borrowed_ids += own.count(None) - ids.count(None)
            ids = own
        self._tally.own_ids += len(ids) - ids.count(None)
        return {"correlation_id": self._integers(correlation), "external_id": self._integers(ids)}

    def _tracks(self, events: list[Event], args: list[Args], kind: pa.DictionaryArray) -> Columns:
        """Return process and thread of ranges; for those that the tool drew on the GPU track, device and stream instead."""
        thread: list[Any] = [event.tid for event in events]
        on_gpu = _is(kind, "gpu_annotation")
        if not on_gpu.any():
            return {"process_index": self._process(events), "thread": self._integers(thread)}
        process = np.where(on_gpu, np.int32(-1), self._process(events).to_numpy())
        device: list[Any] = [None] * len(events)
        stream: list[Any] = [None] * len(events)
        for row in np.flatnonzero(on_gpu).tolist():
            event, told = events[row], args[row]
            device[row] = event.pid if told.device is None else told.device
            stream[row] = event.tid if told.stream is None else told.stream
            thread[row] = None
        return {"process_index": pa.array(process), "thread": self._integers(thread),
                "device": values.integers(device, _INT32), "stream": values.integers(stream)}


def _same(number: int, count: int) -> pa.Array:
    return pa.array(np.full(count, number, dtype=np.int32))


def _dimensions(what: str, sizes: list[Any]) -> Columns:
    """Return <what>_x, _y and _z."""
    return {f"{what}_{axis}": column for axis, column in zip("xyz", values.triples(sizes), strict=True)}


def _collectives(args: list[Args]) -> Columns:
    group = [a.group_id if a.group_name is None else a.group_name for a in args]
    return {
        "collective": values.texts([a.collective for a in args]),
        "message_bytes": values.integers([_message_bytes(a) for a in args]),
        "group_size": values.integers([a.group_size for a in args], _INT32),
        "group_name": values.texts(group),
        "group_seq": values.integers([a.group_seq for a in args]),
    }


def _message_bytes(args: Args) -> int | None:
    elements = values.integer(args.elements)
    size = words.ELEMENT_BYTES.get(args.element_type) if isinstance(args.element_type, str) else None
    return None if elements is None or size is None else elements * size


def _is(column: pa.DictionaryArray, text: str) -> npt.NDArray[np.bool_]:
    """Return which rows of a column without NULL hold `text`."""
    place = column.dictionary.index(text).as_py()
    return np.asarray(column.indices.to_numpy() == place)


def _kinds_and_steps(name: pa.DictionaryArray, kind: pa.DictionaryArray) -> Columns:
    """Return the kinds with "step" for host-side ProfilerStep#N, and N per row where there is one."""
    numbers = [None if text is None else words.step_number(text) for text in name.dictionary.to_pylist()]
    if not any(number is not None for number in numbers):
        return {"kind": kind}
    kinds = kind.to_pylist()
    steps = [numbers[i] if i is not None and k in ("operator", "annotation") else None
             for i, k in zip(name.indices.to_pylist(), kinds, strict=True)]
    return {"kind": values.texts(["step" if step is not None else k for step, k in zip(steps, kinds, strict=True)]),
            "step": values.integers(steps)}


def _signed(address: Any) -> Any:
    """Return an unsigned 64-bit address in two's complement."""
    return address - (1 << 64) if isinstance(address, int) and 1 << 63 <= address < 1 << 64 else address
